//! The group autoscaling.

pub mod horizontal_pod_autoscaler;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    horizontal_pod_autoscaler::register(code);
}
