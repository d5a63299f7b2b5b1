//! The group resource.k8s.io.

pub mod claim;
mod claim_access;
pub mod claim_strategy;
pub mod device_taint_rule;
pub mod slice;
