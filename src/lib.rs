//! Keelson: a Kubernetes-style API server made from resource definition files.

pub mod api;
pub mod kube;
