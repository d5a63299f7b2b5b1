//! Changes of services: what an update leaves out and keeps all the same, and what goes with the type that needed it.

use std::collections::{BTreeMap, BTreeSet};

use keelson_api::core::v1::{LoadBalancerStatus, Service, ServicePort, ServiceSpec};

use super::families::has_cluster_ip;
use super::validate::{is_reached_from_outside, needs_health_check};

/// Keeps what was given to the service and an update does not say: so who wrote a service can write the same again.
pub fn keep_given(new: &mut ServiceSpec, old: &ServiceSpec) {
    if has_cluster_ip(old) && has_cluster_ip(new) {
        if new.cluster_ip.is_empty() {
            new.cluster_ip.clone_from(&old.cluster_ip);
        }
        if new.cluster_ips.is_empty() {
            new.cluster_ips.clone_from(&old.cluster_ips);
        }
    }
    if takes_node_ports(old) && takes_node_ports(new) {
        keep_node_ports(&mut new.ports, &old.ports);
    }
    if needs_health_check(old) && needs_health_check(new) && new.health_check_node_port == 0 {
        new.health_check_node_port = old.health_check_node_port;
    }
}

fn takes_node_ports(spec: &ServiceSpec) -> bool {
    match spec.r#type.as_str() {
        "NodePort" => true,
        "LoadBalancer" => spec.allocate_load_balancer_node_ports.unwrap_or(true),
        _ => false,
    }
}

/// A port keeps its node port by its name, unless another one has that now.
fn keep_node_ports(new: &mut [ServicePort], old: &[ServicePort]) {
    let numbers = |ports: &[ServicePort]| ports.iter().map(|port| port.node_port).collect::<BTreeSet<_>>();
    let (now, before) = (numbers(new), numbers(old));
    let by_name: BTreeMap<&str, i32> = old.iter().map(|port| (port.name.as_str(), port.node_port)).collect();
    for port in new.iter_mut().filter(|port| port.node_port == 0) {
        let kept = by_name.get(port.name.as_str()).copied().unwrap_or_default();
        let is_used = kept != 0 && now.contains(&kept) && before.contains(&kept);
        if !is_used {
            port.node_port = kept;
        }
    }
}

/// The one address and the list of addresses say the same. Of an update the one that changed leads.
pub fn join_addresses(new: &mut ServiceSpec, old: Option<&ServiceSpec>) {
    let Some(old) = old else {
        if !new.cluster_ip.is_empty() && new.cluster_ips.is_empty() {
            new.cluster_ips.push(new.cluster_ip.clone());
        }
        return;
    };
    let is_same = old.cluster_ip == new.cluster_ip;
    if is_same && new.cluster_ips.is_empty() {
        new.cluster_ips.clone_from(&old.cluster_ips);
    }
    if is_same || new.cluster_ips != old.cluster_ips {
        return;
    }
    new.cluster_ips = match (old.cluster_ip.is_empty(), new.cluster_ip.is_empty()) {
        (false, true) => Vec::new(),
        _ => vec![new.cluster_ip.clone()],
    };
}

/// Takes out what only the type before needed, where the update did not change it.
pub fn drop_unneeded(new: &mut Service, old: &Service) {
    let (spec, before) = (&mut new.spec, &old.spec);
    if has_cluster_ip(before) && !has_cluster_ip(spec) {
        drop_addresses(spec, before);
    }
    let takes_ports = |spec: &ServiceSpec| matches!(spec.r#type.as_str(), "NodePort" | "LoadBalancer");
    if takes_ports(before) && !takes_ports(spec) {
        drop_node_ports(&mut spec.ports, &before.ports);
    }
    if needs_health_check(before)
        && !needs_health_check(spec)
        && spec.health_check_node_port == before.health_check_node_port
    {
        spec.health_check_node_port = 0;
    }
    let is_balanced = |spec: &ServiceSpec| spec.r#type == "LoadBalancer";
    if is_balanced(before) && !is_balanced(spec) {
        if spec.allocate_load_balancer_node_ports == before.allocate_load_balancer_node_ports {
            spec.allocate_load_balancer_node_ports = None;
        }
        if spec.load_balancer_class == before.load_balancer_class {
            spec.load_balancer_class = None;
        }
    }
    if is_reached_from_outside(before)
        && !is_reached_from_outside(spec)
        && spec.external_traffic_policy == before.external_traffic_policy
    {
        spec.external_traffic_policy.clear();
    }
    if !is_balanced(spec) {
        new.status.load_balancer = LoadBalancerStatus::default();
    }
}

fn drop_addresses(spec: &mut ServiceSpec, before: &ServiceSpec) {
    if spec.cluster_ip == before.cluster_ip && spec.cluster_ips == before.cluster_ips {
        spec.cluster_ip.clear();
        spec.cluster_ips.clear();
    }
    if spec.ip_families == before.ip_families {
        spec.ip_families.clear();
    }
    if spec.ip_family_policy == before.ip_family_policy {
        spec.ip_family_policy = None;
    }
}

/// Unless there are new ones among them.
fn drop_node_ports(ports: &mut [ServicePort], before: &[ServicePort]) {
    let known: BTreeSet<i32> = before.iter().map(|port| port.node_port).chain([0]).collect();
    if ports.iter().all(|port| known.contains(&port.node_port)) {
        ports.iter_mut().for_each(|port| port.node_port = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read, text};

    fn spec(json: &str) -> ServiceSpec {
        read(json)
    }

    #[test]
    fn what_was_given_is_kept() {
        for (old, new, expected) in [
            (
                r#"{"clusterIP":"10.0.0.5","clusterIPs":["10.0.0.5"],"type":"ClusterIP"}"#,
                r#"{"type":"NodePort"}"#,
                r#"{"clusterIP":"10.0.0.5","clusterIPs":["10.0.0.5"],"type":"NodePort"}"#,
            ),
            (
                r#"{"clusterIP":"10.0.0.5","clusterIPs":["10.0.0.5"],"type":"ClusterIP"}"#,
                r#"{"type":"ExternalName"}"#,
                r#"{"type":"ExternalName"}"#,
            ),
            (
                r#"{"type":"NodePort","ports":[{"name":"a","port":1,"nodePort":30001},{"name":"b","port":2,"nodePort":30002}]}"#,
                r#"{"type":"NodePort","ports":[{"name":"b","port":3},{"name":"a","port":1,"nodePort":30002},{"name":"c","port":9}]}"#,
                concat!(
                    r#"{"ports":[{"name":"b","port":3,"targetPort":0},{"name":"a","port":1,"targetPort":0,"nodePort":30002},"#,
                    r#"{"name":"c","port":9,"targetPort":0}],"type":"NodePort"}"#
                ),
            ),
            (
                r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local","healthCheckNodePort":30009}"#,
                r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local"}"#,
                r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local","healthCheckNodePort":30009}"#,
            ),
        ] {
            let mut kept = spec(new);
            keep_given(&mut kept, &spec(old));
            assert_eq!(text(&kept), expected, "{new}");
        }
    }

    #[test]
    fn one_address_and_the_list_say_the_same() {
        let of = |one: &str, list: &[&str]| ServiceSpec {
            cluster_ip: one.to_owned(),
            cluster_ips: list.iter().map(|ip| (*ip).to_owned()).collect(),
            ..ServiceSpec::default()
        };
        for (old, new, expected) in [
            (None, of("a", &[]), &["a"][..]),
            (None, of("", &["a"]), &["a"]),
            (Some(of("a", &["a", "b"])), of("a", &[]), &["a", "b"]),
            (Some(of("a", &["a", "b"])), of("", &["a", "b"]), &[]),
            (Some(of("a", &["a", "b"])), of("c", &["a", "b"]), &["c"]),
            (Some(of("a", &["a", "b"])), of("c", &["c"]), &["c"]),
            (Some(of("a", &["a", "b"])), of("a", &["a"]), &["a"]),
        ] {
            let mut joined = new;
            join_addresses(&mut joined, old.as_ref());
            assert_eq!(joined.cluster_ips, expected);
        }
    }

    #[test]
    fn what_goes_with_the_type_is_dropped() {
        let dropped = |old: &str, new: &str| {
            let of = |json: &str| Service {
                spec: spec(json),
                ..Service::default()
            };
            let mut new = of(new);
            drop_unneeded(&mut new, &of(old));
            text(&new.spec)
        };
        let balanced = r#"{"type":"LoadBalancer","clusterIP":"a","clusterIPs":["a"],"ipFamilies":["IPv4"],
            "ipFamilyPolicy":"SingleStack","ports":[{"port":1,"nodePort":30001}],"externalTrafficPolicy":"Local",
            "healthCheckNodePort":30009,"allocateLoadBalancerNodePorts":true,"loadBalancerClass":"a/b"}"#;
        assert_eq!(
            dropped(balanced, &balanced.replace("LoadBalancer\"", "ClusterIP\"")),
            concat!(
                r#"{"ports":[{"port":1,"targetPort":0}],"clusterIP":"a","clusterIPs":["a"],"type":"ClusterIP","#,
                r#""ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack"}"#
            )
        );
        assert_eq!(
            dropped(balanced, &balanced.replace("LoadBalancer\"", "ExternalName\"")),
            r#"{"ports":[{"port":1,"targetPort":0}],"type":"ExternalName"}"#
        );
        assert_eq!(
            dropped(
                r#"{"type":"NodePort","ports":[{"port":1,"nodePort":30001}],"externalTrafficPolicy":"Cluster"}"#,
                r#"{"type":"ClusterIP","ports":[{"port":1,"nodePort":30002}],"externalTrafficPolicy":"Local"}"#
            ),
            concat!(
                r#"{"ports":[{"port":1,"targetPort":0,"nodePort":30002}],"type":"ClusterIP","#,
                r#""externalTrafficPolicy":"Local"}"#
            ),
            "what the update changed stays, for validation to see"
        );
    }
}
