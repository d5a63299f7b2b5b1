//! The group storagemigration.k8s.io.

mod storage_version_migration;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    storage_version_migration::register(code);
}
