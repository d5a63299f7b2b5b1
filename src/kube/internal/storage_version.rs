//! Versions that servers store objects in.

use keelson_server::registry::KindCode;

use crate::api::internal_apiserver_k8s_io::v1alpha1::StorageVersion;
use crate::kube::cells;
use crate::kube::status_alone::StatusAlone;

/// Registers the rules of storage versions.
pub fn register(code: &mut KindCode) {
    code.kind::<StorageVersion>()
        .any_strategy(StatusAlone)
        .cells(cells::scheduling::STORAGE_VERSION);
}
