//! The group networking.k8s.io.

pub mod ingress;
pub mod network_policy;
pub mod service_cidr;
