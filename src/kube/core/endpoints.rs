//! Endpoints: addresses and ports of what stands behind a service.

use keelson_api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};
use keelson_machinery::field::{ErrorList, Path};
use keelson_registry::{Context, KindCode, Strategy};

use crate::cells;
use crate::faults::{self, Faults, given};
use crate::ip;
use crate::typed::same_list;

/// Marks those that are written by a controller, which writes addresses well.
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpoint-controller";

/// Registers the rules of endpoints.
pub fn register(code: &mut KindCode) {
    code.kind::<Endpoints>()
        .strategy(EndpointsStrategy)
        .cells(cells::service::ENDPOINTS);
}

/// The rules of endpoints.
struct EndpointsStrategy;

impl Strategy for EndpointsStrategy {
    type Object = Endpoints;

    fn warnings(&self, new: &Endpoints, _old: Option<&Endpoints>) -> Vec<String> {
        let mut found = Vec::new();
        if new.metadata.labels.get(MANAGED_BY).is_some_and(|by| by == CONTROLLER) {
            return found;
        }
        for (place, subset) in new.subsets.iter().enumerate() {
            let path = Path::new("subsets").index(place);
            for (name, list) in [
                ("addresses", &subset.addresses),
                ("notReadyAddresses", &subset.not_ready_addresses),
            ] {
                for (place, address) in list.iter().enumerate() {
                    found.extend(ip::warnings(&address.ip, &path.child(name).index(place).child("ip")));
                }
            }
        }
        found
    }

    /// What does not change was let through once.
    fn validate(&self, _context: &Context, new: &Endpoints, old: Option<&Endpoints>) -> ErrorList {
        let errors = faults::of_object(|f| f.each("subsets", &new.subsets, check));
        let is_same = |old: &Endpoints| same_list(&new.subsets, &old.subsets);
        if !errors.is_empty() && old.is_some_and(is_same) {
            return ErrorList::default();
        }
        errors
    }
}

fn check(f: &mut Faults<'_>, subset: &EndpointSubset) {
    if subset.addresses.is_empty() && subset.not_ready_addresses.is_empty() {
        f.required("must specify `addresses` or `notReadyAddresses`");
    }
    f.each("addresses", &subset.addresses, address);
    f.each("notReadyAddresses", &subset.not_ready_addresses, address);
    let is_one = subset.ports.len() < 2;
    f.each("ports", &subset.ports, |f, entry| port(f, entry, is_one));
}

fn address(f: &mut Faults<'_>, address: &EndpointAddress) {
    f.at("ip").ip(&address.ip, &[]);
    f.at("hostname").label(given(&address.hostname));
    f.at("nodeName").subdomain(address.node_name.as_deref());
    f.at("ip").reachable_ip(&address.ip);
}

/// Only a port that is alone needs no name.
fn port(f: &mut Faults<'_>, port: &EndpointPort, is_one: bool) {
    if !port.name.is_empty() {
        f.at("name").label(&port.name);
    } else if !is_one {
        f.at("name").required("");
    }
    f.at("port").port(port.port);
    f.at("appProtocol").qualified(port.app_protocol.as_deref());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn addresses_can_be_reached() {
        for (subset, expected) in [
            (r#"{"addresses":[{"ip":"192.168.3.1"}],"ports":[{"port":80}]}"#, ""),
            (
                "{}",
                "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`",
            ),
            (
                r#"{"notReadyAddresses":[{"ip":"x"},{"ip":"127.0.0.1"},{"ip":"fe80::1"},{"ip":"::"},{"ip":"224.0.0.5"}]}"#,
                "subsets[0].notReadyAddresses[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or \
                 2001:db8::ffff)\n\
                 subsets[0].notReadyAddresses[0].ip: Invalid value: \"x\": must be a valid IP address\n\
                 subsets[0].notReadyAddresses[1].ip: Invalid value: \"127.0.0.1\": may not be in the loopback range \
                 (127.0.0.0/8, ::1/128)\n\
                 subsets[0].notReadyAddresses[2].ip: Invalid value: \"fe80::1\": may not be in the link-local range \
                 (169.254.0.0/16, fe80::/10)\n\
                 subsets[0].notReadyAddresses[3].ip: Invalid value: \"::\": may not be unspecified (::)\n\
                 subsets[0].notReadyAddresses[4].ip: Invalid value: \"224.0.0.5\": may not be in the link-local multicast \
                 range (224.0.0.0/24, ff02::/10)",
            ),
            (
                r#"{"addresses":[{"ip":"192.168.3.1"}],"ports":[{"port":0},{"port":1,"name":"a"}]}"#,
                "subsets[0].ports[0].name: Required value\n\
                 subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            ),
        ] {
            let object: Endpoints = read(&format!(r#"{{"subsets":[{subset}]}}"#));
            assert_eq!(lines(&EndpointsStrategy.validate(&context(), &object, None)), expected);
        }
    }
}
