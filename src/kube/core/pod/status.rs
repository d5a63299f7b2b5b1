//! The status of a pod: nodes write it, and others act on what it says of claims, nodes and addresses.

use std::collections::{BTreeSet, HashMap, HashSet};

use keelson_api::core::v1::{Container, Pod, PodExtendedResourceClaimStatus};
use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path};
use keelson_machinery::validation::names;

use crate::core::ip;
use crate::typed::IMMUTABLE;

/// Faults of a status that a client writes.
pub fn validate(new: &Pod, old: &Pod) -> ErrorList {
    let path = Path::new("status");
    let mut errors = nominated_node(new, old, &path.child("nominatedNodeName"));
    let class = &new.status.qos_class;
    if !old.status.qos_class.is_empty() && *class != old.status.qos_class {
        errors.push(FieldError::invalid(&path.child("qosClass"), class, IMMUTABLE));
    }
    errors.extend(claims(new, &path.child("resourceClaimStatuses")));
    if let Some(status) = &new.status.extended_resource_claim_status {
        errors.extend(extended_claim(new, status, &path.child("extendedResourceClaimStatus")));
    }
    let of = |pod: &Pod| pod.status.pod_ips.iter().map(|ip| ip.ip.clone()).collect::<Vec<_>>();
    errors.extend(addresses(&of(new), &of(old), &path.child("podIPs")));
    errors.extend(host_addresses(new, old, &path));
    errors
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
