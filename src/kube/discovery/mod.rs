//! The group discovery.k8s.io.

mod endpoint_slice;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    endpoint_slice::register(code);
}
