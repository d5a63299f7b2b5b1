//! Cells of ingresses, network policies, addresses and what belongs to them.

use std::collections::BTreeSet;

use keelson_api::discovery_k8s_io::v1::EndpointSlice;
use keelson_api::networking_k8s_io::v1::{IPAddress, Ingress, IngressClass, NetworkPolicy, ServiceCIDR};

use super::batch::label_selector;
use super::{NONE, UNSET, first_few, or_none};

cells! { pub const INGRESS: Ingress =
    "ingress_address" => address,
    "ingress_class_name" => |o| or_none(o.spec.ingress_class_name.as_deref().unwrap_or_default()),
    "ingress_hosts" => hosts,
    "ingress_ports" => |o| if o.spec.tls.is_empty() { "80" } else { "80, 443" },
}
cells! { pub const INGRESS_CLASS: IngressClass =
    "ingress_class_controller" => |o| o.spec.controller.clone(),
    "ingress_class_parameters" => parameters,
}
cells! { pub const NETWORK_POLICY: NetworkPolicy =
    "network_policy_pod_selector" => |o| label_selector(Some(&o.spec.pod_selector)),
}
cells! { pub const IP_ADDRESS: IPAddress =
    "ip_address_parent_ref" => parent,
}
cells! { pub const SERVICE_CIDR: ServiceCIDR =
    "service_cidr_cidrs" => |o| o.spec.cidrs.join(","),
}
cells! { pub const ENDPOINT_SLICE: EndpointSlice =
    "endpoint_slice_address_type" => |o| o.address_type.clone(),
    "endpoint_slice_endpoints" => slice_endpoints,
    "endpoint_slice_ports" => slice_ports,
}

/// Where the balancer listens, each address once.
fn address(o: &Ingress) -> String {
    let ingress = &o.status.load_balancer.ingress;
    let text = |i: &keelson_api::networking_k8s_io::v1::IngressLoadBalancerIngress| match i.ip.as_str() {
        "" => i.hostname.clone(),
        ip => ip.to_owned(),
    };
    let all: BTreeSet<String> = ingress.iter().map(text).filter(|a| !a.is_empty()).collect();
    all.into_iter().collect::<Vec<_>>().join(",")
}

/// The hosts of the rules that name one; `*` if none does.
fn hosts(o: &Ingress) -> String {
    let named = o.spec.rules.iter().map(|r| r.host.clone()).filter(|h| !h.is_empty());
    first_few(named.collect(), "*")
}

/// `Kind.group/name`.
fn parameters(o: &IngressClass) -> String {
    let Some(parameters) = &o.spec.parameters else {
        return NONE.to_owned();
    };
    let group = parameters.api_group.as_deref().unwrap_or_default();
    let dot = if group.is_empty() { "" } else { "." };
    format!("{}{dot}{group}/{}", parameters.kind, parameters.name)
}

/// `resource.group/namespace/name`.
fn parent(o: &IPAddress) -> String {
    let Some(parent) = &o.spec.parent_ref else {
        return NONE.to_owned();
    };
    let dot = if parent.group.is_empty() { "" } else { "." };
    let slash = if parent.namespace.is_empty() { "" } else { "/" };
    format!(
        "{}{dot}{}/{}{slash}{}",
        parent.resource, parent.group, parent.namespace, parent.name
    )
}

fn slice_endpoints(o: &EndpointSlice) -> String {
    first_few(o.endpoints.iter().flat_map(|e| e.addresses.clone()).collect(), UNSET)
}

/// Numbers of the ports, or their names where no number is set.
fn slice_ports(o: &EndpointSlice) -> String {
    let text = |p: &keelson_api::discovery_k8s_io::v1::EndpointPort| match p.port {
        Some(number) => Some(number.to_string()),
        None => p.name.clone().filter(|n| !n.is_empty()),
    };
    first_few(o.ports.iter().filter_map(text).collect(), UNSET)
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;

    use super::*;

    #[test]
    fn three_hosts_are_shown() {
        for (rules, expected) in [
            ("", "*"),
            ("{}", "*"),
            (r#"{"host":"a"},{}"#, "a"),
            (r#"{"host":"a"},{"host":"b"},{"host":"c"}"#, "a,b,c"),
            (
                r#"{"host":"a"},{"host":"b"},{"host":"c"},{"host":"d"}"#,
                "a,b,c + 1 more...",
            ),
        ] {
            let mut o = Ingress::default();
            json::read(format!(r#"{{"spec":{{"rules":[{rules}]}}}}"#).as_bytes(), &mut o).unwrap();
            assert_eq!(hosts(&o), expected);
        }
    }

    #[test]
    fn addresses_are_sorted() {
        let mut o = Ingress::default();
        let text =
            br#"{"status":{"loadBalancer":{"ingress":[{"hostname":"x"},{"ip":"b","hostname":"y"},{},{"ip":"b"}]}}}"#;
        json::read(text, &mut o).unwrap();
        assert_eq!(address(&o), "b,x");
    }

    #[test]
    fn ports_have_numbers_or_names() {
        for (ports, expected) in [
            ("", "<unset>"),
            (r#"{"name":""}"#, "<unset>"),
            (r#"{"name":"x"},{"name":"y","port":5}"#, "x,5"),
        ] {
            let mut o = EndpointSlice::default();
            json::read(format!(r#"{{"ports":[{ports}]}}"#).as_bytes(), &mut o).unwrap();
            assert_eq!(slice_ports(&o), expected);
        }
    }

    #[test]
    fn references_name_group_and_namespace() {
        for (parent_ref, expected) in [
            ("null", "<none>"),
            (r#"{"resource":"services","namespace":"n","name":"s"}"#, "services/n/s"),
            (r#"{"group":"g","resource":"things","name":"s"}"#, "things.g/s"),
        ] {
            let mut o = IPAddress::default();
            json::read(format!(r#"{{"spec":{{"parentRef":{parent_ref}}}}}"#).as_bytes(), &mut o).unwrap();
            assert_eq!(parent(&o), expected);
        }
    }
}
