//! The status of a pod: nodes write it, and others act on what it says of claims, nodes and addresses.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use keelson_api::core::v1::{Container, Pod, PodCondition, PodExtendedResourceClaimStatus, PodStatus};
use keelson_machinery::field::{BadValue, Path};

use super::container_status;
use crate::faults::{Faults, Unique};
use crate::ip;
use crate::typed::IMMUTABLE;

const GENERATION: &str = "must be a non-negative integer";
const NO_CONTAINER: &str = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
const NO_RESOURCE: &str = "must match the extended resource name of an entry in \
    spec.initContainers.resources.requests or spec.containers.resources.requests";

/// Checks a status that a client writes.
pub fn check(f: &mut Faults<'_>, new: &Pod, old: &Pod) {
    let (now, was) = (&new.status, &old.status);
    f.each("conditions", &now.conditions, condition);
    nominated_node(&mut f.at("nominatedNodeName"), new, old);
    f.at("observedGeneration")
        .number(now.observed_generation, |number| number >= 0, GENERATION);
    f.at("qosClass")
        .invalid_if(now.qos_class != was.qos_class, &now.qos_class, IMMUTABLE);
    container_status::transitions(f, new, old);
    claims(f, new);
    f.some(
        "extendedResourceClaimStatus",
        now.extended_resource_claim_status.as_deref(),
        |f, status| extended_claim(f, new, status),
    );
    let ips = |status: &PodStatus| status.pod_ips.iter().map(|ip| ip.ip.clone()).collect::<Vec<_>>();
    addresses(&mut f.at("podIPs"), &ips(now), &ips(was));
    let ips = |status: &PodStatus| status.host_ips.iter().map(|ip| ip.ip.clone()).collect::<Vec<_>>();
    host_addresses(&mut f.at("hostIPs"), now, &ips(now), &ips(was));
    container_status::details(f, new);
}

/// Conditions of others have names with a domain, or without.
fn condition(f: &mut Faults<'_>, condition: &PodCondition) {
    f.at("observedGeneration")
        .number(condition.observed_generation, |number| number >= 0, GENERATION);
    if !matches!(&*condition.r#type, "PodScheduled" | "Ready" | "Initialized") {
        f.at("Type").qualified(&condition.r#type);
    }
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
fn nominated_node(f: &mut Faults<'_>, new: &Pod, old: &Pod) {
    let name = &new.status.nominated_node_name;
    if name.is_empty() || *name == old.status.nominated_node_name {
        return;
    }
    f.subdomain(name);
    let is_bound = !old.spec.node_name.is_empty();
    f.forbidden_if(is_bound, "may not be set on pods that are already bound to a node");
}

/// A claim is one of those that the specification names, or else a node could name any.
fn claims(f: &mut Faults<'_>, pod: &Pod) {
    let asked = pod.spec.resource_claims.iter().map(|claim| claim.name.as_str());
    let (asked, mut seen) = (asked.collect::<HashSet<_>>(), Unique::default());
    f.each(
        "resourceClaimStatuses",
        &pod.status.resource_claim_statuses,
        |f, status| {
            let name = status.name.as_str();
            let text = "must match the name of an entry in `spec.resourceClaims`";
            f.at("name").invalid_if(!asked.contains(name), name, text);
            seen.check(&mut f.at("name"), name);
            f.at("resourceClaimName").subdomain(&status.resource_claim_name);
        },
    );
}

/// The claim that stands for resources which containers ask for by number.
fn extended_claim(f: &mut Faults<'_>, pod: &Pod, status: &PodExtendedResourceClaimStatus) {
    f.at("requestMappings").required_if(
        status.request_mappings.is_empty(),
        "at least one request mapping is required",
    );
    // Of containers of one name the last counts.
    let all = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let containers: HashMap<&str, &Container> = all.map(|c| (c.name.as_str(), c)).collect();
    let mut seen = BTreeSet::new();
    for (place, mapping) in status.request_mappings.iter().enumerate() {
        let (container, resource, request) = (&mapping.container_name, &mapping.resource_name, &mapping.request_name);
        let mut mappings = f.at("requestMappings");
        let mut at = mappings.index(place);
        match containers.get(container.as_str()) {
            None => at.at("containerName").invalid(container, NO_CONTAINER),
            Some(c) => {
                at.at("resourceName")
                    .invalid_if(!c.resources.requests.contains_key(resource), resource, NO_RESOURCE)
            }
        }
        f.at("requestName").label(request);
        if seen.insert((container, resource, request)) {
            continue;
        }
        let names = ["containerName", "resourceName", "requestName"];
        for (name, value) in names.into_iter().zip([container, resource, request]) {
            f.at("requestMappings").index(place).at(name).duplicate(value);
        }
    }
    f.at("resourceClaimName").filled_subdomain(&status.resource_claim_name);
}

/// One address of each family; those that were there before stay as they are.
fn addresses(f: &mut Faults<'_>, new: &[String], old: &[String]) {
    let stored: Vec<&str> = old.iter().map(String::as_str).collect();
    for (place, address) in new.iter().enumerate() {
        if f.is_full() {
            break;
        }
        f.index(place).ip(address, &stored);
    }
    if new.len() < 2 {
        return;
    }
    if let Some(place) = new.iter().position(|text| ip::parse(text).is_none()) {
        let text = "failed to check for dual stack with error:invalid IP";
        f.internal(format!("{text}[{place}]: {}", new[place]));
    }
    let families: Option<BTreeSet<bool>> = new.iter().map(|text| ip::parse(text).map(|ip| ip.is_ipv4())).collect();
    if new.len() > 2 || families.is_none_or(|families| families.len() < 2) {
        let shown: Vec<String> = new.iter().map(|ip| format!(r#"{{"IP":{ip:?}}}"#)).collect();
        let shown = BadValue::json(format!("[{}]", shown.join(",")));
        f.invalid(shown, "may specify no more than one IP for each IP family");
    }
}

fn host_addresses(f: &mut Faults<'_>, status: &PodStatus, new: &[String], old: &[String]) {
    if let Some(first) = new.first().filter(|first| **first != status.host_ip) {
        f.index(0).at("ip").invalid(first, "must be equal to `hostIP`");
    }
    addresses(f, new, old);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults;
    use crate::testing::{lines, read};

    fn faults(spec: &str, status: &str) -> String {
        let old: Pod = read(&format!(r#"{{"spec":{spec}}}"#));
        let new: Pod = read(&format!(r#"{{"spec":{spec},"status":{status}}}"#));
        let fields = lines(&faults::of_status(|f| check(f, &new, &old)));
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
