//! Cells of volumes, claims and the storage group.

use std::collections::BTreeMap;

use keelson_api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use keelson_api::storage_k8s_io::v1::{CSIDriver, CSINode, StorageClass, VolumeAttachment, VolumeAttributesClass};
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::quantity::Quantity;

use super::{UNSET, count, or_none};

/// The annotation that named the class before there was a field.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
/// Either of these makes a class the default one.
const DEFAULT_ANNOTATIONS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// Access modes in the order in which they are shown.
const MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

cells! { pub const PERSISTENT_VOLUME: PersistentVolume =
    "persistent_volume_access_modes" => |o| access_modes(&o.spec.access_modes),
    "persistent_volume_attributes_class" => |o| or_unset(o.spec.volume_attributes_class_name.as_deref()),
    "persistent_volume_capacity" => |o| storage(&o.spec.capacity),
    "persistent_volume_claim" => claim,
    "persistent_volume_reason" => |o| o.status.reason.clone(),
    "persistent_volume_reclaim_policy" => |o| o.spec.persistent_volume_reclaim_policy.clone(),
    "persistent_volume_status" => |o| phase(&o.metadata, &o.status.phase),
    "persistent_volume_storage_class" => |o| class(&o.metadata, &o.spec.storage_class_name),
    "persistent_volume_volume_mode" => |o| or_unset(o.spec.volume_mode.as_deref()),
}
cells! { pub const PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaim =
    "persistent_volume_claim_access_modes" => |o| if_bound(o, || access_modes(&o.status.access_modes)),
    "persistent_volume_claim_attributes_class" => |o| or_unset(o.spec.volume_attributes_class_name.as_deref()),
    "persistent_volume_claim_capacity" => |o| if_bound(o, || storage(&o.status.capacity)),
    "persistent_volume_claim_status" => |o| phase(&o.metadata, &o.status.phase),
    "persistent_volume_claim_storage_class" => |o| class(&o.metadata, o.spec.storage_class_name.as_deref().unwrap_or_default()),
    "persistent_volume_claim_volume" => |o| o.spec.volume_name.clone(),
    "persistent_volume_claim_volume_mode" => |o| or_unset(o.spec.volume_mode.as_deref()),
}

cells! { pub const CSI_DRIVER: CSIDriver =
    "csi_driver_attach_required" => |o| o.spec.attach_required.unwrap_or(true),
    "csi_driver_modes" => |o| or_none(&o.spec.volume_lifecycle_modes.join(",")),
    "csi_driver_pod_info_on_mount" => |o| o.spec.pod_info_on_mount.unwrap_or(false),
    "csi_driver_requires_republish" => |o| o.spec.requires_republish.unwrap_or(false),
    "csi_driver_storage_capacity" => |o| o.spec.storage_capacity.unwrap_or(false),
    "csi_driver_token_requests" => token_requests,
}
cells! { pub const CSI_NODE: CSINode =
    "csi_node_drivers" => |o| count(o.spec.drivers.len()),
}
cells! { pub const VOLUME_ATTACHMENT: VolumeAttachment =
    "volume_attachment_attached" => |o| o.status.attached,
    "volume_attachment_attacher" => |o| o.spec.attacher.clone(),
    "volume_attachment_node" => |o| o.spec.node_name.clone(),
    "volume_attachment_pv" => |o| o.spec.source.persistent_volume_name.clone().unwrap_or_default(),
}

cells! { pub const STORAGE_CLASS: StorageClass =
    "storage_class_allow_volume_expansion" => |o| o.allow_volume_expansion.unwrap_or(false),
    "storage_class_name" => class_name,
    "storage_class_provisioner" => |o| o.provisioner.clone(),
    "storage_class_reclaim_policy" => |o| o.reclaim_policy.clone().unwrap_or_else(|| "Delete".to_owned()),
    "storage_class_volume_binding_mode" => |o| o.volume_binding_mode.clone().unwrap_or_else(|| "Immediate".to_owned()),
}
cells! { pub const VOLUME_ATTRIBUTES_CLASS: VolumeAttributesClass =
    "volume_attributes_class_driver_name" => |o| o.driver_name.clone(),
}

/// `RWO,ROX,RWX,RWOP`, each once.
fn access_modes(modes: &[String]) -> String {
    let there = MODES.iter().filter(|(mode, _)| modes.iter().any(|m| m == mode));
    there.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

fn storage(amounts: &BTreeMap<String, Quantity>) -> String {
    amounts.get("storage").map_or("0", Quantity::as_str).to_owned()
}

/// A deletion counts for more than any phase.
fn phase(metadata: &ObjectMeta, phase: &str) -> String {
    if metadata.deletion_timestamp.is_some() {
        "Terminating".to_owned()
    } else {
        phase.to_owned()
    }
}

fn class(metadata: &ObjectMeta, name: &str) -> String {
    metadata
        .annotations
        .get(CLASS_ANNOTATION)
        .map_or(name, String::as_str)
        .to_owned()
}

/// `namespace/name` of the claim that has the volume.
fn claim(o: &PersistentVolume) -> String {
    o.spec
        .claim_ref
        .as_ref()
        .map_or_else(String::new, |c| format!("{}/{}", c.namespace, c.name))
}

/// What is known of a claim's volume once there is one.
fn if_bound(o: &PersistentVolumeClaim, text: impl FnOnce() -> String) -> String {
    if o.spec.volume_name.is_empty() {
        String::new()
    } else {
        text()
    }
}

fn or_unset(text: Option<&str>) -> String {
    text.unwrap_or(UNSET).to_owned()
}

fn token_requests(o: &CSIDriver) -> String {
    match o.spec.token_requests.as_slice() {
        [] => UNSET.to_owned(),
        all => all.iter().map(|t| t.audience.as_str()).collect::<Vec<_>>().join(","),
    }
}

/// The name, with a mark if this is the default.
fn class_name(o: &StorageClass) -> String {
    let is_default = |a: &&str| o.metadata.annotations.get(*a).is_some_and(|v| v == "true");
    match DEFAULT_ANNOTATIONS.iter().any(is_default) {
        true => format!("{} (default)", o.metadata.name),
        false => o.metadata.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;

    use super::*;

    #[test]
    fn access_modes_have_an_order() {
        let modes = ["ReadWriteMany", "ReadWriteOnce", "ReadWriteMany", "Else"].map(str::to_owned);
        assert_eq!(access_modes(&modes), "RWO,RWX");
    }

    #[test]
    fn claims_show_their_volume_once_they_have_one() {
        let mut o = PersistentVolumeClaim::default();
        json::read(br#"{"status":{"capacity":{"storage":"1Gi"}}}"#, &mut o).unwrap();
        assert_eq!(if_bound(&o, || storage(&o.status.capacity)), "");
        o.spec.volume_name = "v".to_owned();
        assert_eq!(if_bound(&o, || storage(&o.status.capacity)), "1Gi");
        assert_eq!(phase(&o.metadata, "Bound"), "Bound");
    }

    #[test]
    fn the_default_class_is_marked() {
        let mut o = StorageClass::default();
        o.metadata.name = "fast".to_owned();
        assert_eq!(class_name(&o), "fast");
        o.metadata
            .annotations
            .insert(DEFAULT_ANNOTATIONS[1].to_owned(), "true".to_owned());
        assert_eq!(class_name(&o), "fast (default)");
    }
}
