//! Classes of attributes of volumes.

use keelson_api::storage_k8s_io::v1::VolumeAttributesClass;
use keelson_registry::{Kept, KindCode};

use crate::cells;

const KEPT: &[Kept] = &[
    Kept {
        forbidden: Some("updates to driverName are forbidden."),
        ..Kept::at("driverName")
    },
    Kept {
        forbidden: Some("updates to parameters are forbidden."),
        ..Kept::at("parameters")
    },
];

/// Registers the rules of these classes.
pub fn register(code: &mut KindCode) {
    code.kind::<VolumeAttributesClass>()
        .kept(KEPT)
        .cells(cells::storage::VOLUME_ATTRIBUTES_CLASS);
}
