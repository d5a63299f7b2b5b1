//! Rules of apiextensions.k8s.io.

pub mod convert;
