//! Lines of our own for what `k8s-openapi` does not describe.

use std::collections::BTreeMap;

use crate::Description;

/// Adds the list kinds and the definitions that are missing. Leaves alone what is there.
pub fn add(all: &mut BTreeMap<String, Description>) {
    let lists: Vec<(String, Description)> = all
        .iter()
        .filter(|(_, d)| {
            ["apiVersion", "kind", "metadata"]
                .iter()
                .all(|f| d.fields.contains_key(*f))
        })
        .filter_map(|(name, _)| Some((format!("{name}List"), list(name.rsplit('.').next()?))))
        .collect();
    for (name, description) in lists {
        all.entry(name).or_insert(description);
    }
    for (inner, outer) in INLINED {
        if let Some(Description { fields, .. }) = all.get(*outer).cloned() {
            all.entry((*inner).to_owned()).or_default().fields.extend(fields);
        }
    }
    for (name, text) in TEXTS {
        let entry = all.entry((*name).to_owned()).or_default();
        if entry.text.is_empty() {
            (*text).clone_into(&mut entry.text);
        }
    }
    for (name, field, text) in FIELDS {
        let fields = &mut all.entry((*name).to_owned()).or_default().fields;
        fields.entry((*field).to_owned()).or_insert_with(|| (*text).to_owned());
    }
}

fn list(kind: &str) -> Description {
    let fields = [
        (
            "apiVersion",
            "Group and version of this list's schema, as group/version or, for the legacy group, the version alone.",
        ),
        ("items", "The objects of the list."),
        ("kind", "The kind of this list."),
        (
            "metadata",
            "Revision of the list, and where to continue it if it is a part.",
        ),
    ];
    Description {
        text: format!("A list of {kind} objects."),
        fields: fields
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect(),
    }
}

const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";
const INFO: &str = "io.k8s.apimachinery.pkg.version.Info";

/// Messages that stand inline in another one, and that one: there `k8s-openapi` has their fields.
const INLINED: &[(&str, &str)] = &[
    (
        "io.k8s.api.core.v1.EphemeralContainerCommon",
        "io.k8s.api.core.v1.EphemeralContainer",
    ),
    (
        "io.k8s.api.core.v1.PersistentVolumeSource",
        "io.k8s.api.core.v1.PersistentVolumeSpec",
    ),
    (
        "io.k8s.api.resource.v1.DeviceConfiguration",
        "io.k8s.api.resource.v1.DeviceClaimConfiguration",
    ),
    (
        "io.k8s.api.resource.v1beta1.DeviceConfiguration",
        "io.k8s.api.resource.v1beta1.DeviceClaimConfiguration",
    ),
    (
        "io.k8s.api.resource.v1beta2.DeviceConfiguration",
        "io.k8s.api.resource.v1beta2.DeviceClaimConfiguration",
    ),
    ("io.k8s.api.core.v1.ProbeHandler", "io.k8s.api.core.v1.Probe"),
    ("io.k8s.api.core.v1.VolumeSource", "io.k8s.api.core.v1.Volume"),
];

const TEXTS: &[(&str, &str)] = &[(WATCH_EVENT, "One event of a watch.")];

const FIELDS: &[(&str, &str, &str)] = &[
    (
        WATCH_EVENT,
        "object",
        "The object after the change; before it for DELETED; a Status for ERROR.",
    ),
    (WATCH_EVENT, "type", "ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."),
    (INFO, "buildDate", "When the server was built."),
    (INFO, "compiler", "The compiler that built it."),
    (INFO, "gitCommit", "The commit it was built from."),
    (
        INFO,
        "gitTreeState",
        "clean, or dirty where the tree had changes that were not committed.",
    ),
    (INFO, "gitVersion", "The full version."),
    (INFO, "goVersion", "Version of the language's toolchain."),
    (INFO, "platform", "Operating system and architecture."),
];
