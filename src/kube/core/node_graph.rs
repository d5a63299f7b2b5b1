//! The node graph of the built-in kinds: what pods and volumes need, as the authorization of nodes sees them.

use std::collections::HashSet;

use keelson_access::authz::node::{PodNeeds, ReadGraph, Reference, ReferenceKind, VolumeNeeds};
use keelson_api::core::v1::{PersistentVolume, Pod, PodSpec};
use keelson_api::resource_k8s_io::v1::ResourceSlice;
use keelson_api::storage_k8s_io::v1::VolumeAttachment;
use keelson_machinery::object::Object;
use keelson_machinery::reflect::{Flags, Reflect, Value};

use crate::typed::typed;

/// Marks a pod that mirrors a file of its node.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Messages below the specification of a pod that refer to an object in its namespace, and the field that names it. All
/// of them are found wherever they stand, so that no new place is forgotten.
const REFERRING: [(&str, &str, ReferenceKind); 12] = [
    ("AzureFileVolumeSource", "secretName", ReferenceKind::Secret),
    ("ConfigMapEnvSource", "name", ReferenceKind::ConfigMap),
    ("ConfigMapKeySelector", "name", ReferenceKind::ConfigMap),
    ("ConfigMapProjection", "name", ReferenceKind::ConfigMap),
    ("ConfigMapVolumeSource", "name", ReferenceKind::ConfigMap),
    ("LocalObjectReference", "name", ReferenceKind::Secret),
    ("PersistentVolumeClaimVolumeSource", "claimName", ReferenceKind::Claim),
    ("SecretEnvSource", "name", ReferenceKind::Secret),
    ("SecretKeySelector", "name", ReferenceKind::Secret),
    ("SecretProjection", "name", ReferenceKind::Secret),
    ("SecretVolumeSource", "secretName", ReferenceKind::Secret),
    ("PodResourceClaim", "resourceClaimName", ReferenceKind::ResourceClaim),
];
const PACKAGE: &str = "io.k8s.api.core.v1.";

/// Reads the kinds of this build.
pub struct Reader;

impl ReadGraph for Reader {
    fn pod(&self, pod: &dyn Object) -> Option<PodNeeds> {
        let pod = typed::<Pod>(pod)?;
        let node = Some(&pod.spec.node_name).filter(|node| !node.is_empty())?;
        let mirrors = pod.metadata.annotations.contains_key(MIRROR);
        Some(PodNeeds {
            node: node.clone(),
            references: if mirrors { Vec::new() } else { references(pod) },
        })
    }

    fn volume(&self, volume: &dyn Object) -> Option<VolumeNeeds> {
        let volume = typed::<PersistentVolume>(volume)?;
        let claim = volume.spec.claim_ref.as_deref();
        let claim = claim.map(|claim| (claim.namespace.clone(), claim.name.clone()));
        let mut secrets = Vec::new();
        let home = claim.as_ref().map_or("", |(namespace, _)| namespace);
        volume_secrets(&volume.spec, home, &mut secrets);
        Some(VolumeNeeds { claim, secrets })
    }

    fn attachment(&self, attachment: &dyn Object) -> Option<String> {
        Some(typed::<VolumeAttachment>(attachment)?.spec.node_name.clone())
    }

    fn slice(&self, slice: &dyn Object) -> Option<String> {
        typed::<ResourceSlice>(slice)?.spec.node_name.clone()
    }
}

fn references(pod: &Pod) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut add = |kind, name: &str| {
        if !name.is_empty() {
            found.push(Reference {
                kind,
                name: name.to_owned(),
            });
        }
    };
    add(ReferenceKind::ServiceAccount, &pod.spec.service_account_name);
    walk(&pod.spec, &mut add);
    let ephemeral = pod
        .spec
        .volumes
        .iter()
        .filter(|volume| volume.volume_source.ephemeral.is_some());
    for volume in ephemeral {
        add(ReferenceKind::Claim, &format!("{}-{}", pod.metadata.name, volume.name));
    }
    // What a status says is its node's word: it counts only for claims that the pod asks for.
    let asked: HashSet<&str> = pod
        .spec
        .resource_claims
        .iter()
        .map(|claim| claim.name.as_str())
        .collect();
    let told = pod.status.resource_claim_statuses.iter();
    let generated = told.filter(|status| asked.contains(status.name.as_str()));
    for name in generated.filter_map(|status| status.resource_claim_name.as_ref()) {
        add(ReferenceKind::ResourceClaim, name);
    }
    let extended = pod.status.extended_resource_claim_status.as_deref();
    if let Some(status) = extended {
        add(ReferenceKind::ResourceClaim, &status.resource_claim_name);
    }
    found
}

/// Whether a pod refers to a secret anywhere.
pub fn names_secrets(spec: &PodSpec) -> bool {
    names(spec, ReferenceKind::Secret)
}

/// Whether it refers to a config map.
pub fn names_config_maps(spec: &PodSpec) -> bool {
    names(spec, ReferenceKind::ConfigMap)
}

fn names(spec: &PodSpec, wanted: ReferenceKind) -> bool {
    let mut found = false;
    walk(spec, &mut |kind, name| found |= kind == wanted && !name.is_empty());
    found
}

fn walk(message: &dyn Reflect, add: &mut dyn FnMut(ReferenceKind, &str)) {
    let desc = message.desc();
    let name = desc.name.strip_prefix(PACKAGE).unwrap_or_default();
    let referring = REFERRING.iter().find(|(referring, _, _)| *referring == name);
    if let Some((_, field, kind)) = referring {
        add(*kind, named(message, field));
    }
    for (index, field) in desc.fields.iter().enumerate() {
        // The inlined part of a reference was read with it.
        if referring.is_none() || !field.flags.has(Flags::INLINE) {
            walk_value(message.get(index), add);
        }
    }
}

/// The text of a field of the message, or of one that is inlined in it.
fn named<'a>(message: &'a dyn Reflect, field: &str) -> &'a str {
    for (index, desc) in message.desc().fields.iter().enumerate() {
        match message.get(index) {
            Value::Str(text) if desc.json == field => return text,
            Value::Message(inlined) if desc.flags.has(Flags::INLINE) => return named(inlined, field),
            _ => {}
        }
    }
    ""
}

fn walk_value(value: Value<'_>, add: &mut dyn FnMut(ReferenceKind, &str)) {
    match value {
        Value::Message(message) => walk(message, add),
        Value::List(list) => {
            for index in 0..list.len() {
                walk_value(list.get(index), add);
            }
        }
        _ => {}
    }
}

/// Of the secrets of a volume a node needs those with which it stages, publishes, mounts and expands; what controllers
/// use is none of its business. A reference without namespace means that of the claim.
fn volume_secrets(message: &dyn Reflect, claim_namespace: &str, secrets: &mut Vec<(String, String)>) {
    let home = |namespace: &str| match namespace {
        "" => claim_namespace.to_owned(),
        namespace => namespace.to_owned(),
    };
    let text = |of: &dyn Reflect, field: &str| match of.desc().field(field).map(|(index, _)| of.get(index)) {
        Some(Value::Str(text)) => text.to_owned(),
        _ => String::new(),
    };
    let azure = text(message, "secretName");
    if !azure.is_empty() {
        secrets.push((home(&text(message, "secretNamespace")), azure));
    }
    for (index, field) in message.desc().fields.iter().enumerate() {
        let Value::Message(below) = message.get(index) else {
            continue;
        };
        if field.json.starts_with("controller") {
            continue;
        }
        match field.json.ends_with("ecretRef") {
            true => secrets.push((home(&text(below, "namespace")), text(below, "name"))),
            false => volume_secrets(below, claim_namespace, secrets),
        }
    }
}

#[cfg(test)]
mod tests {
    use keelson_machinery::reflect::{MessageDesc, Type};

    use super::*;
    use crate::testing::read;

    #[test]
    fn references_are_found_wherever_they_stand() {
        let pod: Pod = read(
            r#"{"metadata":{"name":"p"},"spec":{"nodeName":"n","serviceAccountName":"sa","imagePullSecrets":[{"name":"pull"}],
            "initContainers":[{"name":"i","envFrom":[{"secretRef":{"name":"init"}}]}],
            "ephemeralContainers":[{"name":"e","env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"deep","key":"k"}}}]}],
            "containers":[{"name":"c","envFrom":[{"configMapRef":{"name":"env"}}]}],
            "volumes":[{"name":"a","azureFile":{"secretName":"azure","shareName":"s"}},{"name":"b","ephemeral":{}},
            {"name":"c","projected":{"sources":[{"secret":{"name":"proj"}}]}},{"name":"d","persistentVolumeClaim":{"claimName":"c"}}]}}"#,
        );
        let mut found: Vec<String> = references(&pod)
            .iter()
            .map(|r| format!("{:?} {}", r.kind, r.name))
            .collect();
        found.sort_unstable();
        let want = [
            "Claim c",
            "Claim p-b",
            "ConfigMap deep",
            "ConfigMap env",
            "Secret azure",
            "Secret init",
            "Secret proj",
            "Secret pull",
            "ServiceAccount sa",
        ];
        assert_eq!(found, want);
        let mut pod = pod;
        pod.metadata.annotations.insert(MIRROR.to_owned(), "x".to_owned());
        assert!(Reader.pod(&pod).unwrap().references.is_empty());
        pod.spec.node_name.clear();
        assert!(Reader.pod(&pod).is_none());
    }

    #[test]
    fn a_status_names_only_claims_that_the_pod_asks_for() {
        let pod: Pod = read(
            r#"{"spec":{"nodeName":"n","resourceClaims":[{"name":"a","resourceClaimTemplateName":"t"}]},
            "status":{"resourceClaimStatuses":[{"name":"a","resourceClaimName":"own"},
            {"name":"b","resourceClaimName":"victim"}]}}"#,
        );
        let names: Vec<String> = references(&pod).into_iter().map(|r| r.name).collect();
        assert_eq!(names, ["own"]);
    }

    #[test]
    fn volumes_need_the_secrets_of_nodes_alone() {
        let volume: PersistentVolume = read(
            r#"{"spec":{"claimRef":{"namespace":"n","name":"c"},"csi":{"driver":"d","volumeHandle":"h",
            "nodePublishSecretRef":{"name":"publish"},"nodeStageSecretRef":{"namespace":"m","name":"stage"},
            "controllerPublishSecretRef":{"name":"controller"}}}}"#,
        );
        let needs = Reader.volume(&volume).unwrap();
        let own = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
        assert_eq!(needs.claim, Some(own("n", "c")));
        let mut secrets = needs.secrets;
        secrets.sort_unstable();
        assert_eq!(secrets, [own("m", "stage"), own("n", "publish")]);
        let volume: PersistentVolume =
            read(r#"{"spec":{"azureFile":{"secretName":"s","secretNamespace":"x","shareName":"a"}}}"#);
        assert_eq!(Reader.volume(&volume).unwrap().secrets, [own("x", "s")]);
    }

    /// Names of messages below `desc` whose names or fields speak of secrets or ConfigMaps.
    fn speaking<'d>(desc: &'d MessageDesc, seen: &mut Vec<&'d str>, out: &mut Vec<String>) {
        if seen.contains(&desc.name.as_str()) {
            return;
        }
        seen.push(&desc.name);
        let name = desc.name.strip_prefix(PACKAGE).unwrap_or(&desc.name);
        let speaks = |text: &str| {
            let text = text.to_ascii_lowercase();
            text.contains("secret") || text.contains("configmap")
        };
        let strings = desc.fields.iter().filter(|f| matches!(f.ty, Type::String));
        let inlines = desc.fields.iter().any(|f| f.flags.has(Flags::INLINE));
        let has_name = inlines || strings.clone().any(|f| f.json == "name");
        if strings.clone().any(|f| speaks(&f.json)) || (speaks(name) && has_name) {
            out.push(name.to_owned());
        }
        for field in &desc.fields {
            below(&field.ty, seen, out);
        }
    }

    fn below<'d>(ty: &'d Type, seen: &mut Vec<&'d str>, out: &mut Vec<String>) {
        match ty {
            Type::Message(desc) => speaking(desc, seen, out),
            Type::List(element) | Type::Map(element) => below(&element.ty, seen, out),
            _ => {}
        }
    }

    #[test]
    fn no_message_that_names_a_secret_is_forgotten() {
        let mut names = Vec::new();
        speaking(Pod::message_desc(), &mut Vec::new(), &mut names);
        let known: Vec<&str> = REFERRING.iter().map(|(name, _, _)| *name).collect();
        names.retain(|name| !known.contains(&name.as_str()));
        // Its secret may be a file of the node.
        assert_eq!(names, ["CephFSVolumeSource"]);
    }
}
