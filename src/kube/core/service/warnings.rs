//! Warnings about services.

use keelson_api::core::v1::Service;
use keelson_machinery::field::Path;

use super::HEADLESS;
use super::validate::TOPOLOGY_HINTS;
use crate::{cidr, ip};

const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

/// What a client should know of a service that it made or changed.
pub fn of_service(service: &Service) -> Vec<String> {
    let (spec, path) = (&service.spec, Path::new("spec"));
    let mut told = Vec::new();
    if service.metadata.annotations.contains_key(TOPOLOGY_HINTS) {
        told.push(format!(
            "annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"
        ));
    }
    let is_external = spec.r#type == "ExternalName";
    let is_headless = spec.r#type == "ClusterIP" && spec.cluster_ip == HEADLESS;
    if !spec.cluster_ip.is_empty() && spec.cluster_ip != HEADLESS {
        told.extend(of_addresses(&spec.cluster_ips, &path.child("clusterIPs")));
    }
    for (is_set, field) in [
        (!spec.load_balancer_ip.is_empty(), "loadBalancerIP"),
        (!spec.external_ips.is_empty(), "externalIPs"),
        (spec.session_affinity != "None", "SessionAffinity"),
    ] {
        if is_headless && is_set {
            told.push(format!("spec.{field} is ignored for headless services"));
        }
    }
    told.extend(of_addresses(&spec.external_ips, &path.child("externalIPs")));
    if !spec.external_ips.is_empty() && !is_headless && !is_external {
        told.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned());
    }
    told.extend(ip::warnings(&spec.load_balancer_ip, &path.child("loadBalancerIP")));
    let ranges = path.child("loadBalancerSourceRanges");
    let each = spec.load_balancer_source_ranges.iter().enumerate();
    told.extend(each.flat_map(|(place, range)| cidr::warnings(range, &ranges.index(place))));
    if is_external && !spec.external_ips.is_empty() {
        told.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !is_external && !spec.external_name.is_empty() {
        told.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if spec.traffic_distribution.as_deref() == Some("PreferClose") {
        told.push("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned());
    }
    told
}

fn of_addresses(ips: &[String], path: &Path) -> Vec<String> {
    let each = ips.iter().enumerate();
    each.filter_map(|(place, text)| ip::warnings(text, &path.index(place)))
        .collect()
}

/// What a client should know of a status that it wrote.
pub fn of_status(service: &Service) -> Vec<String> {
    let path = Path::new("status").child("loadBalancer").child("ingress");
    let each = service.status.load_balancer.ingress.iter().enumerate();
    each.filter_map(|(place, ingress)| ip::warnings(&ingress.ip, &path.index(place)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn what_is_ignored_or_old_is_told() {
        for (service, expected) in [
            (
                r#"{"spec":{"type":"ClusterIP","sessionAffinity":"None","clusterIP":"10.0.0.5"}}"#,
                &[][..],
            ),
            (
                r#"{"spec":{"type":"ClusterIP","sessionAffinity":"ClientIP","clusterIP":"None","loadBalancerIP":"10.0.0.1",
                    "externalIPs":["10.0.0.2"]}}"#,
                &[
                    "spec.loadBalancerIP is ignored for headless services",
                    "spec.externalIPs is ignored for headless services",
                    "spec.SessionAffinity is ignored for headless services",
                ],
            ),
            (
                r#"{"spec":{"type":"ClusterIP","sessionAffinity":"None","externalIPs":["10.0.0.2"],"externalName":"a"}}"#,
                &[
                    "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
                    "spec.externalName is ignored when spec.type is not \"ExternalName\"",
                ],
            ),
            (
                r#"{"spec":{"type":"ExternalName","sessionAffinity":"None","externalIPs":["10.0.0.2"],"externalName":"a"}}"#,
                &["spec.externalIPs is ignored when spec.type is \"ExternalName\""],
            ),
            (
                r#"{"metadata":{"annotations":{"service.kubernetes.io/topology-aware-hints":"auto"}},
                    "spec":{"type":"LoadBalancer","sessionAffinity":"None","loadBalancerIP":"FD00::1",
                    "loadBalancerSourceRanges":["FD00::/64"],"trafficDistribution":"PreferClose"}}"#,
                &[
                    "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
                     service.kubernetes.io/topology-mode instead",
                    "spec.loadBalancerIP: IPv6 address \"FD00::1\" should be in RFC 5952 canonical format (\"fd00::1\")",
                    "spec.loadBalancerSourceRanges[0]: IPv6 CIDR value \"FD00::/64\" should be in RFC 5952 canonical \
                     format (\"fd00::/64\")",
                    "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
                ],
            ),
        ] {
            assert_eq!(of_service(&read(service)), expected, "{service}");
        }
    }
}
