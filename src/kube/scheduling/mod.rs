//! The group scheduling.k8s.io.

mod pod_group;
mod priority_class;
mod workload;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    pod_group::register(code);
    priority_class::register(code);
    workload::register(code);
}
