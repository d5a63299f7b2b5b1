//! Capacities of storage.

use keelson_server::registry::{Kept, KindCode};

use crate::api::storage_k8s_io::v1::CSIStorageCapacity;

/// Registers the rules of capacities.
pub fn register(code: &mut KindCode) {
    code.kind::<CSIStorageCapacity>()
        .kept([Kept::at("nodeTopology"), Kept::at("storageClassName")]);
}
