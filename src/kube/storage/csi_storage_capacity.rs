//! Capacities of storage.

use keelson_registry::{Kept, KindCode};

use keelson_api::storage_k8s_io::v1::CSIStorageCapacity;

/// Registers the rules of capacities.
pub fn register(code: &mut KindCode) {
    code.kind::<CSIStorageCapacity>()
        .kept([Kept::at("nodeTopology"), Kept::at("storageClassName")]);
}
