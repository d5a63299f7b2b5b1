//! Migrations of stored objects to another version.

use keelson_api::storagemigration_k8s_io::v1beta1::StorageVersionMigration;
use keelson_registry::{Kept, KindCode};

use crate::cells;
use crate::metadata;
use crate::status_alone::StatusAlone;

/// Registers the rules of migrations.
pub fn register(code: &mut KindCode) {
    code.kind::<StorageVersionMigration>()
        .any_strategy(StatusAlone)
        .metadata_checks(metadata::WHOLE_FIRST)
        .kept([Kept::at("spec")])
        .cells(cells::scheduling::STORAGE_VERSION_MIGRATION);
}
