//! Volumes of a pod: each of one source, each with a name of its own.

use std::collections::{HashMap, HashSet};

use keelson_api::core::v1::{
    CSIVolumeSource, ConfigMapVolumeSource, EphemeralVolumeSource, ISCSIVolumeSource, ImageVolumeSource, KeyToPath,
    PersistentVolumeClaimTemplate, SecretVolumeSource, Volume, VolumeSource,
};
use keelson_machinery::validation::names;

use super::{Options, projected};
use crate::core::persistent_volume_claim;
use crate::core::volume_source::{self, Iscsi, ONE_SOURCE};
use crate::faults::{Exclusive, Faults, Unique};
use crate::metadata;

const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const INITIATORS: &str = "must be valid format starting with iqn, eui, or naa";
const MADE_CLAIM: &str = "must not reference a PVC that gets created for an ephemeral volume";

/// Sources of those volumes that are without a fault, by name: containers use no others.
pub type Sources<'a> = HashMap<&'a str, &'a VolumeSource>;

/// Checks volumes. `pod` is the name of the pod, empty if it is not known yet.
pub fn check<'a>(f: &mut Faults<'_>, volumes: &'a [Volume], pod: &str, options: &Options) -> Sources<'a> {
    let mut sources = Sources::new();
    let ephemeral = volumes.iter().filter(|v| v.volume_source.ephemeral.is_some());
    let made: HashSet<String> = match pod {
        "" => HashSet::new(),
        pod => ephemeral.map(|v| format!("{pod}-{}", v.name)).collect(),
    };
    let mut names = Unique::default();
    f.each("volumes", volumes, |f, volume| {
        let before = f.count();
        source(f, volume, pod, options);
        f.at("name").filled_label(&volume.name);
        if names.has(&volume.name) {
            f.at("name").duplicate(&volume.name);
        }
        if f.count() == before {
            names.check(&mut f.at("name"), &volume.name);
            sources.insert(&volume.name, &volume.volume_source);
        }
        let claim = volume.volume_source.persistent_volume_claim.as_ref();
        if let Some(claim) = claim.filter(|claim| made.contains(&claim.claim_name)) {
            f.at("persistentVolumeClaim")
                .at("claimName")
                .invalid(&claim.claim_name, MADE_CLAIM);
        }
    });
    sources
}

/// The sources that most volumes have, in the order in which they count.
fn source(f: &mut Faults<'_>, volume: &Volume, pod: &str, options: &Options) {
    let s = &volume.volume_source;
    let mut one = Exclusive::new(ONE_SOURCE);
    one.field(f, "emptyDir", s.empty_dir.as_deref(), |f, source| {
        if source.size_limit.as_ref().is_some_and(|limit| limit.is_negative()) {
            f.at("sizeLimit")
                .forbidden("SizeLimit field must be a valid resource quantity");
        }
    });
    one.field(f, "hostPath", s.host_path.as_deref(), volume_source::host_path);
    one.field(f, "gitRepo", s.git_repo.as_deref(), |f, source| {
        f.at("repository").filled(&source.repository);
        f.at("directory").descending_path(&source.directory);
    });
    let disk = ("gcePersistentDisk", "persistentDisk");
    one.field_as(f, disk, s.gce_persistent_disk.as_deref(), volume_source::gce_disk);
    let store = s.aws_elastic_block_store.as_deref();
    one.field(f, "awsElasticBlockStore", store, volume_source::aws_store);
    one.field(f, "secret", s.secret.as_deref(), secret);
    one.field(f, "nfs", s.nfs.as_deref(), volume_source::nfs);
    one.field(f, "iscsi", s.iscsi.as_deref(), |f, source| {
        target(source).check(f, INITIATORS, false)
    });
    if let Some(text) = s
        .iscsi
        .as_deref()
        .and_then(|source| target(source).too_long(&volume.name))
    {
        f.at("name").invalid(&volume.name, text);
    }
    one.field(f, "glusterfs", s.glusterfs.as_deref(), |f, source| {
        f.all_filled(source, &["endpoints", "path"])
    });
    one.field(f, "flocker", s.flocker.as_deref(), volume_source::flocker);
    let claim = s.persistent_volume_claim.as_deref();
    one.field(f, "persistentVolumeClaim", claim, |f, source| {
        f.all_filled(source, &["claimName"])
    });
    of_networks(f, s, &mut one);
    of_clouds(f, s, &mut one, options);
    one.field(f, "ephemeral", s.ephemeral.as_deref(), ephemeral);
    if s.ephemeral.is_some() && one.found() == 1 && !pod.is_empty() && !volume.name.is_empty() {
        let claim = format!("{pod}-{}", volume.name);
        for text in names::dns_subdomain(&claim) {
            f.at("name")
                .invalid(&volume.name, format!("PVC name {claim:?}: {text}"));
        }
    }
    one.field(f, "image", s.image.as_deref(), |f, source| image(f, source, options));
    f.required_if(one.found() == 0, "must specify a volume type");
}

fn of_networks(f: &mut Faults<'_>, s: &VolumeSource, one: &mut Exclusive) {
    one.field(f, "rbd", s.rbd.as_deref(), |f, source| {
        f.at("monitors").required_if(source.monitors.is_empty(), "");
        f.all_filled(source, &["image"]);
    });
    one.field(f, "cinder", s.cinder.as_deref(), |f, source| {
        f.all_filled(source, &["volumeID"]);
        f.some("secretRef", source.secret_ref.as_deref(), |f, secret| {
            f.all_filled(secret, &["name"])
        });
    });
    one.field_as(f, ("cephFS", "cephfs"), s.cephfs.as_deref(), |f, source| {
        f.at("monitors").required_if(source.monitors.is_empty(), "");
    });
    one.field(f, "quobyte", s.quobyte.as_deref(), volume_source::quobyte);
    let api = s.downward_api.as_deref();
    one.field_as(f, ("downwarAPI", "downwardAPI"), api, |f, source| {
        mode(&mut f.at("defaultMode"), source.default_mode);
        for file in &source.items {
            projected::downward_file(f, file);
        }
    });
    one.field(f, "fc", s.fc.as_deref(), volume_source::fibre_channel);
    one.field(f, "flexVolume", s.flex_volume.as_deref(), |f, source| {
        f.at("driver").filled(&source.driver);
        volume_source::flex_options(f, &source.options);
    });
    one.field(f, "configMap", s.config_map.as_deref(), config_map);
}

fn of_clouds(f: &mut Faults<'_>, s: &VolumeSource, one: &mut Exclusive, options: &Options) {
    one.field(f, "azureFile", s.azure_file.as_deref(), |f, source| {
        f.all_filled(source, &["secretName", "shareName"]);
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
    one.field(f, "storageos", s.storageos.as_deref(), |f, source| {
        volume_source::storage_os(f, &source.volume_name, &source.volume_namespace);
        f.some("secretRef", source.secret_ref.as_deref(), |f, secret| {
            f.all_filled(secret, &["name"])
        });
    });
    let projection = s.projected.as_deref();
    one.field(f, "projected", projection, |f, source| {
        projected::check(f, source, options)
    });
    one.field(f, "scaleIO", s.scale_io.as_deref(), |f, source| {
        f.all_filled(source, &["gateway", "system", "volumeName"]);
    });
    one.field(f, "csi", s.csi.as_deref(), csi);
}

/// The permissions of a file.
pub fn mode(f: &mut Faults<'_>, mode: Option<i32>) {
    if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
        f.invalid(mode, FILE_MODE);
    }
}

/// A key whose value becomes a file.
pub fn key_to_path(f: &mut Faults<'_>, item: &KeyToPath) {
    f.all_filled(item, &["key", "path"]);
    f.at("path").unreserved_path(&item.path);
    mode(&mut f.at("mode"), item.mode);
}

fn secret(f: &mut Faults<'_>, source: &SecretVolumeSource) {
    f.at("secretName").filled(&source.secret_name);
    mode(&mut f.at("defaultMode"), source.default_mode);
    f.each("items", &source.items, key_to_path);
}

fn config_map(f: &mut Faults<'_>, source: &ConfigMapVolumeSource) {
    f.at("name").filled(&source.local_object_reference.name);
    mode(&mut f.at("defaultMode"), source.default_mode);
    f.each("items", &source.items, key_to_path);
}

fn target(source: &ISCSIVolumeSource) -> Iscsi<'_> {
    Iscsi {
        target_portal: &source.target_portal,
        iqn: &source.iqn,
        lun: source.lun,
        asks: source.chap_auth_discovery || source.chap_auth_session,
        secret: source.secret_ref.as_ref().map(|secret| secret.name.as_str()),
        initiator: source.initiator_name.as_deref(),
    }
}

fn csi(f: &mut Faults<'_>, source: &CSIVolumeSource) {
    volume_source::driver(&mut f.at("driver"), &source.driver);
    let Some(secret) = &source.node_publish_secret_ref else {
        return;
    };
    if f.at("nodePublishSecretRef").at("name").filled(&secret.name) {
        f.at("name").subdomain(&secret.name);
    }
}

fn image(f: &mut Faults<'_>, source: &ImageVolumeSource, options: &Options) {
    if options.is_pod {
        f.at("reference").filled(&source.reference);
    }
    f.at("pullPolicy")
        .one_of_filled(&source.pull_policy, &["Always", "IfNotPresent", "Never"]);
}

fn ephemeral(f: &mut Faults<'_>, source: &EphemeralVolumeSource) {
    match source.volume_claim_template.as_deref() {
        None => f.at("volumeClaimTemplate").required(""),
        Some(template) => claim_template(&mut f.at("volumeClaimTemplate"), template),
    }
}

/// A claim that is made for each pod: of its metadata, labels and annotations alone may be said.
fn claim_template(f: &mut Faults<'_>, template: &PersistentVolumeClaimTemplate) {
    metadata::of_template(&mut f.at("metadata"), &template.metadata);
    persistent_volume_claim::check_spec(&mut f.at("spec"), &template.spec, &Default::default());
}
