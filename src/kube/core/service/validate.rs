//! Validation of services.

mod addresses;
mod change;
mod ports;
mod status;
mod traffic;

use std::collections::BTreeMap;

use keelson_api::core::v1::{Service, ServiceSpec, SessionAffinityConfig};
use keelson_machinery::field::ErrorList;

use super::HEADLESS;
use crate::faults::{self, Faults};

pub use change::of_change;
pub use status::of_status;
pub use traffic::{is_reached_from_outside, needs_health_check};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const AFFINITIES: [&str; 2] = ["ClientIP", "None"];
/// The longest that a client stays with the same pod, in seconds: a day.
const MAX_AFFINITY_SECONDS: i32 = 86_400;
const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
/// What the annotation above was called before.
pub const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";

/// Whether the service says that it wants no address.
fn is_headless(spec: &ServiceSpec) -> bool {
    matches!(spec.cluster_ips.as_slice(), [one] if one == HEADLESS)
}

fn is_balanced(spec: &ServiceSpec) -> bool {
    spec.r#type == "LoadBalancer"
}

/// The rules of a new service.
pub fn of_new(new: &Service) -> ErrorList {
    faults::of_object(|f| of_service(f, new, None))
}

/// The rules of cluster addresses and their families alone; `stored` are the addresses that the service had before.
pub fn cluster_ips(spec: &ServiceSpec, stored: &[String]) -> ErrorList {
    faults::of_object(|f| addresses::cluster_ips(&mut f.at("spec"), spec, stored))
}

/// The rules of a service as it is; `old` is the one that is stored, of an update.
fn of_service(f: &mut Faults<'_>, new: &Service, old: Option<&Service>) {
    let (spec, before) = (&new.spec, old.map(|old| &old.spec));
    topology(f, &new.metadata.annotations);
    if spec.ports.is_empty() && !is_headless(spec) && spec.r#type != "ExternalName" {
        f.at("spec").at("ports").required("");
    }
    of_type(&mut f.at("spec"), spec);
    ports::each(&mut f.at("spec"), &spec.ports);
    f.at("spec").labels("selector", &spec.selector);
    affinity(&mut f.at("spec"), spec);
    let stored = before.map_or(&[][..], |before| &before.cluster_ips);
    addresses::cluster_ips(&mut f.at("spec"), spec, stored);
    addresses::external_ips(&mut f.at("spec"), spec, before);
    f.at("spec").at("type").one_of_filled(&spec.r#type, &TYPES);
    ports::together(&mut f.at("spec").at("ports"), spec);
    addresses::source_ranges(f, new, old);
    balancer(f, spec);
    traffic::policies(&mut f.at("spec"), spec);
}

/// The annotation has two names, which may not say different things.
fn topology(f: &mut Faults<'_>, annotations: &BTreeMap<String, String>) {
    if let (Some(mode), Some(hints)) = (annotations.get(TOPOLOGY_MODE), annotations.get(TOPOLOGY_HINTS))
        && mode != hints
    {
        let text = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        f.at("metadata")
            .at("annotations")
            .key(TOPOLOGY_MODE)
            .invalid(mode, text);
    }
}

/// What the type says of the addresses.
fn of_type(f: &mut Faults<'_>, spec: &ServiceSpec) {
    match spec.r#type.as_str() {
        ty @ ("LoadBalancer" | "NodePort") if is_headless(spec) => {
            let text = format!("may not be set to 'None' for {ty} services");
            f.at("clusterIPs").index(0).invalid(HEADLESS, text);
        }
        "ExternalName" => of_external_name(f, spec),
        _ => {}
    }
}

fn of_external_name(f: &mut Faults<'_>, spec: &ServiceSpec) {
    for (is_set, field) in [
        (!spec.cluster_ips.is_empty(), "clusterIPs"),
        (!spec.ip_families.is_empty(), "ipFamilies"),
        (spec.ip_family_policy.is_some(), "ipFamilyPolicy"),
    ] {
        f.at(field)
            .forbidden_if(is_set, "may not be set for ExternalName services");
    }
    // A dot at the end makes the name absolute.
    let name = &spec.external_name;
    let host = name.strip_suffix('.').unwrap_or(name);
    f.at("externalName").filled_subdomain(host);
}

fn affinity(f: &mut Faults<'_>, spec: &ServiceSpec) {
    f.at("sessionAffinity")
        .one_of_filled(&spec.session_affinity, &AFFINITIES);
    let f = &mut f.at("sessionAffinityConfig");
    match (spec.session_affinity.as_str(), &spec.session_affinity_config) {
        ("ClientIP", config) => client_ip(f, config.as_deref()),
        ("None", Some(_)) => f.forbidden("must not be set when session affinity is None"),
        _ => {}
    }
}

fn client_ip(f: &mut Faults<'_>, config: Option<&SessionAffinityConfig>) {
    const MISSING: &str = "when session affinity type is ClientIP";
    let Some(config) = config else {
        return f.required(MISSING);
    };
    let f = &mut f.at("clientIP");
    let Some(client) = &config.client_ip else {
        return f.required(MISSING);
    };
    match client.timeout_seconds {
        None => f.at("timeoutSeconds").required(MISSING),
        Some(seconds) if !(1..=MAX_AFFINITY_SECONDS).contains(&seconds) => {
            let text = format!("must be greater than 0 and less than {MAX_AFFINITY_SECONDS}");
            f.at("timeoutSeconds").invalid(seconds, text);
        }
        Some(_) => {}
    }
}

/// What is for load balancers alone.
fn balancer(f: &mut Faults<'_>, spec: &ServiceSpec) {
    const FIELD: &str = "allocateLoadBalancerNodePorts";
    match (spec.allocate_load_balancer_node_ports, is_balanced(spec)) {
        (Some(_), false) => f.at("spec").at(FIELD).forbidden(ONLY_BALANCED),
        // The path is that of the API.
        (None, true) => f.at(FIELD).required(""),
        _ => {}
    }
    balancer_class(&mut f.at("spec").at("loadBalancerClass"), spec);
}

fn balancer_class(f: &mut Faults<'_>, spec: &ServiceSpec) {
    match &spec.load_balancer_class {
        Some(class) if is_balanced(spec) => f.qualified(class),
        Some(_) => f.forbidden(ONLY_BALANCED),
        None => {}
    }
}

#[cfg(test)]
mod tests;
