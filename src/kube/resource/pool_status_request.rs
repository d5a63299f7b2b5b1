//! Requests for the status of a pool of devices.

use keelson_api::resource_k8s_io::v1alpha3::ResourcePoolStatusRequest;
use keelson_registry::{Kept, KindCode};

use crate::cells;
use crate::status_alone::StatusAlone;

/// Registers the rules of these requests.
pub fn register(code: &mut KindCode) {
    code.kind::<ResourcePoolStatusRequest>()
        .any_strategy(StatusAlone)
        .kept([Kept::at("spec")])
        .cells(cells::resource::RESOURCE_POOL_STATUS_REQUEST);
}
