//! Slices of endpoints.

use std::net::IpAddr;

use keelson_api::discovery_k8s_io::v1::{Endpoint, EndpointHints, EndpointSlice};
use keelson_machinery::field::{ErrorList, Path};
use keelson_registry::{Context, Kept, KindCode, Strategy};

use crate::cells;
use crate::faults::{self, Faults, Unique, given};
use crate::ip;
use crate::metadata;
use crate::typed::same_list;

const MOST_LABELS: usize = 16;
const MOST_ADDRESSES: usize = 100;
const MOST_PORTS: usize = 20_000;
const MOST_ENDPOINTS: usize = 1000;
const MOST_HINTS: usize = 8;
/// Marks those that are written by a controller, which writes addresses well.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const CONTROLLERS: [&str; 2] = [
    "endpointslice-controller.k8s.io",
    "endpointslicemirroring-controller.k8s.io",
];

/// Registers the rules of endpoint slices.
pub fn register(code: &mut KindCode) {
    code.kind::<EndpointSlice>()
        .strategy(EndpointSliceStrategy)
        .metadata_checks(metadata::WHOLE)
        .kept([Kept::at("addressType")])
        .cells(cells::networking::ENDPOINT_SLICE);
}

/// The rules of endpoint slices.
struct EndpointSliceStrategy;

impl Strategy for EndpointSliceStrategy {
    type Object = EndpointSlice;

    fn order_of_fields(&self) -> &'static [&'static str] {
        &["metadata", "addressType", "ports"]
    }

    fn warnings(&self, new: &EndpointSlice, old: Option<&EndpointSlice>) -> Vec<String> {
        let mut found = Vec::new();
        if old.is_none() && new.address_type == "FQDN" {
            found.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
        let by = new.metadata.labels.get(MANAGED_BY).map_or("", String::as_str);
        if CONTROLLERS.contains(&by) {
            return found;
        }
        for (place, endpoint) in new.endpoints.iter().enumerate() {
            let path = Path::new("endpoints").index(place).child("addresses");
            for (place, address) in endpoint.addresses.iter().enumerate() {
                found.extend(ip::warnings(address, &path.index(place)));
            }
        }
        found
    }

    /// Endpoints that don't change were let through once.
    fn validate(&self, _context: &Context, new: &EndpointSlice, old: Option<&EndpointSlice>) -> ErrorList {
        let is_stored =
            |found: &ErrorList, old: &EndpointSlice| !found.is_empty() && same_list(&new.endpoints, &old.endpoints);
        let mut errors = faults::of_object(|f| check(f, new));
        let found = faults::of_object(|f| endpoints(f, new));
        if !old.is_some_and(|old| is_stored(&found, old)) {
            errors.extend(found);
        }
        errors
    }

    fn prepare_for_create(&self, _context: &Context, object: &mut EndpointSlice) {
        forget_topology(&mut object.endpoints);
    }

    /// A change of labels counts too: consumers find slices by them. So does one that is forgotten.
    fn prepare_for_update(&self, _context: &Context, new: &mut EndpointSlice, old: &EndpointSlice) {
        let changed = !same_list(&new.endpoints, &old.endpoints);
        if changed {
            forget_topology(&mut new.endpoints);
        }
        if changed || new.metadata.labels != old.metadata.labels {
            new.metadata.generation = old.metadata.generation + 1;
        }
    }
}

fn check(f: &mut Faults<'_>, slice: &EndpointSlice) {
    f.at("addressType").required_if(slice.address_type.is_empty(), "");
    if slice.ports.len() > MOST_PORTS {
        f.at("ports").too_many(slice.ports.len(), MOST_PORTS);
        return;
    }
    let mut names = Unique::default();
    f.each("ports", &slice.ports, |f, port| {
        let name = port.name.as_deref().unwrap_or_default();
        f.at("name").label(given(name));
        names.check(&mut f.at("name"), name);
        f.at("appProtocol").qualified(port.app_protocol.as_deref());
    });
}

fn endpoints(f: &mut Faults<'_>, slice: &EndpointSlice) {
    if slice.endpoints.len() > MOST_ENDPOINTS {
        return f.at("endpoints").too_many(slice.endpoints.len(), MOST_ENDPOINTS);
    }
    f.each("endpoints", &slice.endpoints, |f, endpoint| {
        let mut list = f.at("addresses");
        match endpoint.addresses.len() {
            0 => list.required("must contain at least 1 address"),
            count if count > MOST_ADDRESSES => list.too_many(count, MOST_ADDRESSES),
            _ => {}
        }
        for (place, text) in endpoint.addresses.iter().enumerate() {
            address(&mut list, place, text, &slice.address_type);
        }
        f.at("nodeName").subdomain(endpoint.node_name.as_deref());
        let topology = &endpoint.deprecated_topology;
        f.at("deprecatedTopology").max_items(topology.len(), MOST_LABELS);
        f.labels("deprecatedTopology", topology);
        if let Some(name) = endpoint.hostname.as_deref() {
            f.at("hostname").label(name);
        }
        f.some("hints", endpoint.hints.as_deref(), hints);
    });
}

/// The address that stands at `place` in the list at `f`.
fn address(f: &mut Faults<'_>, place: usize, text: &str, ty: &str) {
    if ty == "FQDN" {
        return f.index(place).host_domain(text);
    }
    let (faults, fits): (_, fn(&IpAddr) -> bool) = match ty {
        "IPv4" => (ip::validate(text, &[], &f.index(place).path()), IpAddr::is_ipv4),
        "IPv6" => (
            ip::validate_canonical(text, &[], &f.index(place).path()),
            IpAddr::is_ipv6,
        ),
        _ => return,
    };
    if !faults.is_empty() {
        return f.extend(faults);
    }
    if !ip::parse(text).is_some_and(|ip| fits(&ip)) {
        f.invalid(text, format!("must be an {ty} address"));
    }
    f.index(place).reachable_ip(text);
}

/// For whom an endpoint is meant.
fn hints(f: &mut Faults<'_>, hints: &EndpointHints) {
    if hints.for_zones.len() > MOST_HINTS {
        return f.at("forZones").too_many(hints.for_zones.len(), MOST_HINTS);
    }
    let mut zones = Unique::default();
    f.each("forZones", &hints.for_zones, |f, zone| {
        let mut f = f.at("name");
        zones.check(&mut f, &zone.name);
        f.label_value(&zone.name);
    });
    if hints.for_nodes.len() > MOST_HINTS {
        return f.at("forNodes").too_many(hints.for_nodes.len(), MOST_HINTS);
    }
    let mut nodes = Unique::default();
    f.each("forNodes", &hints.for_nodes, |f, node| {
        let mut f = f.at("name");
        nodes.check(&mut f, &node.name);
        f.subdomain(&node.name);
    });
}

/// Fields of the endpoint have taken its place.
fn forget_topology(endpoints: &mut [Endpoint]) {
    for endpoint in endpoints {
        endpoint.deprecated_topology.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn a_topology_that_is_forgotten_counts_as_a_change() {
        let slice = |more: &str| {
            read::<EndpointSlice>(&format!(
                r#"{{"metadata":{{"generation":4}},"endpoints":[{{"addresses":["10.1.2.3"]{more}}}]}}"#
            ))
        };
        for (more, generation) in [("", 4), (r#","deprecatedTopology":{"a":"b"}"#, 5)] {
            let (mut new, old) = (slice(more), slice(""));
            EndpointSliceStrategy.prepare_for_update(&context(), &mut new, &old);
            assert_eq!(new.metadata.generation, generation, "{more}");
            assert!(same_list(&new.endpoints, &old.endpoints), "{more}");
        }
    }

    /// The texts are those of kube-apiserver.
    #[test]
    fn addresses_can_be_reached() {
        for (ty, list, expected) in [
            ("IPv4", r#"["10.1.2.3"]"#, ""),
            ("IPv6", r#"["fd00::1"]"#, ""),
            ("FQDN", r#"["a.b"]"#, ""),
            (
                "IPv4",
                "[]",
                "endpoints[0].addresses: Required value: must contain at least 1 address",
            ),
            (
                "IPv4",
                r#"["010.1.2.3","127.0.0.1","::1"]"#,
                "endpoints[0].addresses[0]: Invalid value: \"010.1.2.3\": must not have leading 0s\n\
                 endpoints[0].addresses[1]: Invalid value: \"127.0.0.1\": may not be in the loopback range \
                 (127.0.0.0/8, ::1/128)\n\
                 endpoints[0].addresses: Invalid value: \"::1\": must be an IPv4 address\n\
                 endpoints[0].addresses[2]: Invalid value: \"::1\": may not be in the loopback range (127.0.0.0/8, \
                 ::1/128)",
            ),
            (
                "IPv6",
                r#"["::ffff:127.0.0.1","1.2.3.4","fe80::1","::"]"#,
                "endpoints[0].addresses[0]: Invalid value: \"::ffff:127.0.0.1\": must not be an IPv4-mapped IPv6 \
                 address\n\
                 endpoints[0].addresses: Invalid value: \"1.2.3.4\": must be an IPv6 address\n\
                 endpoints[0].addresses[2]: Invalid value: \"fe80::1\": may not be in the link-local range \
                 (169.254.0.0/16, fe80::/10)\n\
                 endpoints[0].addresses[3]: Invalid value: \"::\": may not be unspecified (::)",
            ),
            (
                "IPv6",
                r#"["fd00:0:0::1"]"#,
                "endpoints[0].addresses[0]: Invalid value: \"fd00:0:0::1\": must be in canonical form (\"fd00::1\")",
            ),
        ] {
            let text = format!(r#"{{"addressType":"{ty}","endpoints":[{{"addresses":{list}}}]}}"#);
            let object: EndpointSlice = read(&text);
            assert_eq!(
                lines(&EndpointSliceStrategy.validate(&context(), &object, None)),
                expected
            );
            // What is stored stays, but for what leads to the machine itself.
            let kept = EndpointSliceStrategy.validate(&context(), &object, Some(&object));
            assert!(!lines(&kept).contains("leading") && !lines(&kept).contains("canonical"));
        }
    }

    #[test]
    fn labels_count_and_topology_is_dropped() {
        let mut old: EndpointSlice = read(
            r#"{"metadata":{"generation":1},"endpoints":[{"deprecatedTopology":{"kubernetes.io/hostname":"h","a":"b"}}]}"#,
        );
        EndpointSliceStrategy.prepare_for_create(&context(), &mut old);
        assert!(old.endpoints[0].deprecated_topology.is_empty());
        let mut new = old.clone();
        new.metadata.annotations.insert("a".to_owned(), "b".to_owned());
        EndpointSliceStrategy.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new.metadata.generation, 1);
        new.metadata.labels.insert("a".to_owned(), "b".to_owned());
        EndpointSliceStrategy.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new.metadata.generation, 2);
    }
}
