//! Addresses that are taken.

use keelson_registry::{Kept, KindCode};

use crate::cells;
use keelson_api::networking_k8s_io::v1::IPAddress;

/// Registers the rules of addresses.
pub fn register(code: &mut KindCode) {
    code.kind::<IPAddress>()
        .kept([Kept::at("spec.parentRef")])
        .cells(cells::networking::IP_ADDRESS);
}
