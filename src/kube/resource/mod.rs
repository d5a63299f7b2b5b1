//! The group resource.k8s.io.

mod allocation;
mod claim;
mod claim_access;
mod claim_strategy;
mod device_class;
mod device_taint_rule;
mod devices;
mod pool_status_request;
mod requests;
mod slice;
mod slice_rules;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    claim_strategy::register(code);
    device_class::register(code);
    device_taint_rule::register(code);
    pool_status_request::register(code);
    slice::register(code);
}
