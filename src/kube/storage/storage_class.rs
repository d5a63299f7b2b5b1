//! Storage classes.

use keelson_api::storage_k8s_io::v1::StorageClass;
use keelson_registry::{Kept, KindCode};

use crate::cells;

const KEPT: &[Kept] = &[
    Kept::at("parameters"),
    Kept::at("provisioner"),
    Kept::at("reclaimPolicy"),
    Kept::at("volumeBindingMode"),
];

/// Registers the rules of storage classes.
pub fn register(code: &mut KindCode) {
    code.kind::<StorageClass>()
        .kept(KEPT)
        .cells(cells::storage::STORAGE_CLASS);
}
