//! The group apiextensions.k8s.io.

mod custom_resource_definition;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    custom_resource_definition::register(code);
}
