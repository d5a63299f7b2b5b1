//! Classes of attributes of volumes.

use keelson_api::storage_k8s_io::v1::VolumeAttributesClass;
use keelson_machinery::field::ErrorList;
use keelson_registry::{Context, Kept, KindCode, Strategy};

use super::parameters;
use crate::cells;
use crate::faults;

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
        .strategy(VolumeAttributesClassStrategy)
        .cells(cells::storage::VOLUME_ATTRIBUTES_CLASS);
}

/// The rules of these classes.
struct VolumeAttributesClassStrategy;

impl Strategy for VolumeAttributesClassStrategy {
    type Object = VolumeAttributesClass;

    fn validate(
        &self,
        _context: &Context,
        new: &VolumeAttributesClass,
        _old: Option<&VolumeAttributesClass>,
    ) -> ErrorList {
        faults::of_object(|f| {
            parameters::driver(&mut f.at("driverName"), &new.driver_name);
            parameters::check(&mut f.at("parameters"), &new.parameters);
            f.at("parameters")
                .required_if(new.parameters.is_empty(), "must contain at least one key/value pair");
        })
    }

    fn validate_change(
        &self,
        _context: &Context,
        new: &VolumeAttributesClass,
        old: &VolumeAttributesClass,
    ) -> ErrorList {
        KEPT.iter().filter_map(|field| field.fault(new, old)).collect()
    }
}
