//! Rules of resource.k8s.io.

pub mod convert;
