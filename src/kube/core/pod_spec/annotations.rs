//! Annotations of pods and templates that say what a pod is, or stood for fields once.

use keelson_api::core::v1::{AppArmorProfile, Pod, PodSpec, SeccompProfile, Toleration};
use keelson_machinery::json;
use keelson_machinery::meta::v1::ObjectMeta;

use super::security::{containers, each_container, each_context};
use super::{MIRROR, Options, affinity};
use crate::faults::Faults;
use crate::typed;

/// Begins the names of profiles of AppArmor, by container.
pub const PROFILE: &str = "container.apparmor.security.beta.kubernetes.io/";
/// The profile of seccomp of a pod, and what begins those of containers.
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// What the annotations of profiles say.
const DEFAULTS: [&str; 2] = ["runtime/default", "docker/default"];
const UNCONFINED: &str = "unconfined";
const LOCALHOST: &str = "localhost/";
/// Longest path of a profile, in bytes.
const PROFILE_MAX: usize = 4095;

/// Checks the annotations of a pod or a template: `f` stands where its labels and annotations do. What `old` has wrong
/// is let through.
pub fn check(f: &mut Faults<'_>, meta: &ObjectMeta, spec: &PodSpec, old: Option<&ObjectMeta>) {
    let annotations = &meta.annotations;
    if annotations.is_empty() {
        return;
    }
    if let Some(value) = annotations.get(MIRROR).filter(|_| spec.node_name.is_empty()) {
        f.at("annotations")
            .key(MIRROR)
            .invalid(value, "must set spec.nodeName if mirror pod annotation is set");
    }
    if let Some(text) = annotations.get(TOLERATIONS).filter(|text| !text.is_empty()) {
        tolerations(&mut f.at("annotations"), text);
    }
    let is_wrong = |meta: &ObjectMeta| meta.annotations.get(DELETION_COST).is_some_and(|cost| !is_cost(cost));
    if is_wrong(meta) && !old.is_some_and(is_wrong) {
        let cost = annotations.get(DELETION_COST).map_or("", String::as_str);
        f.at("annotations")
            .key(DELETION_COST)
            .invalid(cost, "must be a 32bit integer");
    }
    for (key, profile) in annotations {
        if key == SECCOMP_POD || key.starts_with(SECCOMP) {
            seccomp(&mut f.at("annotations").at(key), profile);
        }
    }
    for (key, profile) in annotations {
        if let Some(container) = key.strip_prefix(PROFILE) {
            app_armor(&mut f.at("annotations").key(key), (container, profile), spec);
        }
    }
}

/// Tolerations as JSON, which is how they came once.
fn tolerations(f: &mut Faults<'_>, text: &str) {
    let items: Result<Vec<serde_json::Value>, _> = serde_json::from_str(text);
    let read = items.map_err(|error| error.to_string()).and_then(|items| {
        let read = items.iter().map(|item| {
            let mut toleration = Toleration::default();
            let read = json::read(item.to_string().as_bytes(), &mut toleration);
            read.map(|_| toleration).map_err(|error| error.to_string())
        });
        read.collect::<Result<Vec<_>, _>>()
    });
    match read {
        Ok(all) => affinity::tolerations(f, TOLERATIONS, &all, &Options::default()),
        Err(error) => f.invalid(TOLERATIONS, error),
    }
}

/// A number of 32 bits without sign `+` and without leading zeros.
fn is_cost(text: &str) -> bool {
    let starts_well = text == "0" || text.starts_with(|c: char| c == '-' || ('1'..='9').contains(&c));
    starts_well && text.parse::<i32>().is_ok()
}

fn seccomp(f: &mut Faults<'_>, profile: &str) {
    match profile.strip_prefix(LOCALHOST) {
        _ if DEFAULTS.contains(&profile) || profile == UNCONFINED => {}
        Some(path) => f.descending_path(path),
        None => f.invalid(profile, "must be a valid seccomp profile"),
    }
}

fn app_armor(f: &mut Faults<'_>, (container, profile): (&str, &str), spec: &PodSpec) {
    let added = spec.ephemeral_containers.iter();
    let mut added = added.map(|c| c.ephemeral_container_common.name.as_str());
    if !containers(spec).any(|(_, _, c)| c.name == container) && !added.any(|name| name == container) {
        f.invalid(container, "container not found");
    }
    let is_known = profile.is_empty() || profile == DEFAULTS[0] || profile == UNCONFINED;
    if !is_known && !profile.starts_with(LOCALHOST) {
        f.invalid(profile, format!("invalid AppArmor profile name: {profile:?}"));
    }
}

/// Profiles that stand in a field and in an annotation must be the same. `f` stands at the specification.
pub fn check_profiles(f: &mut Faults<'_>, meta: &ObjectMeta, spec: &PodSpec) {
    if meta.annotations.is_empty() {
        return;
    }
    let context = spec.security_context.as_deref();
    let seccomp = |f: &mut Faults<'_>, profile: Option<&SeccompProfile>, key: &str| {
        if let (Some(profile), Some(annotation)) = (profile, meta.annotations.get(key)) {
            let named = (profile.r#type.as_str(), profile.localhost_profile.as_deref());
            same_profile(&mut f.at("seccompProfile"), "seccomp", annotation, named);
        }
    };
    let of_pod = context.and_then(|context| context.seccomp_profile.as_deref());
    seccomp(&mut f.at("securityContext"), of_pod, SECCOMP_POD);
    each_context(f, spec, |f, context, name| {
        let key = format!("{SECCOMP}{name}");
        seccomp(f, context.seccomp_profile.as_deref(), &key);
    });
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return;
    }
    let of_pod = context.and_then(|context| context.app_armor_profile.as_deref());
    each_container(f, spec, |f, (name, _, _, context)| {
        let own = context.and_then(|context| context.app_armor_profile.as_deref());
        let annotation = meta.annotations.get(&format!("{PROFILE}{name}"));
        if let (Some(profile), Some(annotation)) = (own.or(of_pod), annotation) {
            let named = (profile.r#type.as_str(), profile.localhost_profile.as_deref());
            let mut f = f.at("securityContext");
            same_profile(&mut f.at("appArmorProfile"), "apparmor", annotation, named);
        }
    });
}

fn same_profile(f: &mut Faults<'_>, of: &str, annotation: &str, (r#type, path): (&str, Option<&str>)) {
    let is_same = match r#type {
        "Unconfined" => annotation == UNCONFINED,
        "RuntimeDefault" if of == "seccomp" => DEFAULTS.contains(&annotation),
        "RuntimeDefault" => annotation == DEFAULTS[0],
        "Localhost" => match annotation.strip_prefix(LOCALHOST) {
            Some(named) if path != Some(named) => {
                let text = format!("{of} profile in annotation and field must match");
                return f.at("localhostProfile").forbidden(text);
            }
            named => named.is_some(),
        },
        _ => true,
    };
    if !is_same {
        f.at("type")
            .forbidden(format!("{of} type in annotation and field must match"));
    }
}

/// The profile that an annotation names; `None`: none.
fn profile_of(annotation: &str) -> Option<AppArmorProfile> {
    let (r#type, path) = match annotation.strip_prefix(LOCALHOST) {
        _ if annotation == UNCONFINED => ("Unconfined", None),
        _ if annotation == DEFAULTS[0] => ("RuntimeDefault", None),
        Some(path) if !path.is_empty() && path.trim() == path && path.len() <= PROFILE_MAX => ("Localhost", Some(path)),
        _ => return None,
    };
    Some(AppArmorProfile {
        r#type: r#type.to_owned(),
        localhost_profile: path.map(str::to_owned),
    })
}

/// Whether an annotation names this profile.
pub fn names_profile(annotation: &str, profile: Option<&AppArmorProfile>) -> bool {
    typed::same(profile_of(annotation).as_ref(), profile)
}

/// Bytes of profiles that become fields: more than all annotations may have, so of a valid pod all do. Containers that
/// share a name share an annotation.
const MAX_PROFILES: usize = 1 << 20;

/// Writes profiles that annotations name into the fields of their containers. Returns the annotations that clients
/// should not write any longer: those that became fields, and those that can't.
pub fn profiles_to_fields(pod: &mut Pod) -> Vec<String> {
    let mut old = Vec::new();
    let spec = &mut pod.spec;
    if !pod.metadata.annotations.keys().any(|key| key.starts_with(PROFILE))
        || spec.os.as_ref().is_some_and(|os| os.name == "windows")
    {
        return old;
    }
    let context = spec.security_context.as_deref();
    let of_pod = context.and_then(|context| context.app_armor_profile.clone());
    let mut room = MAX_PROFILES;
    for container in spec.init_containers.iter_mut().chain(&mut spec.containers) {
        let key = format!("{PROFILE}{}", container.name);
        let Some(annotation) = pod.metadata.annotations.get(&key) else {
            continue;
        };
        let context = container.security_context.as_deref();
        if context.is_some_and(|context| context.app_armor_profile.is_some()) {
            continue;
        }
        match profile_of(annotation) {
            Some(profile) if typed::same(Some(&profile), of_pod.as_deref()) => continue,
            Some(profile) => {
                let Some(left) = room.checked_sub(annotation.len()) else {
                    continue;
                };
                room = left;
                let context = container.security_context.get_or_insert_with(Default::default);
                context.app_armor_profile = Some(Box::new(profile));
            }
            None => {}
        }
        old.push(key);
    }
    old
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults;
    use crate::testing::{annotated_pod as pod, lines};

    #[test]
    fn a_mirror_is_on_a_node() {
        let told = |pod: &Pod| {
            lines(&faults::of_object(|f| {
                check(&mut f.at("metadata"), &pod.metadata, &pod.spec, None)
            }))
        };
        assert_eq!(told(&pod(&[(MIRROR, "x")], "n")), "");
        assert_eq!(
            told(&pod(&[(MIRROR, "x")], "")),
            "metadata.annotations[kubernetes.io/config.mirror]: Invalid value: \"x\": must set spec.nodeName if mirror pod \
             annotation is set"
        );
    }

    #[test]
    fn what_stood_in_annotations_once_is_checked() {
        let told = |key: &str, value: &str| {
            let pod = pod(&[(key, value)], "");
            lines(&faults::of_object(|f| check(f, &pod.metadata, &pod.spec, None)))
        };
        for (key, good, bad) in [
            (DELETION_COST, "-5", "+5"),
            (DELETION_COST, "0", "05"),
            (SECCOMP_POD, "docker/default", "x"),
            (SECCOMP_POD, "localhost/a", "localhost/../a"),
            (TOLERATIONS, r#"[{"operator":"Exists"}]"#, "{"),
            (TOLERATIONS, "", r#"[{"operator":"Equal"}]"#),
        ] {
            assert_eq!(told(key, good), "", "{key}: {good}");
            assert_ne!(told(key, bad), "", "{key}: {bad}");
        }
        assert_eq!(
            told(&format!("{PROFILE}c"), "x").lines().count(),
            2,
            "neither the container nor the profile is there"
        );
    }

    #[test]
    fn profiles_become_fields() {
        let mut of = pod(
            &[(&format!("{PROFILE}c"), "localhost/p"), (&format!("{PROFILE}d"), "x")],
            "",
        );
        of.spec.containers = ["c", "d", "e"]
            .map(|name| keelson_api::core::v1::Container {
                name: name.to_owned(),
                ..Default::default()
            })
            .to_vec();
        assert_eq!(profiles_to_fields(&mut of).len(), 2);
        let profiles: Vec<bool> = of
            .spec
            .containers
            .iter()
            .map(|c| c.security_context.is_some())
            .collect();
        assert_eq!(profiles, [true, false, false]);
        let told = lines(&faults::of_object(|f| check_profiles(f, &of.metadata, &of.spec)));
        assert_eq!(told, "");
        of.metadata
            .annotations
            .insert(format!("{PROFILE}c"), "unconfined".to_owned());
        let told = lines(&faults::of_object(|f| check_profiles(f, &of.metadata, &of.spec)));
        assert!(
            told.starts_with("containers[0].securityContext.appArmorProfile.type: Forbidden"),
            "{told}"
        );
    }
}
