//! The group internal.apiserver.k8s.io.

mod storage_version;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    storage_version::register(code);
}
