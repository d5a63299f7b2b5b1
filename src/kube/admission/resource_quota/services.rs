//! Services in quotas: themselves, load balancers, ports of nodes.

use keelson_api::core::v1::Service;

use super::amounts::{Amounts, count};

const COUNT: &str = "count/services";
const SERVICES: &str = "services";
const NODE_PORTS: &str = "services.nodeports";
const LOAD_BALANCERS: &str = "services.loadbalancers";

/// Whether services use a resource of this name.
pub fn concerns(name: &str) -> bool {
    matches!(name, COUNT | SERVICES | NODE_PORTS | LOAD_BALANCERS)
}

/// What a service uses.
pub fn usage(service: &Service) -> Amounts {
    let spec = &service.spec;
    let (ports, balancers) = match spec.r#type.as_str() {
        "NodePort" => (spec.ports.len(), 0),
        "LoadBalancer" if spec.allocate_load_balancer_node_ports == Some(false) => {
            (spec.ports.iter().filter(|port| port.node_port != 0).count(), 1)
        }
        "LoadBalancer" => (spec.ports.len(), 1),
        _ => (0, 0),
    };
    let amounts = [
        (COUNT, 1),
        (SERVICES, 1),
        (NODE_PORTS, ports),
        (LOAD_BALANCERS, balancers),
    ];
    amounts.map(|(name, number)| (name.to_owned(), count(number))).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::resource_quota::amounts::text;
    use crate::testing::read;

    #[test]
    fn ports_of_nodes_are_counted_where_a_service_has_any() {
        let ports = r#""ports":[{"port":1},{"port":2,"nodePort":30000}]"#;
        for (spec, expected) in [
            (format!(r#"{{"type":"ClusterIP",{ports}}}"#), (0, 0)),
            (format!(r#"{{"type":"NodePort",{ports}}}"#), (0, 2)),
            (format!(r#"{{"type":"LoadBalancer",{ports}}}"#), (1, 2)),
            (
                format!(r#"{{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,{ports}}}"#),
                (1, 1),
            ),
        ] {
            let usage = usage(&read(&format!(r#"{{"spec":{spec}}}"#)));
            let (balancers, ports) = expected;
            assert_eq!(
                text(&usage),
                format!("count/services=1,services=1,services.loadbalancers={balancers},services.nodeports={ports}"),
                "{spec}"
            );
            assert!(usage.keys().all(|name| concerns(name)));
        }
    }
}
