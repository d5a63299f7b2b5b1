//! The group networking.k8s.io.

pub mod network_policy;
