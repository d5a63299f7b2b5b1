//! Defaults of services that hang on other fields, and what is filled in for services that older servers have stored.

use keelson_api::core::v1::{Service, ServiceSpec};
use keelson_machinery::intstr::IntOrString;

use super::HEADLESS;
use super::change::join_addresses;
use super::families::{Families, Family, REQUIRE, SINGLE, has_cluster_ip};
use super::validate::is_reached_from_outside;

/// How long a client stays with the same pod, in seconds.
const AFFINITY_SECONDS: i32 = 10_800;

/// Defaults in code.
pub fn defaults(service: &mut Service) {
    let spec = &mut service.spec;
    match spec.session_affinity.as_str() {
        "None" => spec.session_affinity_config = None,
        "ClientIP" => {
            let config = spec.session_affinity_config.get_or_insert_default();
            config
                .client_ip
                .get_or_insert_default()
                .timeout_seconds
                .get_or_insert(AFFINITY_SECONDS);
        }
        _ => {}
    }
    for entry in &mut spec.ports {
        let none = match &entry.target_port {
            IntOrString::Int(number) => *number == 0,
            IntOrString::String(name) => name.is_empty(),
        };
        if none {
            entry.target_port = IntOrString::Int(entry.port);
        }
    }
    traffic_defaults(spec);
    let balanced = spec.r#type == "LoadBalancer";
    for ingress in &mut service.status.load_balancer.ingress {
        if balanced && !ingress.ip.is_empty() {
            ingress.ip_mode.get_or_insert_with(|| "VIP".to_owned());
        }
    }
}

fn traffic_defaults(spec: &mut ServiceSpec) {
    if is_reached_from_outside(spec) && spec.external_traffic_policy.is_empty() {
        spec.external_traffic_policy = "Cluster".to_owned();
    }
    let ty = spec.r#type.as_str();
    if matches!(ty, "LoadBalancer" | "NodePort" | "ClusterIP") {
        spec.internal_traffic_policy.get_or_insert_with(|| "Cluster".to_owned());
    }
    if ty == "LoadBalancer" {
        spec.allocate_load_balancer_node_ports.get_or_insert(true);
    }
}

/// Whether [`decorate`] would change nothing.
pub fn is_complete(spec: &ServiceSpec) -> bool {
    match has_cluster_ip(spec) {
        true => !spec.ip_families.is_empty() && !spec.cluster_ips.is_empty(),
        false => spec.internal_traffic_policy.is_none() && spec.cluster_ip.is_empty(),
    }
}

/// Fills in what servers did not store before there were lists of addresses and families, and hides what they stored
/// without a need.
pub fn decorate(cluster: Families, spec: &mut ServiceSpec) {
    join_addresses(spec, None);
    if !has_cluster_ip(spec) {
        spec.internal_traffic_policy = None;
        return;
    }
    // Families and policy are stored together, or neither.
    if !spec.ip_families.is_empty() {
        return;
    }
    let primary = cluster.primary;
    let (families, policy) = match (spec.cluster_ip.as_str(), spec.selector.is_empty()) {
        (HEADLESS, true) => (vec![primary, primary.other()], Some(REQUIRE)),
        (HEADLESS, false) => (vec![primary], Some(SINGLE)),
        _ => of_addresses(&spec.cluster_ips),
    };
    spec.ip_families = families.iter().map(|family| family.name().to_owned()).collect();
    if let Some(policy) = policy {
        spec.ip_family_policy = Some(policy.to_owned());
    }
}

fn of_addresses(ips: &[String]) -> (Vec<Family>, Option<&'static str>) {
    let family = |ip: &String| Family::of_text(ip).unwrap_or(Family::V4);
    let policy = match ips.len() {
        1 => Some(SINGLE),
        2 => Some(REQUIRE),
        _ => None,
    };
    (ips.iter().map(family).collect(), policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read_defaulted, text};

    fn service(spec: &str) -> Service {
        let mut service = read_defaulted(&format!(r#"{{"spec":{spec}}}"#));
        defaults(&mut service);
        service
    }

    #[test]
    fn defaults_hang_on_the_type() {
        for (spec, expected) in [
            (
                r#"{"ports":[{"port":80}]}"#,
                concat!(
                    r#"{"ports":[{"protocol":"TCP","port":80,"targetPort":80}],"type":"ClusterIP","#,
                    r#""sessionAffinity":"None","internalTrafficPolicy":"Cluster"}"#
                ),
            ),
            (
                r#"{"type":"LoadBalancer","sessionAffinity":"ClientIP"}"#,
                concat!(
                    r#"{"type":"LoadBalancer","sessionAffinity":"ClientIP","externalTrafficPolicy":"Cluster","#,
                    r#""sessionAffinityConfig":{"clientIP":{"timeoutSeconds":10800}},"#,
                    r#""allocateLoadBalancerNodePorts":true,"internalTrafficPolicy":"Cluster"}"#
                ),
            ),
            (
                r#"{"type":"ExternalName","externalName":"a.b"}"#,
                r#"{"type":"ExternalName","sessionAffinity":"None","externalName":"a.b"}"#,
            ),
        ] {
            assert_eq!(text(&service(spec).spec), expected);
        }
    }

    #[test]
    fn what_older_servers_stored_is_completed() {
        for (spec, expected) in [
            (
                r#"{"clusterIP":"10.0.0.5","type":"ClusterIP"}"#,
                concat!(
                    r#"{"clusterIP":"10.0.0.5","clusterIPs":["10.0.0.5"],"type":"ClusterIP","ipFamilies":["IPv4"],"#,
                    r#""ipFamilyPolicy":"SingleStack"}"#
                ),
            ),
            (
                r#"{"clusterIP":"None","selector":{"a":"b"}}"#,
                concat!(
                    r#"{"selector":{"a":"b"},"clusterIP":"None","clusterIPs":["None"],"ipFamilies":["IPv6"],"#,
                    r#""ipFamilyPolicy":"SingleStack"}"#
                ),
            ),
            (
                r#"{"clusterIP":"None"}"#,
                concat!(
                    r#"{"clusterIP":"None","clusterIPs":["None"],"ipFamilies":["IPv6","IPv4"],"#,
                    r#""ipFamilyPolicy":"RequireDualStack"}"#
                ),
            ),
            (
                r#"{"type":"ExternalName","internalTrafficPolicy":"Cluster"}"#,
                r#"{"type":"ExternalName"}"#,
            ),
        ] {
            let mut old = crate::testing::read::<ServiceSpec>(spec);
            let cluster = Families {
                primary: Family::V6,
                both: false,
            };
            assert!(!is_complete(&old));
            decorate(cluster, &mut old);
            assert_eq!(text(&old), expected);
            assert!(is_complete(&old));
        }
    }
}
