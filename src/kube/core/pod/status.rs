//! The status of a pod: nodes write it, and others act on what it says of claims, nodes and addresses.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use keelson_api::core::v1::{Container, Pod, PodCondition, PodExtendedResourceClaimStatus, PodStatus};
use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path};
use keelson_machinery::validation::names;

use super::container_status;
use crate::faults::{self, Faults};
use crate::ip;
use crate::typed::IMMUTABLE;

const GENERATION: &str = "must be a non-negative integer";

/// Faults of a status that a client writes.
pub fn validate(new: &Pod, old: &Pod) -> ErrorList {
    let path = Path::new("status");
    let mut errors = faults::at(&path, |f| conditions(f, &new.status.conditions));
    errors.extend(nominated_node(new, old, &path.child("nominatedNodeName")));
    let (class, generation) = (&new.status.qos_class, new.status.observed_generation);
    if generation < 0 {
        let path = path.child("observedGeneration");
        errors.push(FieldError::invalid(&path, generation, GENERATION));
    }
    if *class != old.status.qos_class {
        errors.push(FieldError::invalid(&path.child("qosClass"), class, IMMUTABLE));
    }
    errors.extend(faults::at(&path, |f| container_status::transitions(f, new, old)));
    errors.extend(claims(new, &path.child("resourceClaimStatuses")));
    if let Some(status) = &new.status.extended_resource_claim_status {
        errors.extend(extended_claim(new, status, &path.child("extendedResourceClaimStatus")));
    }
    let of = |pod: &Pod| pod.status.pod_ips.iter().map(|ip| ip.ip.clone()).collect::<Vec<_>>();
    errors.extend(addresses(&of(new), &of(old), &path.child("podIPs")));
    errors.extend(host_addresses(new, old, &path));
    errors.extend(faults::at(&path, |f| container_status::details(f, new)));
    errors
}

/// Conditions of others have names with a domain, or without.
fn conditions(f: &mut Faults<'_>, conditions: &[PodCondition]) {
    f.each("conditions", conditions, |f, condition| {
        if condition.observed_generation < 0 {
            f.at("observedGeneration")
                .invalid(condition.observed_generation, GENERATION);
        }
        if !matches!(&*condition.r#type, "PodScheduled" | "Ready" | "Initialized") {
            f.at("Type").qualified(&condition.r#type);
        }
    });
}

/// Generations that a writer does not tell stay what they were. Of conditions of one type, each has its own.
pub fn keep_generations(new: &mut PodStatus, old: &PodStatus) {
    if new.observed_generation == 0 {
        new.observed_generation = old.observed_generation;
    }
    let mut known: HashMap<&str, VecDeque<i64>> = HashMap::new();
    for condition in &old.conditions {
        let of_type = known.entry(condition.r#type.as_str()).or_default();
        of_type.push_back(condition.observed_generation);
    }
    for condition in &mut new.conditions {
        let of_type = known.get_mut(condition.r#type.as_str());
        let was = of_type.and_then(VecDeque::pop_front).unwrap_or_default();
        if condition.observed_generation == 0 {
            condition.observed_generation = was;
        }
    }
}

/// Drops what features report that are switched off, unless the stored status has it already.
pub fn drop_disabled(new: &mut PodStatus, old: &PodStatus) {
    if old.node_allocatable_resource_claim_statuses.is_empty() {
        new.node_allocatable_resource_claim_statuses.clear();
    }
    let containers = |status: &PodStatus| {
        let (of_init, of_main) = (&status.init_container_statuses, &status.container_statuses);
        let all = of_init
            .iter()
            .chain(of_main)
            .chain(&status.ephemeral_container_statuses);
        all.flat_map(|c| &c.volume_mounts)
            .any(|mount| mount.volume_status.is_some())
    };
    if !containers(old) {
        let (of_init, of_main) = (&mut new.init_container_statuses, &mut new.container_statuses);
        let all = of_init
            .iter_mut()
            .chain(of_main)
            .chain(&mut new.ephemeral_container_statuses);
        all.flat_map(|c| &mut c.volume_mounts)
            .for_each(|mount| mount.volume_status = None);
    }
}

/// What a node should know that writes a status.
pub fn warnings(status: &PodStatus) -> Vec<String> {
    let ips = |name, ips: &[&str]| -> Vec<String> {
        let path = Path::new("status").child(name);
        let all = ips.iter().enumerate();
        all.filter_map(|(i, ip)| ip::warnings(ip, &path.index(i).child("ip")))
            .collect()
    };
    let of_pod: Vec<&str> = status.pod_ips.iter().map(|ip| ip.ip.as_str()).collect();
    let of_host: Vec<&str> = status.host_ips.iter().map(|ip| ip.ip.as_str()).collect();
    [ips("podIPs", &of_pod), ips("hostIPs", &of_host)].concat()
}

/// Where a pod that waits may come to run.
fn nominated_node(new: &Pod, old: &Pod, path: &Path) -> ErrorList {
    let name = &new.status.nominated_node_name;
    if name.is_empty() || *name == old.status.nominated_node_name {
        return ErrorList::default();
    }
    let texts = names::dns_subdomain(name).into_iter();
    let mut errors: ErrorList = texts.map(|text| FieldError::invalid(path, name, text)).collect();
    if !old.spec.node_name.is_empty() {
        let text = "may not be set on pods that are already bound to a node";
        errors.push(FieldError::forbidden(path, text));
    }
    errors
}

/// A claim is one of those that the specification names, or else a node could name any.
fn claims(pod: &Pod, path: &Path) -> ErrorList {
    let (mut errors, mut seen) = (ErrorList::default(), BTreeSet::new());
    let asked: HashSet<&str> = pod
        .spec
        .resource_claims
        .iter()
        .map(|claim| claim.name.as_str())
        .collect();
    for (place, status) in pod.status.resource_claim_statuses.iter().enumerate() {
        let path = path.index(place);
        if !asked.contains(status.name.as_str()) {
            let text = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid(&path.child("name"), &status.name, text));
        }
        if !seen.insert(&status.name) {
            errors.push(FieldError::duplicate(&path.child("name"), status.name.as_str()));
        }
        if let Some(name) = &status.resource_claim_name {
            errors.extend(claim_name(name, &path.child("resourceClaimName")));
        }
    }
    errors
}

fn claim_name(name: &str, path: &Path) -> ErrorList {
    let texts = names::dns_subdomain(name).into_iter();
    texts.map(|text| FieldError::invalid(path, name, text)).collect()
}

/// The claim that stands for resources which containers ask for by number.
fn extended_claim(pod: &Pod, status: &PodExtendedResourceClaimStatus, path: &Path) -> ErrorList {
    let (mut errors, mut seen) = (ErrorList::default(), BTreeSet::new());
    let mappings = path.child("requestMappings");
    if status.request_mappings.is_empty() {
        errors.push(FieldError::required(
            &mappings,
            "at least one request mapping is required",
        ));
    }
    // Of containers of one name the last counts.
    let all = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let containers: HashMap<&str, &Container> = all.map(|c| (c.name.as_str(), c)).collect();
    for (place, mapping) in status.request_mappings.iter().enumerate() {
        let at = mappings.index(place);
        let (container, resource, request) = (&mapping.container_name, &mapping.resource_name, &mapping.request_name);
        match containers.get(container.as_str()) {
            None => {
                let text = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                errors.push(FieldError::invalid(&at.child("containerName"), container, text));
            }
            Some(c) if !c.resources.requests.contains_key(resource) => {
                let text = "must match the extended resource name of an entry in \
                            spec.initContainers.resources.requests or spec.containers.resources.requests";
                errors.push(FieldError::invalid(&at.child("resourceName"), resource, text));
            }
            Some(_) => {}
        }
        let texts = names::dns_label(request).into_iter();
        errors.extend(texts.map(|text| FieldError::invalid(&path.child("requestName"), request, text)));
        if !seen.insert((container, resource, request)) {
            for (name, value) in [
                ("containerName", container),
                ("resourceName", resource),
                ("requestName", request),
            ] {
                errors.push(FieldError::duplicate(&at.child(name), value.as_str()));
            }
        }
    }
    match status.resource_claim_name.as_str() {
        "" => errors.push(FieldError::required(&path.child("resourceClaimName"), "")),
        name => errors.extend(claim_name(name, &path.child("resourceClaimName"))),
    }
    errors
}

/// One address of each family; those that were there before stay as they are.
fn addresses(new: &[String], old: &[String], path: &Path) -> ErrorList {
    let stored: Vec<&str> = old.iter().map(String::as_str).collect();
    let mut errors = ErrorList::default();
    for (place, address) in new.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        errors.extend(ip::validate(address, &stored, &path.index(place)));
    }
    if new.len() < 2 {
        return errors;
    }
    if let Some(place) = new.iter().position(|text| ip::parse(text).is_none()) {
        let text = format!(
            "failed to check for dual stack with error:invalid IP[{place}]: {}",
            new[place]
        );
        errors.push(FieldError::internal(path, text));
    }
    let families: Option<BTreeSet<bool>> = new.iter().map(|text| ip::parse(text).map(|ip| ip.is_ipv4())).collect();
    if new.len() > 2 || families.is_none_or(|families| families.len() < 2) {
        let shown: Vec<String> = new.iter().map(|ip| format!(r#"{{"IP":{ip:?}}}"#)).collect();
        let text = "may specify no more than one IP for each IP family";
        let shown = BadValue::json(format!("[{}]", shown.join(",")));
        errors.push(FieldError::invalid(path, shown, text));
    }
    errors
}

fn host_addresses(new: &Pod, old: &Pod, path: &Path) -> ErrorList {
    let path = path.child("hostIPs");
    let of = |pod: &Pod| pod.status.host_ips.iter().map(|ip| ip.ip.clone()).collect::<Vec<_>>();
    let now = of(new);
    let mut errors = ErrorList::default();
    if let Some(first) = now.first().filter(|first| **first != new.status.host_ip) {
        let path = path.index(0).child("ip");
        errors.push(FieldError::invalid(&path, first, "must be equal to `hostIP`"));
    }
    errors.extend(addresses(&now, &of(old), &path));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lines, read};

    fn faults(spec: &str, status: &str) -> String {
        let old: Pod = read(&format!(r#"{{"spec":{spec}}}"#));
        let new: Pod = read(&format!(r#"{{"spec":{spec},"status":{status}}}"#));
        let fields = lines(&validate(&new, &old));
        fields
            .lines()
            .map(|line| line.split(": ").next().unwrap())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn claims_are_those_of_the_pod() {
        let spec = r#"{"resourceClaims":[{"name":"a","resourceClaimName":"x"}],
            "containers":[{"name":"c","resources":{"requests":{"e.x/d":"1"}}}]}"#;
        let at = "status.resourceClaimStatuses";
        for (statuses, expected) in [
            (r#"{"name":"a","resourceClaimName":"y"}"#, String::new()),
            (r#"{"name":"b","resourceClaimName":"y"}"#, format!("{at}[0].name")),
            (r#"{"name":"a"},{"name":"a"}"#, format!("{at}[1].name")),
            (
                r#"{"name":"a","resourceClaimName":"Y/"}"#,
                format!("{at}[0].resourceClaimName"),
            ),
        ] {
            let status = format!(r#"{{"resourceClaimStatuses":[{statuses}]}}"#);
            assert_eq!(faults(spec, &status), expected, "{statuses}");
        }
        let at = "status.extendedResourceClaimStatus";
        let mapping = |container: &str, resource: &str| {
            format!(r#"{{"containerName":"{container}","resourceName":"{resource}","requestName":"r"}}"#)
        };
        for (mappings, claim, expected) in [
            (mapping("c", "e.x/d"), "y", String::new()),
            (
                mapping("d", "e.x/d"),
                "y",
                format!("{at}.requestMappings[0].containerName"),
            ),
            (
                mapping("c", "e.x/e"),
                "y",
                format!("{at}.requestMappings[0].resourceName"),
            ),
            (mapping("c", "e.x/d"), "", format!("{at}.resourceClaimName")),
            (String::new(), "y", format!("{at}.requestMappings")),
        ] {
            let status = format!(
                r#"{{"extendedResourceClaimStatus":{{"requestMappings":[{mappings}],"resourceClaimName":"{claim}"}}}}"#
            );
            assert_eq!(faults(spec, &status), expected, "{status}");
        }
    }

    #[test]
    fn addresses_are_addresses() {
        for (status, expected) in [
            (r#"{"podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]}"#, ""),
            (r#"{"podIPs":[{"ip":"x/../y"}]}"#, "status.podIPs[0]"),
            (r#"{"podIPs":[{"ip":"010.0.0.1"}]}"#, "status.podIPs[0]"),
            (r#"{"podIPs":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]}"#, "status.podIPs"),
            (r#"{"hostIP":"10.0.0.1","hostIPs":[{"ip":"10.0.0.1"}]}"#, ""),
            (
                r#"{"hostIP":"10.0.0.1","hostIPs":[{"ip":"10.0.0.2"}]}"#,
                "status.hostIPs[0].ip",
            ),
            (r#"{"hostIP":"x","hostIPs":[{"ip":"x"}]}"#, "status.hostIPs[0]"),
        ] {
            assert_eq!(faults("{}", status), expected, "{status}");
        }
    }

    #[test]
    fn a_pod_that_has_a_node_waits_for_no_other() {
        let path = "status.nominatedNodeName";
        assert_eq!(faults("{}", r#"{"nominatedNodeName":"n"}"#), "");
        assert_eq!(faults("{}", r#"{"nominatedNodeName":"n/"}"#), path);
        assert_eq!(faults(r#"{"nodeName":"m"}"#, r#"{"nominatedNodeName":"n"}"#), path);
    }
}
