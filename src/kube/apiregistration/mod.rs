//! The group apiregistration.k8s.io.

mod api_service;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    api_service::register(code);
}
