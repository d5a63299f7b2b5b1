//! Addresses that are taken.

use keelson_api::networking_k8s_io::v1::IPAddress;
use keelson_registry::{Kept, KindCode};

use crate::cells;

/// Registers the rules of addresses.
pub fn register(code: &mut KindCode) {
    code.kind::<IPAddress>()
        .kept([Kept::at("spec.parentRef")])
        .cells(cells::networking::IP_ADDRESS);
}
