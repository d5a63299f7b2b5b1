//! The group apiextensions.k8s.io.

pub mod convert;
pub mod custom_resource_definition;
