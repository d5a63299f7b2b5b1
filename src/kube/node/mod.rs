//! The group node.k8s.io.

mod runtime_class;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    runtime_class::register(code);
}
