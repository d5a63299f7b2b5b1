//! Defaults that depend on other fields.

use std::sync::LazyLock;

use keelson_api::core::v1::{Container, PodSpec, PodTemplateSpec, ResourceRequirements};
use keelson_machinery::equality;
use regex::Regex;

use super::resources::aggregate;
use crate::core::resource_list::round;
use crate::core::resource_name::is_huge_pages;

/// Defaults of a template.
pub fn of_template(template: &mut PodTemplateSpec) {
    of_spec(&mut template.spec);
}

/// Defaults of a pod: those of a template, and what only a pod gets so that templates stay as they were written.
pub fn of_pod(spec: &mut PodSpec) {
    of_spec(spec);
    for container in spec.containers.iter_mut().chain(&mut spec.init_containers) {
        requests_from_limits(&mut container.resources);
        if spec.host_network {
            use_host_ports(container);
        }
    }
    of_whole_pod(spec);
    spec.enable_service_links.get_or_insert(true);
}

/// What a pod as a whole may use, if it says so of some things, it says of others by what its containers say.
fn of_whole_pod(spec: &mut PodSpec) {
    let Some(whole) = spec.resources.as_deref() else { return };
    let (mut limits, mut requests) = (whole.limits.clone(), whole.requests.clone());
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    for (name, limit) in aggregate(spec, |resources| &resources.limits) {
        if is_huge_pages(&name) && !requests.contains_key(&name) {
            limits.entry(name).or_insert(limit);
        }
    }
    if !limits.is_empty() {
        for (name, request) in aggregate(spec, |resources| &resources.requests) {
            if matches!(name.as_str(), "cpu" | "memory") {
                requests.entry(name).or_insert(request);
            }
        }
        for (name, limit) in limits.iter().filter(|(name, _)| is_of_pods(name)) {
            requests.entry(name.clone()).or_insert_with(|| limit.clone());
        }
    }
    if let Some(whole) = spec.resources.as_deref_mut() {
        (whole.limits, whole.requests) = (limits, requests);
    }
}

/// Whether a pod as a whole can ask for the resource.
fn is_of_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_pages(name)
}

fn of_spec(spec: &mut PodSpec) {
    mirror_service_account(spec);
    for volume in &mut spec.volumes {
        let source = &mut volume.volume_source;
        if equality::is_zero(source) {
            source.empty_dir = Some(Box::default());
        }
        if let Some(image) = source.image.as_mut().filter(|i| i.pull_policy.is_empty()) {
            image.pull_policy = pull_policy(&image.reference).to_owned();
        }
        if let Some(claim) = source.ephemeral.as_mut().and_then(|e| e.volume_claim_template.as_mut()) {
            round(&mut claim.spec.resources.limits);
            round(&mut claim.spec.resources.requests);
        }
    }
    for container in spec.containers.iter_mut().chain(&mut spec.init_containers) {
        if container.image_pull_policy.is_empty() {
            container.image_pull_policy = pull_policy(&container.image).to_owned();
        }
        round(&mut container.resources.limits);
        round(&mut container.resources.requests);
    }
    for container in &mut spec.ephemeral_containers {
        let container = &mut container.ephemeral_container_common;
        if container.image_pull_policy.is_empty() {
            container.image_pull_policy = pull_policy(&container.image).to_owned();
        }
    }
    round(&mut spec.overhead);
}

/// The old name of the field goes along with the new one.
fn mirror_service_account(spec: &mut PodSpec) {
    if spec.service_account_name.is_empty() {
        spec.service_account_name.clone_from(&spec.service_account);
    }
    spec.service_account.clone_from(&spec.service_account_name);
}

fn requests_from_limits(resources: &mut ResourceRequirements) {
    for (name, limit) in &resources.limits {
        resources.requests.entry(name.clone()).or_insert_with(|| limit.clone());
    }
}

/// On the host's network a container's port is the host's.
fn use_host_ports(container: &mut Container) {
    for port in container.ports.iter_mut().filter(|p| p.host_port == 0) {
        port.host_port = port.container_port;
    }
}

/// A reference to an image: a host, a path, a tag, a digest.
static REFERENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?";
    let host = format!(r"(?:{label}(?:\.{label})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?");
    let part = "[a-z0-9]+(?:(?:[.]|_|__|-+)[a-z0-9]+)*";
    let digest = r"@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
    let tag = r":[\w&&[:ascii:]][\w.\-&&[:ascii:]]{0,127}";
    Regex::new(&format!("^(?:{host}/)?{part}(?:/{part})*(?:{tag})?(?:{digest})?$")).ok()
});

/// `Always` for the tag `latest` and for no tag at all, since what such a name means changes. What is no reference has
/// no tag either, but is never looked up.
fn pull_policy(image: &str) -> &'static str {
    // Groups of the expression would tell the parts too, but cost a hundred times as much with a long name.
    let (tagged, digest) = image
        .split_once('@')
        .map_or((image, None), |(tagged, sum)| (tagged, Some(sum)));
    let (name, tag) = match tagged.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (tagged, None),
    };
    let moving = tag.map_or(digest.is_none(), |tag| tag == "latest");
    match moving && is_name(name, image) && REFERENCE.as_ref().is_some_and(|reference| reference.is_match(image)) {
        true => "Always",
        false => "IfNotPresent",
    }
}

/// Whether a name is short enough below its host, and is no sum of an image by itself.
fn is_name(name: &str, image: &str) -> bool {
    let length = match name.split_once('/') {
        Some((host, path)) if host == "localhost" || host.contains(['.', ':']) => path.len(),
        Some((host, path)) if host.bytes().any(|b| b.is_ascii_uppercase()) => path.len(),
        Some(_) => name.len(),
        None => "library/".len() + name.len(),
    };
    let is_sum = image.len() == 64 && image.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    length <= 255 && !is_sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read, text};

    #[test]
    fn images_that_move_are_pulled_always() {
        for (image, policy) in [
            ("busybox", "Always"),
            ("busybox:latest", "Always"),
            ("registry:5000/busybox", "Always"),
            ("registry:5000/busybox:1.36", "IfNotPresent"),
            ("busybox@sha256:0123456789abcdef0123456789abcdef", "IfNotPresent"),
            ("busybox:latest@sha256:0123456789abcdef0123456789abcdef", "Always"),
            ("busybox:latest@sha256:0123", "IfNotPresent"),
            ("Busybox", "IfNotPresent"),
            ("Host/busybox", "Always"),
            ("[::1]:5000/a__b", "Always"),
            ("a___b", "IfNotPresent"),
            ("", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
        for (image, policy) in [
            ("x".repeat(247), "Always"),
            ("x".repeat(248), "IfNotPresent"),
            (format!("a.b/{}", "x".repeat(255)), "Always"),
            ("a".repeat(64), "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(&image), policy, "{image}");
        }
    }

    #[test]
    fn a_pod_gets_more_than_a_template() {
        let spec = r#"{"hostNetwork":true,"serviceAccount":"a","volumes":[{"name":"v"}],
            "containers":[{"name":"c","image":"x","ports":[{"containerPort":80}],
            "resources":{"limits":{"cpu":"1u","memory":"1"},"requests":{"memory":"2"}}}]}"#;
        let mut pod: PodSpec = read(spec);
        of_pod(&mut pod);
        assert_eq!(
            text(&pod),
            concat!(
                r#"{"volumes":[{"name":"v","emptyDir":{}}],"#,
                r#""containers":[{"name":"c","image":"x","ports":[{"hostPort":80,"containerPort":80}],"#,
                r#""resources":{"limits":{"cpu":"1m","memory":"1"},"requests":{"cpu":"1m","memory":"2"}},"#,
                r#""imagePullPolicy":"Always"}],"serviceAccountName":"a","serviceAccount":"a","hostNetwork":true,"#,
                r#""enableServiceLinks":true}"#
            )
        );
        let mut template = PodTemplateSpec {
            spec: read(spec),
            ..PodTemplateSpec::default()
        };
        of_template(&mut template);
        assert!(template.spec.enable_service_links.is_none());
        assert_eq!(template.spec.containers[0].ports[0].host_port, 0);
        assert_eq!(template.spec.containers[0].resources.requests.len(), 1);
    }
}
