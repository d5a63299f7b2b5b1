//! The group resource.k8s.io.

pub mod claim;
pub mod device_taint_rule;
pub mod slice;
