//! The status of a claim: the devices that it has, who uses it, and what drivers tell of the devices.

use std::collections::HashSet;

use keelson_api::resource_k8s_io::v1::{
    AllocatedDeviceStatus, AllocationResult, DeviceRequestAllocationResult, NetworkDeviceData, ResourceClaim,
    ResourceClaimConsumerReference, ResourceClaimStatus,
};
use keelson_machinery::equality;
use keelson_machinery::field::BadValue;

use super::devices::{binding, bounded, keyed, pool, raw, set, uid};
use super::requests::{MOST, Names, configuration};
use crate::cidr::Cidr;
use crate::conditions;
use crate::core::pod_spec::affinity;
use crate::core::volume_source;
use crate::faults::Faults;
use crate::typed::{IMMUTABLE, shown};

/// Who said how devices are configured.
const SOURCES: [&str; 2] = ["FromClaim", "FromClass"];
const MOST_CONSUMERS: usize = 256;
const MOST_CONDITIONS: usize = 8;
const MOST_ADDRESSES: usize = 16;
/// Longest texts that a driver tells of a device, in bytes.
const DATA_MAX: usize = 10 * 1024;
const INTERFACE_MAX: usize = 256;
const HARDWARE_MAX: usize = 128;

/// Driver, pool, device and share, which is empty where a device is not shared.
pub type DeviceKey = (String, String, String, String);

pub fn key_of_result(result: &DeviceRequestAllocationResult) -> DeviceKey {
    let share = result.share_id.clone().unwrap_or_default();
    (result.driver.clone(), result.pool.clone(), result.device.clone(), share)
}

pub fn key_of_device(device: &AllocatedDeviceStatus) -> DeviceKey {
    let share = device.share_id.clone().unwrap_or_default();
    (device.driver.clone(), device.pool.clone(), device.device.clone(), share)
}

fn shown_key((driver, pool, device, share): &DeviceKey) -> BadValue {
    BadValue::json(serde_json::json!({"Driver": driver, "Pool": pool, "Device": device, "ShareID": share}).to_string())
}

/// Checks a status: it speaks of devices that the claim has, and a claim that is bound stays so until it is given back.
pub fn check(f: &mut Faults<'_>, new: &ResourceClaim, old: &ResourceClaim) {
    let (now, was) = (&new.status, &old.status);
    consumers(f, new, was);
    let results = now.allocation.iter().flat_map(|allocation| &allocation.devices.results);
    let allocated: HashSet<DeviceKey> = results.map(key_of_result).collect();
    let mut seen = HashSet::new();
    f.each("devices", &now.devices, |f, one| device(f, one, &allocated));
    f.each("devices", &now.devices, |f, one| {
        let key = key_of_device(one);
        if seen.contains(&key) {
            f.duplicate(shown_key(&key));
        }
        seen.insert(key);
    });
    match (now.allocation.as_deref(), was.allocation.as_deref()) {
        (Some(now), Some(was)) if !equality::equal(now, was) => f.at("allocation").invalid(shown(now), IMMUTABLE),
        (Some(now), None) => allocation(&mut f.at("allocation"), now, &Names::of(&new.spec.devices)),
        _ => {}
    }
}

fn consumers(f: &mut Faults<'_>, new: &ResourceClaim, was: &ResourceClaimStatus) {
    let now = &new.status;
    let reserved = (now.reserved_for.as_slice(), MOST_CONSUMERS);
    keyed(
        f,
        "reservedFor",
        reserved,
        |one| &one.uid,
        |f, one| {
            f.all_filled(one, &["resource", "name", "uid"]);
        },
    );
    if now.reserved_for.is_empty() {
        return;
    }
    let all =
        |one: &ResourceClaimConsumerReference| [&one.api_group, &one.resource, &one.name, &one.uid].map(String::clone);
    let were: HashSet<_> = was.reserved_for.iter().map(all).collect();
    if now.allocation.is_none() {
        let text = "may not be specified when `allocated` is not set";
        f.at("reservedFor").forbidden(text);
    } else if new.metadata.deletion_timestamp.is_some() && !now.reserved_for.iter().all(|one| were.contains(&all(one)))
    {
        let text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        f.at("reservedFor").forbidden(text);
    }
}

fn allocation(f: &mut Faults<'_>, allocation: &AllocationResult, names: &Names<'_>) {
    let devices = &allocation.devices;
    let mut of_devices = f.at("devices");
    bounded(&mut of_devices, "results", (&devices.results, MOST), |f, result| {
        names.check(&mut f.at("request"), &result.request);
        volume_source::driver(&mut f.at("driver"), &result.driver);
        pool(&mut f.at("pool"), &result.pool);
        f.at("device").label(&result.device);
        binding(f, &result.binding_conditions, &result.binding_failure_conditions);
        f.some("shareID", result.share_id.as_deref(), uid);
    });
    // Of the class and of the claim.
    bounded(&mut of_devices, "config", (&devices.config, 2 * MOST), |f, config| {
        f.at("source").one_of_filled(&config.source, &SOURCES);
        set(f, "requests", (&config.requests, MOST), |f, name| names.check(f, name));
        configuration(f, &config.device_configuration, false);
    });
    f.some("nodeSelector", allocation.node_selector.as_deref(), |f, selector| {
        affinity::node_selector(f, selector, false);
    });
}

fn device(f: &mut Faults<'_>, device: &AllocatedDeviceStatus, allocated: &HashSet<DeviceKey>) {
    volume_source::driver(&mut f.at("driver"), &device.driver);
    pool(&mut f.at("pool"), &device.pool);
    f.at("device").label(&device.device);
    f.some("shareID", device.share_id.as_deref(), uid);
    let key = key_of_device(device);
    if !allocated.contains(&key) {
        f.invalid(shown_key(&key), "must be an allocated device in the claim");
    }
    f.at("conditions").max_items(device.conditions.len(), MOST_CONDITIONS);
    conditions::check(f, &device.conditions);
    if let Some(data) = device.data.as_ref().filter(|data| !data.as_bytes().is_empty()) {
        raw(&mut f.at("data"), data.as_bytes(), DATA_MAX, false);
    }
    f.some("networkData", device.network_data.as_deref(), network);
}

fn network(f: &mut Faults<'_>, data: &NetworkDeviceData) {
    for (name, text, most) in [
        ("interfaceName", &data.interface_name, INTERFACE_MAX),
        ("hardwareAddress", &data.hardware_address, HARDWARE_MAX),
    ] {
        f.at(name).max_bytes(text, most);
    }
    set(f, "ips", (&data.ips, MOST_ADDRESSES), |f, text| {
        match Cidr::parse(text) {
            None => f.invalid(
                text,
                "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)",
            ),
            Some(address) if address.to_string() != text => {
                f.invalid(text, format!("must be in canonical form (\"{address}\")"));
            }
            Some(_) => {}
        }
    });
}
