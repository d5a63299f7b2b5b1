//! Specifications of volumes: of one source, as large as they say, reachable from where they say.

use keelson_api::core::v1::{
    CSIPersistentVolumeSource, ISCSIPersistentVolumeSource, PersistentVolumeSource, PersistentVolumeSpec,
    SecretReference,
};

use super::{RECYCLE, RETAIN};
use crate::core::persistent_volume_claim::{above_zero, access_modes, basic_amount, volume_mode};
use crate::core::pod_spec::affinity;
use crate::core::volume_source::{self, Iscsi, ONE_SOURCE};
use crate::faults::{Exclusive, Faults, given};

const INLINE: &str = "may not be specified in the context of inline volumes";
const INITIATORS: &str = "must be valid format";
const POLICIES: [&str; 3] = ["Delete", RECYCLE, RETAIN];
const STORAGE: &str = "storage";

/// Checks the specification of the volume of a name. What `old` has is let through.
pub fn check(f: &mut Faults<'_>, spec: &PersistentVolumeSpec, name: &str, old: Option<&PersistentVolumeSpec>) {
    f.at("accessModes").required_if(spec.access_modes.is_empty(), "");
    access_modes(&mut f.at("accessModes"), &spec.access_modes);
    capacity(f, spec);
    f.at("persistentVolumeReclaimPolicy")
        .one_of(given(&spec.persistent_volume_reclaim_policy), &POLICIES);
    f.some("nodeAffinity", spec.node_affinity.as_deref(), |f, nodes| {
        match nodes.required.as_deref() {
            None => f.at("required").required("must specify required node constraints"),
            Some(selector) => {
                let before = old.and_then(|old| old.node_affinity.as_deref()?.required.as_deref());
                let lenient = before.is_some_and(|nodes| affinity::has_bad_values(&nodes.node_selector_terms));
                affinity::node_selector(&mut f.at("required"), selector, lenient);
            }
        }
    });
    source(f, spec, name);
    f.at("storageClassName").subdomain(given(&spec.storage_class_name));
    volume_mode(f, spec.volume_mode.as_deref());
    attributes_class(f, spec);
}

/// Checks a specification that stands in another object: a volume that comes of no claim.
pub fn check_inline(f: &mut Faults<'_>, spec: &PersistentVolumeSpec, name: &str) {
    for (field, is_there) in [
        ("claimRef", spec.claim_ref.is_some()),
        ("capacity", !spec.capacity.is_empty()),
    ] {
        f.at(field).forbidden_if(is_there, INLINE);
    }
    if spec.persistent_volume_source.csi.is_none() {
        f.at("csi")
            .required("has to be specified in the context of inline volumes");
    }
    f.at("accessModes").required_if(spec.access_modes.is_empty(), "");
    access_modes(&mut f.at("accessModes"), &spec.access_modes);
    if !matches!(&*spec.persistent_volume_reclaim_policy, "" | RETAIN) {
        let text = format!("may only be {RETAIN} in the context of inline volumes");
        f.at("persistentVolumeReclaimPolicy").forbidden(text);
    }
    f.at("nodeAffinity").forbidden_if(spec.node_affinity.is_some(), INLINE);
    source(f, spec, name);
    f.at("storageClassName")
        .forbidden_if(!spec.storage_class_name.is_empty(), INLINE);
    let text = "may not specify volumeMode other than Filesystem in the context of inline volumes";
    f.at("volumeMode")
        .forbidden_if(!matches!(spec.volume_mode.as_deref(), None | Some("Filesystem")), text);
}

fn capacity(f: &mut Faults<'_>, spec: &PersistentVolumeSpec) {
    let capacity = &spec.capacity;
    f.at("capacity").required_if(capacity.is_empty(), "");
    if capacity.len() != 1 || !capacity.contains_key(STORAGE) {
        let shown: Vec<String> = capacity
            .iter()
            .map(|(name, amount)| format!("{name:?}:{:?}", amount.as_str()))
            .collect();
        let shown = match shown.is_empty() {
            true => keelson_machinery::field::BadValue::null(),
            false => keelson_machinery::field::BadValue::json(format!("{{{}}}", shown.join(","))),
        };
        f.at("capacity").not_supported(shown, &[STORAGE]);
    }
    f.each_key("capacity", capacity, |f, _, amount| {
        basic_amount(f, amount);
        above_zero(f, amount);
    });
}

fn attributes_class(f: &mut Faults<'_>, spec: &PersistentVolumeSpec) {
    let Some(class) = spec.volume_attributes_class_name.as_deref() else {
        return;
    };
    match class {
        "" => f
            .at("volumeAttributesClassName")
            .required("an empty string is disallowed"),
        class => f.at("volumeAttributesClassName").subdomain(class),
    }
    if spec.persistent_volume_source.csi.is_none() {
        f.at("csi")
            .required("has to be specified when using volumeAttributesClassName");
    }
}

/// The sources, in the order in which they count.
fn source(f: &mut Faults<'_>, spec: &PersistentVolumeSpec, name: &str) {
    let s = &spec.persistent_volume_source;
    let mut one = Exclusive::new(ONE_SOURCE);
    one.field(f, "hostPath", s.host_path.as_deref(), volume_source::host_path);
    let disk = ("gcePersistentDisk", "persistentDisk");
    one.field_as(f, disk, s.gce_persistent_disk.as_deref(), volume_source::gce_disk);
    let store = s.aws_elastic_block_store.as_deref();
    one.field(f, "awsElasticBlockStore", store, volume_source::aws_store);
    one.field(f, "glusterfs", s.glusterfs.as_deref(), |f, source| {
        f.all_filled(source, &["endpoints", "path"]);
        match source.endpoints_namespace.as_deref() {
            Some("") => {
                let text = "if the endpointnamespace is set, it must be a valid namespace name";
                f.at("endpointsNamespace").invalid("", text);
            }
            Some(name) => f.at("endpointsNamespace").label(name),
            None => {}
        }
    });
    one.field(f, "flocker", s.flocker.as_deref(), volume_source::flocker);
    one.field(f, "nfs", s.nfs.as_deref(), volume_source::nfs);
    of_networks(f, s, &mut one, name);
    of_clouds(f, s, &mut one);
    one.field(f, "local", s.local.as_deref(), |f, source| {
        if f.at("path").filled(&source.path) {
            f.at("path").no_backsteps(&source.path);
        }
    });
    if s.local.is_some() && one.found() == 1 && spec.node_affinity.is_none() {
        f.at("nodeAffinity").required("Local volume requires node affinity");
    }
    one.field(f, "storageos", s.storageos.as_deref(), |f, source| {
        volume_source::storage_os(f, &source.volume_name, &source.volume_namespace);
        f.some("secretRef", source.secret_ref.as_deref(), |f, secret| {
            f.all_filled(secret, &["name", "namespace"]);
        });
    });
    one.field(f, "csi", s.csi.as_deref(), csi);
    f.required_if(one.found() == 0, "must specify a volume type");
    let is_root = |path: &str| !path.is_empty() && path.starts_with('/') && clean(path) == "/";
    let recycled = spec.persistent_volume_reclaim_policy == RECYCLE;
    if recycled && s.host_path.as_ref().is_some_and(|source| is_root(&source.path)) {
        let text = "may not be 'recycle' for a hostPath mount of '/'";
        f.at("persistentVolumeReclaimPolicy").forbidden(text);
    }
}

/// An absolute path without steps that lead nowhere or back.
fn clean(path: &str) -> String {
    let mut steps = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    format!("/{}", steps.join("/"))
}

fn of_networks(f: &mut Faults<'_>, s: &PersistentVolumeSource, one: &mut Exclusive, name: &str) {
    one.field(f, "rbd", s.rbd.as_deref(), |f, source| {
        f.at("monitors").required_if(source.monitors.is_empty(), "");
        f.all_filled(source, &["image"]);
    });
    one.field_as(f, ("quobyte", "quobyte"), s.quobyte.as_deref(), volume_source::quobyte);
    one.field_as(f, ("cephFS", "cephfs"), s.cephfs.as_deref(), |f, source| {
        f.at("monitors").required_if(source.monitors.is_empty(), "");
    });
    one.field(f, "iscsi", s.iscsi.as_deref(), |f, source| {
        let target = target(source);
        if let Some(text) = target.too_long(name) {
            f.at("targetportal").invalid(&source.target_portal, text);
        }
        target.check(f, INITIATORS, true);
    });
    one.field(f, "cinder", s.cinder.as_deref(), |f, source| {
        f.all_filled(source, &["volumeID"]);
        f.some("secretRef", source.secret_ref.as_deref(), |f, secret| {
            f.all_filled(secret, &["name", "namespace"]);
        });
    });
    one.field(f, "fc", s.fc.as_deref(), volume_source::fibre_channel);
    if let Some(source) = s.flex_volume.as_deref() {
        one.count();
        let mut f = f.at("flexVolume");
        f.at("driver").filled(&source.driver);
        volume_source::flex_options(&mut f, &source.options);
    }
}

fn of_clouds(f: &mut Faults<'_>, s: &PersistentVolumeSource, one: &mut Exclusive) {
    one.field(f, "azureFile", s.azure_file.as_deref(), |f, source| {
        f.all_filled(source, &["secretName", "shareName"]);
        if let Some(namespace) = source.secret_namespace.as_deref() {
            f.at("secretNamespace").filled(namespace);
        }
    });
    one.field(f, "vsphereVolume", s.vsphere_volume.as_deref(), |f, source| {
        f.all_filled(source, &["volumePath"])
    });
    let photon = s.photon_persistent_disk.as_deref();
    one.field(f, "photonPersistentDisk", photon, |f, source| {
        f.all_filled(source, &["pdID"])
    });
    one.field(f, "portworxVolume", s.portworx_volume.as_deref(), |f, source| {
        f.all_filled(source, &["volumeID"])
    });
    one.field(f, "azureDisk", s.azure_disk.as_deref(), volume_source::azure_disk);
    one.field(f, "scaleIO", s.scale_io.as_deref(), |f, source| {
        f.all_filled(source, &["gateway", "system", "volumeName"]);
    });
}

fn target(source: &ISCSIPersistentVolumeSource) -> Iscsi<'_> {
    Iscsi {
        target_portal: &source.target_portal,
        iqn: &source.iqn,
        lun: source.lun,
        asks: source.chap_auth_discovery || source.chap_auth_session,
        secret: source.secret_ref.as_ref().map(|secret| secret.name.as_str()),
        initiator: source.initiator_name.as_deref(),
    }
}

fn csi(f: &mut Faults<'_>, source: &CSIPersistentVolumeSource) {
    volume_source::driver(&mut f.at("driver"), &source.driver);
    f.at("volumeHandle").filled(&source.volume_handle);
    let secrets = [
        ("controllerPublishSecretRef", &source.controller_publish_secret_ref),
        ("controllerExpandSecretRef", &source.controller_expand_secret_ref),
        ("nodePublishSecretRef", &source.node_publish_secret_ref),
        ("nodeExpandSecretRef", &source.node_expand_secret_ref),
    ];
    for (name, secret) in secrets {
        f.some(name, secret.as_deref(), |f, secret: &SecretReference| {
            f.at("name").filled_subdomain(&secret.name);
            f.at("namespace").filled_label(&secret.namespace);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults;
    use crate::testing::{lines, read};

    fn told(spec: &str, inline: bool) -> String {
        let spec = read(spec);
        lines(&faults::of_object(|f| match inline {
            true => check_inline(f, &spec, "v"),
            false => check(f, &spec, "v", None),
        }))
    }

    #[test]
    fn a_volume_has_one_source_and_a_size() {
        let good = r#""accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"}"#;
        for (spec, expected) in [
            (format!(r#"{{{good},"hostPath":{{"path":"/"}}}}"#), ""),
            (
                format!("{{{good}}}"),
                "<nil>: Required value: must specify a volume type",
            ),
            (
                format!(
                    r#"{{{good},"hostPath":{{"path":"/a/.."}},"persistentVolumeReclaimPolicy":"Recycle","nfs":{{}}}}"#
                ),
                "hostPath.path: Invalid value: \"/a/..\": must not contain '..'\n\
                 nfs: Forbidden: may not specify more than 1 volume type\n\
                 persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
            ),
            (
                format!(r#"{{{good},"local":{{"path":"/x"}}}}"#),
                "nodeAffinity: Required value: Local volume requires node affinity",
            ),
            (
                r#"{"accessModes":["ReadWriteOnce"],"capacity":{"cpu":"0"},"nfs":{"server":"s","path":"/"}}"#
                    .to_owned(),
                "capacity: Unsupported value: {\"cpu\":\"0\"}: supported values: \"storage\"\n\
                 capacity[cpu]: Invalid value: \"0\": must be greater than zero",
            ),
        ] {
            assert_eq!(told(&spec, false), expected, "{spec}");
        }
    }

    #[test]
    fn an_inline_volume_comes_of_a_driver() {
        let csi = r#""accessModes":["ReadWriteOnce"],"csi":{"driver":"d.e","volumeHandle":"h"}"#;
        assert_eq!(told(&format!("{{{csi}}}"), true), "");
        assert_eq!(
            told(&format!(r#"{{{csi},"storageClassName":"c"}}"#), true),
            format!("storageClassName: Forbidden: {INLINE}")
        );
    }
}
