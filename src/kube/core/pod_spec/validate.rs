//! Validation of a pod's specification, in the order in which kube-apiserver tells faults.

use std::collections::HashMap;

use keelson_api::core::v1::{PodDNSConfig, PodResourceClaim, PodSpec, PodTemplateSpec, VolumeSource};
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::meta::v1::ObjectMeta;

use super::container::{self, Surroundings};
use super::{Options, affinity, annotations, resources, security, volumes};
use crate::faults::{self, Faults, Unique, given};
use crate::names::underscored_subdomain;
use crate::typed;

/// Marks a pod that mirrors a file of its node, which reaches less than one that a client made.
pub const MIRROR: &str = "kubernetes.io/config.mirror";
const RESTARTS: [&str; 3] = ["Always", "OnFailure", "Never"];
const RESOLVERS: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const PREEMPTIONS: [&str; 2] = ["PreemptLowerPriority", "Never"];
/// Bounds of what a resolver of names takes.
const MOST_NAMESERVERS: usize = 3;
const MOST_SEARCHES: usize = 32;
const LONGEST_SEARCHES: usize = 2048;
/// Longest name of a host, in bytes.
const HOST_MAX: usize = 64;

/// Faults of a template's metadata and specification. What `old` has is let through.
pub fn template(template: &PodTemplateSpec, old: Option<&PodTemplateSpec>, path: &Path) -> ErrorList {
    faults::at(path, |f| check_template(f, template, old))
}

/// As [`template`], at a place. Faults of its metadata are told at the template itself.
pub fn check_template(f: &mut Faults<'_>, template: &PodTemplateSpec, old: Option<&PodTemplateSpec>) {
    let (meta, spec) = (&template.metadata, &template.spec);
    f.labels("labels", &meta.labels);
    f.annotations("annotations", &meta.annotations);
    annotations::check(f, meta, spec, old.map(|old| &old.metadata));
    check(&mut f.at("spec"), spec, None, old.map(|old| &old.spec));
    annotations::check_profiles(&mut f.at("spec"), meta, spec);
    if !spec.ephemeral_containers.is_empty() {
        let text = "ephemeral containers not allowed in pod template";
        f.at("spec").at("ephemeralContainers").forbidden(text);
    }
}

/// Checks a specification. `pod` is the metadata of the pod whose it is. What `old` has is let through: the rules are
/// looked at without exceptions first, since they hardly ever find anything.
pub fn check(f: &mut Faults<'_>, spec: &PodSpec, pod: Option<&ObjectMeta>, old: Option<&PodSpec>) {
    let strict = Options {
        is_pod: pod.is_some(),
        ..Options::default()
    };
    let Some(old) = old else {
        return with_options(f, spec, pod, &strict);
    };
    let found = faults::at(&Path::root(), |f| with_options(f, spec, pod, &strict));
    if !found.is_empty() {
        let options = Options {
            is_pod: pod.is_some(),
            ..Options::of_stored(old)
        };
        with_options(f, spec, pod, &options);
    }
}

fn with_options(f: &mut Faults<'_>, spec: &PodSpec, pod: Option<&ObjectMeta>, options: &Options) {
    let name = pod.map_or("", |pod| pod.name.as_str());
    let sources = volumes::check(f, &spec.volumes, name, options);
    claims(f, &spec.resource_claims, pod);
    let claim_names = spec.resource_claims.iter().map(|claim| claim.name.as_str());
    let around = Surroundings {
        spec,
        volumes: sources,
        claims: claim_names.filter(|name| !name.is_empty()).collect(),
        options,
    };
    container::check(f, &around);
    resources::of_pod(&mut f.at("resources"), spec, options);
    host_network_ports(f, spec, options);
    policies(f, spec);
    f.labels("nodeSelector", &spec.node_selector);
    security::of_pod(f, spec, options);
    f.some("affinity", spec.affinity.as_deref(), |f, affinity| {
        affinity::check(f, affinity, options);
    });
    dns(f, spec);
    f.each("readinessGates", &spec.readiness_gates, |f, gate| {
        f.at("conditionType").qualified(&gate.condition_type);
    });
    let mut gates = Unique::default();
    f.each("schedulingGates", &spec.scheduling_gates, |f, gate| {
        f.qualified(&gate.name);
        gates.check(f, &gate.name);
    });
    affinity::spread(f, &spec.topology_spread_constraints, options);
    security::host_processes(f, spec);
    security::host_users(f, spec, options);
    host_name(f, spec);
    names(f, spec);
    affinity::tolerations(f, "tolerations", &spec.tolerations, options);
    f.each("hostAliases", &spec.host_aliases, |f, alias| {
        f.at("ip").ip(&alias.ip, &[]);
        f.each("hostnames", &alias.hostnames, |f, name| f.subdomain(name));
    });
    f.at("priorityClassName").subdomain(given(&spec.priority_class_name));
    f.at("runtimeClassName").subdomain(spec.runtime_class_name.as_deref());
    resources::overhead(&mut f.at("overhead"), &spec.overhead, options);
    security::system(f, spec);
    file_volumes(f, spec);
}

fn policies(f: &mut Faults<'_>, spec: &PodSpec) {
    f.at("restartPolicy").one_of_filled(&spec.restart_policy, &RESTARTS);
    f.at("dnsPolicy").one_of_filled(&spec.dns_policy, &RESOLVERS);
    f.at("preemptionPolicy")
        .one_of_filled(spec.preemption_policy.as_deref(), &PREEMPTIONS);
}

/// Claims of devices, each of them there or made from a template.
fn claims(f: &mut Faults<'_>, claims: &[PodResourceClaim], pod: Option<&ObjectMeta>) {
    let is_mirror = pod.is_some_and(|pod| pod.annotations.contains_key(MIRROR));
    if is_mirror {
        let text = "static pods do not support resource claims";
        let faults = claims.iter().map(|_| faults::at(&Path::new(""), |f| f.forbidden(text)));
        return faults.for_each(|faults| f.extend(faults));
    }
    let mut names = Unique::default();
    f.each("resourceClaims", claims, |f, claim| {
        let (made, named) = (&claim.resource_claim_template_name, &claim.resource_claim_name);
        if f.at("name").filled(&claim.name) && names.check(&mut f.at("name"), &claim.name) {
            f.at("name").label(&claim.name);
        }
        let text = match (named, made) {
            (Some(_), Some(_)) => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            (None, None) => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            _ => "",
        };
        if !text.is_empty() {
            f.invalid(typed::shown(claim), text);
        }
        f.at("resourceClaimName").subdomain(named);
        f.at("resourceClaimTemplateName").subdomain(made);
    });
}

/// On the host's network a container's port is the host's. A template may leave it open.
fn host_network_ports(f: &mut Faults<'_>, spec: &PodSpec, options: &Options) {
    if !spec.host_network {
        return;
    }
    f.each("containers", &spec.containers, |f, container| {
        f.each("ports", &container.ports, |f, port| {
            let is_said = options.is_pod || port.host_port != 0;
            let text = "must match `containerPort` when `hostNetwork` is true";
            f.at("hostPort")
                .invalid_if(is_said && port.host_port != port.container_port, port.host_port, text);
        });
    });
}

fn dns(f: &mut Faults<'_>, spec: &PodSpec) {
    let empty = PodDNSConfig::default();
    let config = spec.dns_config.as_deref();
    let mut f = f.at("dnsConfig");
    if spec.dns_policy == "None" {
        match config {
            None => return f.required("must provide `dnsConfig` when `dnsPolicy` is None"),
            Some(config) if config.nameservers.is_empty() => {
                let text = "must provide at least one DNS nameserver when `dnsPolicy` is None";
                return f.at("nameservers").required(text);
            }
            Some(_) => {}
        }
    }
    let config = config.unwrap_or(&empty);
    if config.nameservers.len() > MOST_NAMESERVERS {
        let text = format!("must not have more than {MOST_NAMESERVERS} nameservers");
        f.at("nameservers").invalid(config.nameservers.as_slice(), text);
    }
    f.each("nameservers", &config.nameservers, |f, address| f.ip(address, &[]));
    if config.searches.len() > MOST_SEARCHES {
        let text = format!("must not have more than {MOST_SEARCHES} search paths");
        f.at("searches").invalid(config.searches.as_slice(), text);
    }
    let length: usize = config.searches.iter().map(|search| search.len() + 1).sum();
    if length.saturating_sub(1) > LONGEST_SEARCHES {
        let text =
            format!("must not have more than {LONGEST_SEARCHES} characters (including spaces) in the search list");
        f.at("searches").invalid(config.searches.as_slice(), text);
    }
    f.each("searches", &config.searches, |f, search| {
        let name = search.strip_suffix('.').unwrap_or(search);
        if search != "." {
            f.texts(name, underscored_subdomain(name));
        }
    });
    f.each("options", &config.options, |f, option| {
        f.required_if(option.name.is_empty(), "must not be empty");
    });
}

fn host_name(f: &mut Faults<'_>, spec: &PodSpec) {
    let Some(name) = spec.hostname_override.as_deref() else {
        return;
    };
    let mut f = f.at("hostnameOverride");
    if spec.set_hostname_as_fqdn == Some(true) {
        f.forbidden("may not be specified when setHostnameAsFQDN is true");
    }
    f.forbidden_if(spec.host_network, "may not be specified when hostNetwork is true");
    f.max_bytes(name, HOST_MAX);
    f.subdomain(name);
}

/// Names of other objects and of the pod in DNS, and how long it may take.
fn names(f: &mut Faults<'_>, spec: &PodSpec) {
    f.at("serviceAccountName").subdomain(given(&spec.service_account_name));
    f.at("nodeName").subdomain(given(&spec.node_name));
    f.at("activeDeadlineSeconds")
        .within(spec.active_deadline_seconds, (1, i32::MAX.into()));
    f.at("hostname").label(given(&spec.hostname));
    f.at("subdomain").label(given(&spec.subdomain));
}

/// Files that variables are read from lie in volumes of the pod's own.
fn file_volumes(f: &mut Faults<'_>, spec: &PodSpec) {
    let sources: HashMap<&str, &VolumeSource> = spec
        .volumes
        .iter()
        .map(|volume| (volume.name.as_str(), &volume.volume_source))
        .collect();
    security::each_container(f, spec, |f, (_, env, _, _)| {
        f.each("env", env, |f, variable| {
            let from = variable.value_from.as_deref();
            let Some(file) = from.and_then(|from| from.file_key_ref.as_deref()) else {
                return;
            };
            let (mut from, volume) = (f.at("valueFrom"), &file.volume_name);
            let mut file = from.at("fileKeyRef");
            match sources.get(volume.as_str()) {
                None => file.at("volumeName").not_found(volume, ""),
                Some(source) if source.empty_dir.is_none() => file
                    .at("volumeName")
                    .invalid(volume, "referenced volume must be of type emptyDir"),
                Some(_) => {}
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lines, read_defaulted};

    fn faults(spec: &str) -> String {
        lines(&faults::of_spec(|f| {
            check(f, &read_defaulted(spec), Some(&ObjectMeta::default()), None);
        }))
    }

    #[test]
    fn faults_have_the_texts_of_the_api() {
        let fine = r#""containers":[{"name":"c","image":"x"}]"#;
        let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
            start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
            '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
        let name_fault = format!("spec.containers[0].name: Invalid value: \"C_\": {label}");
        for (spec, expected) in [
            (format!("{{{fine}}}"), ""),
            ("{}".to_owned(), "spec.containers: Required value"),
            (
                r#"{"containers":[{}]}"#.to_owned(),
                "spec.containers[0].name: Required value\nspec.containers[0].image: Required value",
            ),
            (r#"{"containers":[{"name":"C_","image":"x"}]}"#.to_owned(), name_fault.as_str()),
            (
                r#"{"containers":[{"name":"a","image":"x"}],"initContainers":[{"name":"a","image":" x"}]}"#.to_owned(),
                "spec.initContainers[0].name: Duplicate value: \"a\"",
            ),
            (
                r#"{"containers":[{"name":"a","image":"x","volumeMounts":[{"name":"v","mountPath":"/a"},{"name":"w"}]}],
                    "volumes":[{"name":"v","emptyDir":{},"hostPath":{"path":"/"}}]}"#
                    .to_owned(),
                "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type\n\
                 spec.containers[0].volumeMounts[0].name: Not found: \"v\"\n\
                 spec.containers[0].volumeMounts[1].name: Not found: \"w\"\n\
                 spec.containers[0].volumeMounts[1].mountPath: Required value",
            ),
            (
                r#"{"containers":[{"name":"a","image":"x","ports":[{"containerPort":0,"name":"P"},{"containerPort":70000}]}]}"#
                    .to_owned(),
                "spec.containers[0].ports[0].name: Invalid value: \"P\": must contain only alpha-numeric characters \
                 (a-z, 0-9), and hyphens (-)\n\
                 spec.containers[0].ports[0].name: Invalid value: \"P\": must contain at least one letter (a-z)\n\
                 spec.containers[0].ports[0].containerPort: Required value\n\
                 spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            ),
            (
                r#"{"containers":[{"name":"a","image":"x","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"2"}}}]}"#
                    .to_owned(),
                "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
            ),
            (
                format!(r#"{{{fine},"activeDeadlineSeconds":0}}"#),
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
            ),
            (
                format!(r#"{{{fine},"tolerations":[{{"effect":"NoSchedule","tolerationSeconds":1}}]}}"#),
                "spec.tolerations[0].operator: Invalid value: \"\": operator must be Exists when `key` is empty, which \
                 means \"match all values and all keys\"\n\
                 spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when \
                 `tolerationSeconds` is set",
            ),
        ] {
            assert_eq!(faults(&spec), expected, "{spec}");
        }
    }
}
