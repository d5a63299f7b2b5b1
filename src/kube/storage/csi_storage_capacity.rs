//! Capacities of storage.

use keelson_api::storage_k8s_io::v1::CSIStorageCapacity;
use keelson_registry::{Kept, KindCode};

/// Registers the rules of capacities.
pub fn register(code: &mut KindCode) {
    code.kind::<CSIStorageCapacity>()
        .kept([Kept::at("nodeTopology"), Kept::at("storageClassName")]);
}
