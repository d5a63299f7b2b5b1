//! Warnings of pod specifications: fields that do something else than they seem to, or nothing any longer.

mod paths;
mod ports;

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use keelson_api::core::v1::{
    Affinity, Container, EnvVar, NodeAffinity, NodeSelectorTerm, Pod, PodAffinityTerm, PodSpec, PodTemplateSpec,
    VolumeSource, WeightedPodAffinityTerm,
};
use keelson_machinery::field::Path;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::quantity::Quantity;
use keelson_machinery::validation::names;

use super::annotations;
use crate::ip;

/// Labels of nodes that have got other names: old name, since when, new name.
const NODE_LABELS: [(&str, &str, &str); 5] = [
    ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "v1.17",
        "topology.kubernetes.io/region",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "v1.17",
        "topology.kubernetes.io/zone",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "v1.17",
        "node.kubernetes.io/instance-type",
    ),
];

const NULL_SELECTOR: &str = "a null labelSelector results in matching no pod";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// Annotations that nobody reads any longer, the first versions that did not, and the fields instead.
const ENDED_ANNOTATIONS: [(&str, &str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "v1.16",
        "priorityClassName",
    ),
    ("security.alpha.kubernetes.io/sysctls", "v1.11", "sysctls"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "v1.11", "sysctls"),
];

/// Warnings of a new pod.
pub fn of_pod(pod: &Pod) -> Vec<String> {
    let mut found = of_name(&pod.metadata, "the Pod's hostname");
    found.extend(of_parts(&pod.spec, &pod.metadata, &Path::root()));
    found
}

/// Warnings of a template.
pub fn of_template(template: &PodTemplateSpec, path: &Path) -> Vec<String> {
    of_parts(&template.spec, &template.metadata, path)
}

/// Warnings of what makes pods: names of pods are made of its name, which matters while it is new.
pub fn of_owner(meta: &ObjectMeta, is_new: bool) -> Vec<String> {
    if is_new {
        of_name(meta, "Pod names and hostnames")
    } else {
        Vec::new()
    }
}

/// Kinds of volumes that came to an end: the field, whether it is set, and the versions in which it was deprecated and
/// in which it ceased to work.
pub fn of_ended_volumes(kinds: &[(&'static str, bool, &str, &str)], path: &Path) -> Vec<String> {
    let set = kinds.iter().filter(|(_, set, ..)| *set);
    set.map(|(name, _, since, until)| {
        format!(
            "{}: deprecated in {since}, non-functional in {until}+",
            path.child(*name)
        )
    })
    .collect()
}

fn of_name(meta: &ObjectMeta, used_in: &str) -> Vec<String> {
    let faults = names::dns_label(&meta.name);
    if faults.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS label is \
         recommended: [{}]",
        faults.join(" ")
    )]
}

/// What became of a label of nodes: `deprecated since v1.14; use "kubernetes.io/os" instead`.
pub fn of_node_label(key: &str) -> Option<String> {
    let (_, since, new) = NODE_LABELS.iter().find(|(old, ..)| *old == key)?;
    Some(format!("deprecated since {since}; use \"{new}\" instead"))
}

/// Warnings of the terms of a node selector.
pub fn of_node_terms(terms: &[NodeSelectorTerm], path: &Path) -> Vec<String> {
    let paths = terms.iter().enumerate().map(|(i, term)| (term, path.index(i)));
    paths.flat_map(|(term, path)| of_node_term(term, &path)).collect()
}

fn of_node_term(term: &NodeSelectorTerm, path: &Path) -> Vec<String> {
    let expressions = term.match_expressions.iter().enumerate();
    expressions
        .filter_map(|(i, e)| {
            let text = of_node_label(&e.key)?;
            let path = path.child("matchExpressions").index(i).child("key");
            Some(format!("{path}: {} is {text}", e.key))
        })
        .collect()
}

/// Warnings of amounts of bytes that are no whole numbers.
pub fn of_bytes(amounts: &BTreeMap<String, Quantity>, names: &[&str], path: &Path) -> Vec<String> {
    let found = names.iter().filter_map(|name| Some((name, amounts.get(*name)?)));
    found
        .filter(|(_, amount)| is_fraction(amount))
        .map(|(name, amount)| {
            let path = path.key(*name);
            format!(
                "{path}: fractional byte value {:?} is invalid, must be an integer",
                amount.as_str()
            )
        })
        .collect()
}

/// Of what is too large for thousandths nothing is said.
fn is_fraction(amount: &Quantity) -> bool {
    // Most are whole by their looks: no point, no part of one, no negative exponent.
    let is_part = |byte: u8| matches!(byte, b'.' | b'm' | b'u' | b'n' | b'-');
    if !amount.as_str().bytes().any(is_part) {
        return false;
    }
    let thousandths = amount.milli_value();
    thousandths.unsigned_abs() < i64::MAX.unsigned_abs() && thousandths % 1000 != 0
}

fn of_parts(spec: &PodSpec, meta: &ObjectMeta, path: &Path) -> Vec<String> {
    let at = path.child("spec");
    let mut found: Vec<String> = spec
        .node_selector
        .keys()
        .filter_map(|key| {
            Some(format!(
                "{}: {}",
                at.child("nodeSelector").key(key),
                of_node_label(key)?
            ))
        })
        .collect();
    let affinity = at.child("affinity");
    if let Some(node) = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref()) {
        found.extend(of_node_affinity(node, &affinity.child("nodeAffinity")));
    }
    found.extend(of_constraints(spec, &at.child("topologySpreadConstraints")));
    let at_annotations = path.child("metadata").child("annotations");
    found.extend(of_ended_annotations(meta, &at_annotations));
    found.extend(of_volumes(spec, &at));
    found.extend(of_lists(spec, &at));
    found.extend(of_bytes(
        &spec.overhead,
        &["memory", "ephemeral-storage"],
        &at.child("overhead"),
    ));
    found.extend(of_pod_profile(spec, meta, &at_annotations));
    let has_profiles = [SECCOMP_CONTAINER, annotations::PROFILE]
        .into_iter()
        .any(|prefix| meta.annotations.keys().any(|key| key.starts_with(prefix)));
    let is_template = !path.is_root();
    for (list, name) in [
        (&spec.init_containers, "initContainers"),
        (&spec.containers, "containers"),
    ] {
        for (i, container) in list.iter().enumerate() {
            if has_profiles {
                found.extend(of_profiles((spec, container, is_template), meta, &at_annotations));
            }
            found.extend(of_container(container, &at.child(name).index(i)));
        }
    }
    found.extend(ports::of_ports(spec, &at));
    if spec.termination_grace_period_seconds.is_some_and(|s| s < 0) {
        let path = at.child("terminationGracePeriodSeconds");
        found.push(format!(
            "{path}: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    if let Some(affinity_of_pods) = spec.affinity.as_deref() {
        found.extend(of_pod_affinity(affinity_of_pods, &affinity));
    }
    found.extend(of_addresses(spec, &at));
    found
}

fn of_addresses(spec: &PodSpec, path: &Path) -> Vec<String> {
    let servers = spec.dns_config.iter().flat_map(|dns| &dns.nameservers).enumerate();
    let at = path.child("dnsConfig").child("nameservers");
    let mut found: Vec<String> = servers.filter_map(|(i, ip)| ip::warnings(ip, &at.index(i))).collect();
    let at = path.child("hostAliases");
    let aliases = spec.host_aliases.iter().enumerate();
    found.extend(aliases.filter_map(|(i, alias)| ip::warnings(&alias.ip, &at.index(i).child("ip"))));
    found
}

fn of_node_affinity(affinity: &NodeAffinity, path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
        let path = path
            .child("requiredDuringSchedulingIgnoredDuringExecution")
            .child("nodeSelectorTerms");
        found.extend(of_node_terms(&required.node_selector_terms, &path));
    }
    let preferred = path.child("preferredDuringSchedulingIgnoredDuringExecution");
    for (i, term) in affinity
        .preferred_during_scheduling_ignored_during_execution
        .iter()
        .enumerate()
    {
        found.extend(of_node_term(&term.preference, &preferred.index(i).child("preference")));
    }
    found
}

fn of_pod_affinity(affinity: &Affinity, path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(near) = &affinity.pod_affinity {
        found.extend(of_pod_terms(
            &near.required_during_scheduling_ignored_during_execution,
            &near.preferred_during_scheduling_ignored_during_execution,
            &path.child("podAffinity"),
        ));
    }
    if let Some(far) = &affinity.pod_anti_affinity {
        found.extend(of_pod_terms(
            &far.required_during_scheduling_ignored_during_execution,
            &far.preferred_during_scheduling_ignored_during_execution,
            &path.child("podAntiAffinity"),
        ));
    }
    found
}

fn of_pod_terms(required: &[PodAffinityTerm], preferred: &[WeightedPodAffinityTerm], path: &Path) -> Vec<String> {
    let one = path.child("requiredDuringSchedulingIgnoredDuringExecution");
    let other = path.child("preferredDuringSchedulingIgnoredDuringExecution");
    let required = required.iter().enumerate().map(|(i, term)| (term, one.index(i)));
    let preferred = preferred
        .iter()
        .enumerate()
        .map(|(i, term)| (&term.pod_affinity_term, other.index(i).child("podAffinityTerm")));
    required
        .chain(preferred)
        .filter(|(term, _)| term.label_selector.is_none())
        .map(|(_, path)| format!("{}: {NULL_SELECTOR}", path.child("labelSelector")))
        .collect()
}

fn of_constraints(spec: &PodSpec, path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for (i, constraint) in spec.topology_spread_constraints.iter().enumerate() {
        let path = path.index(i);
        if let Some(text) = of_node_label(&constraint.topology_key) {
            let path = path.child("topologyKey");
            found.push(format!("{path}: {} is {text}", constraint.topology_key));
        }
        if constraint.label_selector.is_none() {
            found.push(format!("{}: {NULL_SELECTOR}", path.child("labelSelector")));
        }
    }
    found
}

fn of_ended_annotations(meta: &ObjectMeta, path: &Path) -> Vec<String> {
    let ended = ENDED_ANNOTATIONS.iter();
    let found = ended.filter(|(key, ..)| meta.annotations.contains_key(*key));
    found
        .map(|(key, since, field)| format!("{}: {}", path.key(*key), instead(since, field)))
        .collect()
}

fn instead(since: &str, field: &str) -> String {
    format!("non-functional in {since}+; use the \"{field}\" field instead")
}

/// The annotation for the whole pod, where no field says the same.
fn of_pod_profile(spec: &PodSpec, meta: &ObjectMeta, path: &Path) -> Option<String> {
    let context = spec.security_context.as_deref();
    let has_field = context.is_some_and(|context| context.seccomp_profile.is_some());
    let said = !has_field && meta.annotations.contains_key(SECCOMP_POD);
    said.then(|| format!("{}: {}", path.key(SECCOMP_POD), instead("v1.27", "seccompProfile")))
}

/// The annotations for a container, where no field says the same. What pods, and not templates, say of AppArmor becomes
/// a field when they are made, and is told there.
fn of_profiles(
    (spec, container, is_template): (&PodSpec, &Container, bool),
    meta: &ObjectMeta,
    path: &Path,
) -> Vec<String> {
    let mut found = Vec::new();
    let context = container.security_context.as_deref();
    let key = format!("{SECCOMP_CONTAINER}{}", container.name);
    if context.is_none_or(|context| context.seccomp_profile.is_none()) && meta.annotations.contains_key(&key) {
        found.push(format!("{}: {}", path.key(key), instead("v1.27", "seccompProfile")));
    }
    let of_pod = spec.security_context.as_deref();
    let of_pod = of_pod.and_then(|context| context.app_armor_profile.as_deref());
    let key = format!("{}{}", annotations::PROFILE, container.name);
    if let Some(annotation) = meta.annotations.get(&key)
        && is_template
        && context.is_none_or(|context| context.app_armor_profile.is_none())
        && (of_pod.is_none() || !annotations::names_profile(annotation, of_pod))
    {
        let text = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
        found.push(format!("{}: {text}", path.key(key)));
    }
    found
}

fn of_volumes(spec: &PodSpec, path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for (i, volume) in spec.volumes.iter().enumerate() {
        found.extend(of_volume(&volume.volume_source, &path.child("volumes").index(i)));
    }
    found.extend(paths::of_paths(spec));
    found
}

fn of_lists(spec: &PodSpec, path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, alias) in spec.host_aliases.iter().enumerate() {
        if !seen.insert(&alias.ip) {
            let path = path.child("hostAliases").index(i).child("ip");
            found.push(format!("{path}: duplicate ip {:?}", alias.ip));
        }
    }
    let at = path.child("imagePullSecrets");
    let secrets = || spec.image_pull_secrets.iter().enumerate();
    let mut seen = BTreeSet::new();
    for (i, secret) in secrets() {
        if !seen.insert(&secret.name) {
            found.push(format!(
                "{}: duplicate name {:?}",
                at.index(i).child("name"),
                secret.name
            ));
        }
    }
    for (i, _) in secrets().filter(|(_, s)| s.name.is_empty()) {
        found.push(format!("{}: invalid empty name \"\"", at.index(i).child("name")));
    }
    found
}

fn of_volume(source: &VolumeSource, path: &Path) -> Vec<String> {
    let gone = [
        (
            "photonPersistentDisk",
            source.photon_persistent_disk.is_some(),
            "v1.11",
            "v1.16",
        ),
        ("scaleIO", source.scale_io.is_some(), "v1.16", "v1.22"),
        ("flocker", source.flocker.is_some(), "v1.22", "v1.25"),
        ("storageOS", source.storageos.is_some(), "v1.22", "v1.25"),
        ("quobyte", source.quobyte.is_some(), "v1.22", "v1.25"),
        ("glusterfs", source.glusterfs.is_some(), "v1.25", "v1.26"),
        ("cephfs", source.cephfs.is_some(), "v1.28", "v1.31"),
        ("rbd", source.rbd.is_some(), "v1.28", "v1.31"),
    ];
    let mut found = of_ended_volumes(&gone, path);
    if source.git_repo.is_some() {
        let path = path.child("gitRepo");
        found.push(format!(
            "{path}: deprecated in v1.11, and disabled by default in v1.33+"
        ));
    }
    if let Some(claim) = source.ephemeral.as_ref().and_then(|e| e.volume_claim_template.as_ref()) {
        let path = path
            .child("ephemeral")
            .child("volumeClaimTemplate")
            .child("spec")
            .child("resources");
        found.extend(of_bytes(
            &claim.spec.resources.requests,
            &["storage"],
            &path.child("requests"),
        ));
    }
    found
}

fn of_container(container: &Container, path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for name in ["memory", "ephemeral-storage"] {
        let at = path.child("resources");
        found.extend(of_bytes(&container.resources.limits, &[name], &at.child("limits")));
        found.extend(of_bytes(&container.resources.requests, &[name], &at.child("requests")));
    }
    let mut seen = BTreeSet::new();
    for (i, entry) in container.env.iter().enumerate() {
        if !seen.insert(&entry.name) && !builds_on_itself(entry) {
            let path = path.child("env").index(i);
            found.push(format!(
                "{path}: hides previous definition of {:?}, which may be dropped when using apply",
                entry.name
            ));
        }
    }
    found
}

/// A value may be made of the one before.
fn builds_on_itself(entry: &EnvVar) -> bool {
    let own = format!("$({})", entry.name);
    entry.value_from.is_none() && entry.value != own && entry.value.contains(&own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    fn warnings(spec: &str) -> Vec<String> {
        of_template(&read(&format!(r#"{{"spec":{spec}}}"#)), &Path::new("template"))
    }

    #[test]
    fn what_does_nothing_any_longer_is_told() {
        for (spec, expected) in [
            ("{}", vec![]),
            (
                r#"{"nodeSelector":{"beta.kubernetes.io/os":"x"}}"#,
                vec![
                    r#"template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead"#,
                ],
            ),
            (
                r#"{"volumes":[{"name":"a"},{"name":"b","rbd":{}},{"name":"c","gitRepo":{}}]}"#,
                vec![
                    "template.spec.volumes[1].rbd: deprecated in v1.28, non-functional in v1.31+",
                    "template.spec.volumes[2].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
                ],
            ),
            (
                r#"{"topologySpreadConstraints":[{"topologyKey":"beta.kubernetes.io/os"},{"labelSelector":{}}]}"#,
                vec![
                    r#"template.spec.topologySpreadConstraints[0].topologyKey: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead"#,
                    "template.spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
                ],
            ),
            (
                r#"{"imagePullSecrets":[{"name":""},{"name":"a"},{"name":"a"}],"terminationGracePeriodSeconds":-1}"#,
                vec![
                    r#"template.spec.imagePullSecrets[2].name: duplicate name "a""#,
                    r#"template.spec.imagePullSecrets[0].name: invalid empty name """#,
                    "template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
                ],
            ),
            (
                r#"{"containers":[{"name":"c","env":[{"name":"A"},{"name":"A"}],"resources":{"limits":{"memory":"1500m","cpu":"1500m"}}}]}"#,
                vec![
                    r#"template.spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer"#,
                    r#"template.spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply"#,
                ],
            ),
            (
                r#"{"containers":[{"name":"c","resources":{"limits":{"memory":"1E"},"requests":{"memory":"10P"}}}]}"#,
                vec![],
            ),
        ] {
            assert_eq!(warnings(spec), expected, "{spec}");
        }
    }

    /// Of a container `c`, beside one that nobody has said anything about.
    #[test]
    fn profiles_in_annotations_are_told_where_no_field_says_them() {
        let old = |kind: &str| format!("template.metadata.annotations[container.{kind}/c]: ");
        let app_armor = old("apparmor.security.beta.kubernetes.io")
            + "deprecated since v1.30; use the \"appArmorProfile\" field instead";
        let seccomp = old("seccomp.security.alpha.kubernetes.io")
            + "non-functional in v1.27+; use the \"seccompProfile\" field instead";
        let told = |of_pod: &str, of_container: &str| {
            let text = format!(
                r#"{{"metadata":{{"annotations":{{"{}c":"unconfined","{SECCOMP_CONTAINER}c":"unconfined",
                "{}d":"unconfined"}}}},"spec":{{"securityContext":{of_pod},
                "containers":[{{"name":"c","securityContext":{of_container}}},{{"name":"e"}}]}}}}"#,
                annotations::PROFILE,
                annotations::PROFILE,
            );
            let template: PodTemplateSpec = read(&text);
            let pod = Pod {
                metadata: template.metadata.clone(),
                spec: template.spec.clone(),
                ..Pod::default()
            };
            // Pods have AppArmor's as a field when they are made.
            assert!(
                super::of_pod(&pod).iter().all(|text| !text.contains("apparmor")),
                "{text}"
            );
            of_template(&template, &Path::new("template"))
        };
        let profile = |kind: &str| format!(r#"{{"appArmorProfile":{{"type":"{kind}"}}}}"#);
        assert_eq!(told("{}", "{}"), [seccomp.clone(), app_armor.clone()]);
        assert_eq!(told(&profile("Unconfined"), "{}"), std::slice::from_ref(&seccomp));
        assert_eq!(
            told(&profile("RuntimeDefault"), "{}"),
            [seccomp.clone(), app_armor.clone()]
        );
        assert_eq!(told("{}", &profile("RuntimeDefault")), [seccomp]);
        assert_eq!(told("{}", r#"{"seccompProfile":{"type":"Unconfined"}}"#), [app_armor]);
    }

    #[test]
    fn a_variable_may_be_made_of_itself() {
        let told = |second: &str| {
            let spec = format!(r#"{{"containers":[{{"name":"c","env":[{{"name":"A","value":"x"}},{second}]}}]}}"#);
            warnings(&spec).len()
        };
        assert_eq!(told(r#"{"name":"A","value":"$(A)y"}"#), 0);
        assert_eq!(told(r#"{"name":"A","value":"$(A)"}"#), 1);
        assert_eq!(told(r#"{"name":"A","value":"y"}"#), 1);
        assert_eq!(told(r#"{"name":"A","valueFrom":{}}"#), 1);
    }

    #[test]
    fn names_become_host_names() {
        let meta: ObjectMeta = read(r#"{"name":"a.b"}"#);
        assert_eq!(
            of_owner(&meta, true),
            [
                "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS \
              label is recommended: [must not contain dots]"
            ]
        );
        assert!(of_owner(&read(r#"{"name":"a-b"}"#), true).is_empty());
    }
}
