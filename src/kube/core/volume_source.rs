//! Volume sources: the rules of those that pods and persistent volumes have in common.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use keelson_api::core::v1::{
    AWSElasticBlockStoreVolumeSource, AzureDiskVolumeSource, FCVolumeSource, FlockerVolumeSource,
    GCEPersistentDiskVolumeSource, HostPathVolumeSource, NFSVolumeSource, QuobyteVolumeSource,
};
use keelson_machinery::validation::names;
use regex::Regex;

use crate::faults::{Faults, given};

/// What is said of each source beyond the first.
pub const ONE_SOURCE: &str = "may not specify more than 1 volume type";
const HOST_PATHS: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];
/// Numbers of logical units.
const UNITS: (i64, i64) = (0, 255);
const FC_SOURCES: &str = "must specify either targetWWNs or wwids, but not both";
const REGISTRIES: &str = "must be a host:port pair or multiple pairs separated by commas";
/// Longest name of a driver, in bytes.
const DRIVER_MAX: usize = 63;
/// Bytes of a volume's name and its portal that an initiator has room for.
const PORTAL_MAX: usize = 64;
const LONG_PORTAL: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
    iscsi.initiatorName is specified.";
const MANAGED_DISKS: &str =
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
const BLOB_DISKS: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";

pub fn host_path(f: &mut Faults<'_>, source: &HostPathVolumeSource) {
    if f.at("path").filled(&source.path) {
        f.at("path").no_backsteps(&source.path);
        f.at("type").one_of(source.r#type.as_deref(), &HOST_PATHS);
    }
}

pub fn gce_disk(f: &mut Faults<'_>, source: &GCEPersistentDiskVolumeSource) {
    f.at("pdName").filled(&source.pd_name);
    partition(f, source.partition);
}

pub fn aws_store(f: &mut Faults<'_>, source: &AWSElasticBlockStoreVolumeSource) {
    f.at("volumeID").filled(&source.volume_id);
    partition(f, source.partition);
}

/// A partition has a number; 0 stands for none.
fn partition(f: &mut Faults<'_>, number: i32) {
    if !(0..=255).contains(&number) {
        f.at("partition")
            .invalid(number, "must be between 1 and 255, inclusive");
    }
}

pub fn nfs(f: &mut Faults<'_>, source: &NFSVolumeSource) {
    f.all_filled(source, &["server", "path"]);
    f.at("path")
        .invalid_if(!source.path.starts_with('/'), &source.path, "must be an absolute path");
}

pub fn quobyte(f: &mut Faults<'_>, source: &QuobyteVolumeSource) {
    if source.registry.is_empty() {
        f.at("registry").required(REGISTRIES);
    } else if source.tenant.len() >= 65 {
        f.at("tenant")
            .required("must be a UUID and may not exceed a length of 64 characters");
    } else {
        for _ in source.registry.split(',').filter(|pair| !is_host_and_port(pair)) {
            f.at("registry").invalid(&source.registry, REGISTRIES);
        }
    }
    f.at("volume").filled(&source.volume);
}

/// `host:port`, where a host with colons stands in brackets.
fn is_host_and_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else {
        return false;
    };
    let host = match host.strip_prefix('[') {
        Some(rest) => match rest.strip_suffix(']') {
            Some(inner) => return !inner.contains(['[', ']']),
            None => return false,
        },
        None => host,
    };
    !host.contains([':', '[', ']']) && !port.contains(['[', ']'])
}

pub fn flocker(f: &mut Faults<'_>, source: &FlockerVolumeSource) {
    match (source.dataset_name.is_empty(), source.dataset_uuid.is_empty()) {
        (true, true) => f.required("one of datasetName and datasetUUID is required"),
        (false, false) => f.invalid(
            "resource",
            "datasetName and datasetUUID can not be specified simultaneously",
        ),
        _ => {}
    }
    if source.dataset_name.contains('/') {
        f.at("datasetName")
            .invalid(&source.dataset_name, "must not contain '/'");
    }
}

pub fn fibre_channel(f: &mut Faults<'_>, source: &FCVolumeSource) {
    match (source.target_wwns.is_empty(), source.wwids.is_empty()) {
        (true, true) => f.at("targetWWNs").required(FC_SOURCES),
        (false, false) => f.at("targetWWNs").invalid(
            source.target_wwns.as_slice(),
            "targetWWNs and wwids can not be specified simultaneously",
        ),
        _ => {}
    }
    match source.lun {
        _ if source.target_wwns.is_empty() => {}
        None => f.at("lun").required("lun is required if targetWWNs is specified"),
        Some(number) => f.at("lun").within(number, UNITS),
    }
}

pub fn azure_disk(f: &mut Faults<'_>, source: &AzureDiskVolumeSource) {
    f.all_filled(source, &["diskName", "diskURI"]);
    f.at("cachingMode")
        .one_of(source.caching_mode.as_deref(), &["None", "ReadOnly", "ReadWrite"]);
    if let Some(kind) = source.kind.as_deref() {
        f.at("kind").one_of(kind, &["Dedicated", "Managed", "Shared"]);
    }
    let (start, known) = match source.kind.as_deref() {
        None => return,
        Some("Managed") => ("/subscriptions/", MANAGED_DISKS),
        Some(_) => ("https://", BLOB_DISKS),
    };
    if !source.disk_uri.starts_with(start) {
        f.at("diskURI").not_supported(&source.disk_uri, &[known]);
    }
}

/// An iSCSI target, of a pod or of a persistent volume.
pub struct Iscsi<'a> {
    pub target_portal: &'a str,
    pub iqn: &'a str,
    pub lun: i32,
    /// Whether it is asked who the initiator is.
    pub asks: bool,
    /// The name of the secret that says it.
    pub secret: Option<&'a str>,
    pub initiator: Option<&'a str>,
}

impl Iscsi<'_> {
    /// `wrong`: what is said of a name in none of the three forms; `named`: whether a secret must have a name.
    pub fn check(&self, f: &mut Faults<'_>, wrong: &'static str, named: bool) {
        f.at("targetPortal").filled(self.target_portal);
        if f.at("iqn").filled(self.iqn) {
            initiator_name(&mut f.at("iqn"), self.iqn, wrong);
        }
        f.at("lun").within(self.lun, UNITS);
        f.at("secretRef").required_if(self.asks && self.secret.is_none(), "");
        if let Some(name) = self.secret.filter(|_| named) {
            f.at("secretRef").at("name").filled(name);
        }
        if let Some(initiator) = self.initiator {
            initiator_name(&mut f.at("initiatorname"), initiator, wrong);
        }
    }

    /// The fault of a volume whose name and portal are too long together for an initiator.
    pub fn too_long(&self, volume: &str) -> Option<&'static str> {
        let length = volume.len() + 1 + self.target_portal.len();
        (self.initiator.is_some() && length > PORTAL_MAX).then_some(LONG_PORTAL)
    }
}

/// The names that RFC 3720 knows: `iqn.`, `eui.`, `naa.`.
fn initiator_name(f: &mut Faults<'_>, name: &str, wrong: &'static str) {
    let of_length = |rest: &str, length: usize| {
        let mut rest = rest.chars();
        rest.next().is_some_and(|c| c != '\n') && {
            let rest = rest.as_str();
            rest.len() == length && rest.bytes().all(|b| b.is_ascii_alphanumeric())
        }
    };
    let is_good = match (name.get(..3), name.get(3..)) {
        (Some("iqn"), Some(_)) => IQN.as_ref().is_some_and(|iqn| iqn.is_match(name)),
        (Some("eui"), Some(rest)) => of_length(rest, 16),
        (Some("naa"), Some(rest)) => of_length(rest, 32),
        _ => return f.invalid(name, wrong),
    };
    f.invalid_if(!is_good, name, "must be valid format");
}

/// A name such as `iqn.2001-04.com.example:disk`.
static IQN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"iqn\.[0-9]{4}-[0-9]{2}\.[[:alnum:]\-.]+:[^,;*&$|\t\n\f\r ]+$").ok());

/// The name of a driver of the container storage interface.
pub fn driver(f: &mut Faults<'_>, name: &str) {
    if !f.filled(name) {
        return;
    }
    f.max_bytes(name, DRIVER_MAX);
    f.texts(name, names::dns_subdomain(&name.to_lowercase()));
}

/// Options that begin with a domain which Kubernetes keeps for itself.
pub fn flex_options(f: &mut Faults<'_>, options: &BTreeMap<String, String>) {
    f.each_key("options", options, |f, key, _| {
        let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            f.invalid(key, "kubernetes.io and k8s.io namespaces are reserved");
        }
    });
}

/// A volume of StorageOS, but for its secret.
pub fn storage_os(f: &mut Faults<'_>, volume: &str, namespace: &str) {
    f.at("volumeName").filled_label(volume);
    f.at("volumeNamespace").label(given(namespace));
}
