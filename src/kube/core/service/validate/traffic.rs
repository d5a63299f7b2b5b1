//! Traffic of services: from where it comes, and to which nodes it goes.

use keelson_api::core::v1::ServiceSpec;

use super::is_balanced;
use crate::faults::Faults;

const POLICIES: [&str; 2] = ["Cluster", "Local"];
/// In the order in which the API names them.
const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];

/// Whether traffic from outside of the cluster comes in.
pub fn is_reached_from_outside(spec: &ServiceSpec) -> bool {
    match spec.r#type.as_str() {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !spec.external_ips.is_empty(),
        _ => false,
    }
}

/// Whether a load balancer has to ask each node if it has any pods.
pub fn needs_health_check(spec: &ServiceSpec) -> bool {
    is_balanced(spec) && spec.external_traffic_policy == "Local"
}

pub fn policies(f: &mut Faults<'_>, spec: &ServiceSpec) {
    let policy = &spec.external_traffic_policy;
    if is_reached_from_outside(spec) {
        f.at("externalTrafficPolicy").one_of_filled(policy, &POLICIES);
    } else if !policy.is_empty() {
        let text = "may only be set for externally-accessible services";
        f.at("externalTrafficPolicy").invalid(policy, text);
    }
    health_check(&mut f.at("healthCheckNodePort"), spec);
    match &spec.internal_traffic_policy {
        Some(policy) => f.at("internalTrafficPolicy").one_of(policy, &POLICIES),
        None if matches!(spec.r#type.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") => {
            f.at("internalTrafficPolicy").required("");
        }
        None => {}
    }
    f.at("trafficDistribution")
        .one_of(&spec.traffic_distribution, &DISTRIBUTIONS);
}

fn health_check(f: &mut Faults<'_>, spec: &ServiceSpec) {
    match (needs_health_check(spec), spec.health_check_node_port) {
        (false, 0) => {}
        (false, number) => {
            let text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            f.invalid(number, text);
        }
        (true, 0) => f.required(""),
        (true, number) => f.port(number),
    }
}
