//! Cells of services and endpoints.

use std::collections::BTreeSet;

use keelson_api::core::v1::{Endpoints, Service, ServicePort};

use super::{NONE, first_few, pairs};

cells! { pub const ENDPOINTS: Endpoints =
    "endpoints_endpoints" => endpoints,
}
cells! { pub const SERVICE: Service =
    "service_cluster_ip" => cluster_ip,
    "service_external_ip" => external_ip,
    "service_port_s" => ports,
    "service_selector" => selector,
    "service_type" => |o| o.spec.r#type.clone(),
}

/// The first address within the cluster.
fn cluster_ip(service: &Service) -> String {
    let only = Some(&service.spec.cluster_ip).filter(|ip| !ip.is_empty());
    service
        .spec
        .cluster_ips
        .first()
        .or(only)
        .cloned()
        .unwrap_or_else(|| NONE.to_owned())
}

/// Where the service is reached from outside.
fn external_ip(service: &Service) -> String {
    let spec = &service.spec;
    match spec.r#type.as_str() {
        "ClusterIP" | "NodePort" if spec.external_ips.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => spec.external_ips.join(","),
        "LoadBalancer" => {
            let ingress = &service.status.load_balancer.ingress;
            let address = |i: &keelson_api::core::v1::LoadBalancerIngress| match i.ip.as_str() {
                "" => i.hostname.clone(),
                ip => ip.to_owned(),
            };
            let balanced: BTreeSet<String> = ingress.iter().map(address).filter(|a| !a.is_empty()).collect();
            let all: Vec<String> = balanced.into_iter().chain(spec.external_ips.iter().cloned()).collect();
            if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            }
        }
        "ExternalName" => spec.external_name.clone(),
        _ => "<unknown>".to_owned(),
    }
}

/// `80/TCP,443:30443/TCP`.
fn ports(service: &Service) -> String {
    let port = |p: &ServicePort| match p.node_port {
        node if node > 0 => format!("{}:{node}/{}", p.port, p.protocol),
        _ => format!("{}/{}", p.port, p.protocol),
    };
    match service.spec.ports.len() {
        0 => NONE.to_owned(),
        _ => service.spec.ports.iter().map(port).collect::<Vec<_>>().join(","),
    }
}

/// Labels of the pods behind the service.
fn selector(service: &Service) -> String {
    pairs(&service.spec.selector)
}

/// The first addresses with their ports.
fn endpoints(endpoints: &Endpoints) -> String {
    let mut all: Vec<String> = Vec::new();
    for subset in &endpoints.subsets {
        if subset.ports.is_empty() {
            all.extend(subset.addresses.iter().map(|a| a.ip.clone()));
        }
        for port in &subset.ports {
            all.extend(subset.addresses.iter().map(|a| host_port(&a.ip, port.port)));
        }
    }
    first_few(all, NONE)
}

fn host_port(host: &str, port: i32) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;

    use super::*;

    fn service(spec: &str, status: &str) -> Service {
        let mut service = Service::default();
        json::read(
            format!(r#"{{"spec":{spec},"status":{status}}}"#).as_bytes(),
            &mut service,
        )
        .unwrap();
        service
    }

    #[test]
    fn the_external_address_depends_on_the_type() {
        let balanced = r#"{"loadBalancer":{"ingress":[{"hostname":"b.example"},{"ip":"192.0.2.9"},{}]}}"#;
        for (spec, status, expected) in [
            (r#"{"type":"ClusterIP"}"#, "{}", "<none>"),
            (
                r#"{"type":"NodePort","externalIPs":["192.0.2.1","192.0.2.2"]}"#,
                "{}",
                "192.0.2.1,192.0.2.2",
            ),
            (r#"{"type":"LoadBalancer"}"#, "{}", "<pending>"),
            (r#"{"type":"LoadBalancer"}"#, balanced, "192.0.2.9,b.example"),
            (
                r#"{"type":"LoadBalancer","externalIPs":["192.0.2.1"]}"#,
                "{}",
                "192.0.2.1",
            ),
            (
                r#"{"type":"ExternalName","externalName":"a.example"}"#,
                "{}",
                "a.example",
            ),
            (r#"{"type":"Else"}"#, "{}", "<unknown>"),
        ] {
            assert_eq!(external_ip(&service(spec, status)), expected, "{spec}");
        }
    }

    #[test]
    fn ports_show_the_node_port_too() {
        let spec = r#"{"ports":[{"port":80,"protocol":"TCP"},{"port":53,"nodePort":30053,"protocol":"UDP"}]}"#;
        assert_eq!(ports(&service(spec, "{}")), "80/TCP,53:30053/UDP");
        assert_eq!(ports(&service("{}", "{}")), "<none>");
        assert_eq!(cluster_ip(&service("{}", "{}")), "<none>");
        assert_eq!(cluster_ip(&service(r#"{"clusterIP":"None"}"#, "{}")), "None");
    }

    #[test]
    fn three_endpoints_are_shown() {
        for (subsets, expected) in [
            ("[]", "<none>"),
            (r#"[{"addresses":[{"ip":"10.0.0.1"}]}]"#, "10.0.0.1"),
            (
                r#"[{"addresses":[{"ip":"fd00::1"}],"ports":[{"port":80},{"port":81}]}]"#,
                "[fd00::1]:80,[fd00::1]:81",
            ),
            (
                r#"[{"addresses":[{"ip":"a"},{"ip":"b"}],"ports":[{"port":1},{"port":2}]},{"addresses":[{"ip":"c"}]}]"#,
                "a:1,b:1,a:2 + 2 more...",
            ),
        ] {
            let mut object = Endpoints::default();
            json::read(format!(r#"{{"subsets":{subsets}}}"#).as_bytes(), &mut object).unwrap();
            assert_eq!(endpoints(&object), expected);
        }
    }
}
