//! The group policy.

mod pod_disruption_budget;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    pod_disruption_budget::register(code);
}
