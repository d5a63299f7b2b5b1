//! Checks of the level `restricted`: what a pod can do without.

use std::collections::BTreeSet;

use keelson_api::core::v1::VolumeSource;

use super::baseline::is_seccomp_allowed;
use super::checks::{Finding, Subject, containers, plural, quoted, setters};

/// More rights than the parent process has.
pub fn escalation(subject: &Subject<'_>) -> Option<Finding> {
    let is_bad = |allowed: Option<bool>| allowed != Some(false);
    let names = subject.those(|view| is_bad(view.security.and_then(|s| s.allow_privilege_escalation)));
    if names.is_empty() {
        return None;
    }
    let detail = format!(
        "{} must set securityContext.allowPrivilegeEscalation=false",
        containers(&names)
    );
    Finding::new("allowPrivilegeEscalation != false", detail)
}

/// The same, which means nothing on Windows.
pub fn escalation_25(subject: &Subject<'_>) -> Option<Finding> {
    escalation(subject).filter(|_| !subject.is_windows())
}

/// Capabilities at all.
pub fn capabilities(subject: &Subject<'_>) -> Option<Finding> {
    let of = |drops: bool| {
        move |view: &super::checks::View<'_>| {
            let capabilities = view.security.and_then(|security| security.capabilities.as_deref());
            match drops {
                true => !capabilities.is_some_and(|all| all.drop.iter().any(|name| name == "ALL")),
                false => capabilities.is_some_and(|all| all.add.iter().any(|name| name != "NET_BIND_SERVICE")),
            }
        }
    };
    let (keeping, adding) = (subject.those(of(true)), subject.those(of(false)));
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!(
            "{} must set securityContext.capabilities.drop=[\"ALL\"]",
            containers(&keeping)
        ));
    }
    if !adding.is_empty() {
        let all = subject
            .containers()
            .filter_map(|view| view.security?.capabilities.as_deref());
        let added = all.flat_map(|capabilities| &capabilities.add);
        let added: BTreeSet<&String> = added.filter(|name| *name != "NET_BIND_SERVICE").collect();
        let who = containers(&adding);
        details.push(format!(
            "{who} must not include {} in securityContext.capabilities.add",
            quoted(added)
        ));
    }
    match details.is_empty() {
        true => None,
        false => Finding::new("unrestricted capabilities", details.join("; ")),
    }
}

/// The same, which mean nothing on Windows.
pub fn capabilities_25(subject: &Subject<'_>) -> Option<Finding> {
    capabilities(subject).filter(|_| !subject.is_windows())
}

/// Volumes of other kinds than those that belong to pods.
pub fn volumes(subject: &Subject<'_>) -> Option<Finding> {
    let bad = subject
        .spec
        .volumes
        .iter()
        .filter_map(|v| Some((v.name.as_str(), kind(&v.volume_source)?)));
    let (names, kinds): (Vec<&str>, BTreeSet<&str>) = bad.unzip();
    let uses = if names.len() == 1 { "uses" } else { "use" };
    let (volumes, types) = (
        plural("volume", names.len()),
        plural("restricted volume type", kinds.len()),
    );
    if names.is_empty() {
        return None;
    }
    let detail = format!("{volumes} {} {uses} {types} {}", quoted(&names), quoted(kinds));
    Finding::new("restricted volume types", detail)
}

/// The kind of a volume; `None`: one that everybody may have.
fn kind(source: &VolumeSource) -> Option<&'static str> {
    let is_free = source.config_map.is_some()
        || source.csi.is_some()
        || source.downward_api.is_some()
        || source.empty_dir.is_some()
        || source.ephemeral.is_some()
        || source.image.is_some()
        || source.persistent_volume_claim.is_some()
        || source.projected.is_some()
        || source.secret.is_some();
    if is_free {
        return None;
    }
    let kinds = [
        (source.host_path.is_some(), "hostPath"),
        (source.gce_persistent_disk.is_some(), "gcePersistentDisk"),
        (source.aws_elastic_block_store.is_some(), "awsElasticBlockStore"),
        (source.git_repo.is_some(), "gitRepo"),
        (source.nfs.is_some(), "nfs"),
        (source.iscsi.is_some(), "iscsi"),
        (source.glusterfs.is_some(), "glusterfs"),
        (source.rbd.is_some(), "rbd"),
        (source.flex_volume.is_some(), "flexVolume"),
        (source.cinder.is_some(), "cinder"),
        (source.cephfs.is_some(), "cephfs"),
        (source.flocker.is_some(), "flocker"),
        (source.fc.is_some(), "fc"),
        (source.azure_file.is_some(), "azureFile"),
        (source.vsphere_volume.is_some(), "vsphereVolume"),
        (source.quobyte.is_some(), "quobyte"),
        (source.azure_disk.is_some(), "azureDisk"),
        (source.photon_persistent_disk.is_some(), "photonPersistentDisk"),
        (source.portworx_volume.is_some(), "portworxVolume"),
        (source.scale_io.is_some(), "scaleIO"),
        (source.storageos.is_some(), "storageos"),
    ];
    let found = kinds.into_iter().find(|(is_set, _)| *is_set);
    Some(found.map_or("unknown", |(_, kind)| kind))
}

/// Containers whose user may be the one who may do everything.
pub fn non_root(subject: &Subject<'_>) -> Option<Finding> {
    const REASON: &str = "runAsNonRoot != true";
    let of_pod = subject
        .spec
        .security_context
        .as_deref()
        .and_then(|context| context.run_as_non_root);
    let said = |view: &super::checks::View<'_>| view.security.and_then(|security| security.run_as_non_root);
    let explicit = subject.those(|view| said(view) == Some(false));
    if let Some(who) = setters(of_pod == Some(false), &explicit) {
        return Finding::new(REASON, format!("{who} must not set securityContext.runAsNonRoot=false"));
    }
    let implicit = subject.those(|view| said(view).is_none() && of_pod != Some(true));
    if implicit.is_empty() {
        return None;
    }
    let detail = format!(
        "pod or {} must set securityContext.runAsNonRoot=true",
        containers(&implicit)
    );
    Finding::new(REASON, detail)
}

/// The same but for pods with users of their own.
pub fn non_root_35(subject: &Subject<'_>) -> Option<Finding> {
    non_root(subject).filter(|_| !subject.has_own_users())
}

/// Containers whose user is that one by its number.
pub fn user(subject: &Subject<'_>) -> Option<Finding> {
    let of_pod = subject
        .spec
        .security_context
        .as_deref()
        .and_then(|context| context.run_as_user);
    let names = subject.those(|view| view.security.and_then(|security| security.run_as_user) == Some(0));
    let who = setters(of_pod == Some(0), &names)?;
    Finding::new("runAsUser=0", format!("{who} must not set runAsUser=0"))
}

/// The same but for pods with users of their own.
pub fn user_35(subject: &Subject<'_>) -> Option<Finding> {
    user(subject).filter(|_| !subject.has_own_users())
}

/// Profiles of seccomp that are missing, or allow everything.
pub fn seccomp(subject: &Subject<'_>) -> Option<Finding> {
    if let Some(found) = super::baseline::seccomp(subject) {
        return Some(found);
    }
    let of_pod = subject
        .spec
        .security_context
        .as_deref()
        .and_then(|c| c.seccomp_profile.as_deref());
    let is_set = of_pod.is_some_and(|profile| is_seccomp_allowed(&profile.r#type));
    let names = subject.those(|view| !is_set && view.security.is_none_or(|s| s.seccomp_profile.is_none()));
    if names.is_empty() {
        return None;
    }
    let who = containers(&names);
    let detail =
        format!("pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"");
    Finding::new("seccompProfile", detail)
}

/// The same, which mean nothing on Windows.
pub fn seccomp_25(subject: &Subject<'_>) -> Option<Finding> {
    seccomp(subject).filter(|_| !subject.is_windows())
}
