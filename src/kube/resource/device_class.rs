//! Classes of devices.

use keelson_api::resource_k8s_io::v1::DeviceClass;
use keelson_machinery::field::ErrorList;
use keelson_registry::{Context, KindCode, Strategy};

use super::devices::bounded;
use super::requests::{MOST, configuration, selectors};
use crate::core::resource_name::is_extended;
use crate::faults::{self, Faults};
use crate::metadata;
use crate::typed::same_list;

/// Registers the rules of classes.
pub fn register(code: &mut KindCode) {
    code.kind::<DeviceClass>()
        .strategy(DeviceClassStrategy)
        .metadata_checks(metadata::METADATA_FIRST);
}

/// The rules of classes.
struct DeviceClassStrategy;

impl Strategy for DeviceClassStrategy {
    type Object = DeviceClass;

    fn validate(&self, _context: &Context, new: &DeviceClass, old: Option<&DeviceClass>) -> ErrorList {
        faults::of_spec(|f| check(f, new, old))
    }
}

fn check(f: &mut Faults<'_>, class: &DeviceClass, old: Option<&DeviceClass>) {
    let spec = &class.spec;
    selectors(f, &spec.selectors);
    let is_stored = old.is_some_and(|old| same_list(&old.spec.config, &spec.config));
    bounded(f, "config", (&spec.config, MOST), |f, config| {
        configuration(f, &config.device_configuration, is_stored);
    });
    if let Some(name) = spec.extended_resource_name.as_deref().filter(|name| !is_extended(name)) {
        f.at("extendedResourceName")
            .invalid(name, "must be a valid extended resource name");
    }
}
