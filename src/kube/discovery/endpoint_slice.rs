//! Slices of endpoints.

use std::net::IpAddr;

use keelson_api::discovery_k8s_io::v1::{Endpoint, EndpointSlice};
use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::validation::names;
use keelson_registry::{Context, Kept, KindCode, Strategy};

use crate::cells;
use crate::core::ip;
use crate::metadata;

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

    fn warnings(&self, new: &EndpointSlice, old: Option<&EndpointSlice>) -> Vec<String> {
        let old_type = old.is_none() && new.address_type == "FQDN";
        let text = "spec.addressType: FQDN endpoints are deprecated";
        old_type.then(|| text.to_owned()).into_iter().collect()
    }

    fn validate(&self, _context: &Context, object: &EndpointSlice) -> ErrorList {
        validate(object, &[])
    }

    fn validate_update(&self, _context: &Context, new: &EndpointSlice, old: &EndpointSlice) -> ErrorList {
        validate(new, &addresses(old))
    }

    fn prepare_for_create(&self, _context: &Context, object: &mut EndpointSlice) {
        forget_topology(&mut object.endpoints);
    }

    /// A change of labels counts too: consumers find slices by them.
    fn prepare_for_update(&self, _context: &Context, new: &mut EndpointSlice, old: &EndpointSlice) {
        let same =
            |a: &[Endpoint], b: &[Endpoint]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equality::equal(a, b));
        if !same(&new.endpoints, &old.endpoints) {
            forget_topology(&mut new.endpoints);
        }
        if new.metadata.labels != old.metadata.labels {
            new.metadata.generation = old.metadata.generation + 1;
        }
    }
}

fn addresses(slice: &EndpointSlice) -> Vec<&str> {
    let all = slice.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
    all.map(String::as_str).collect()
}

fn validate(slice: &EndpointSlice, stored: &[&str]) -> ErrorList {
    let mut errors = ErrorList::default();
    for (place, endpoint) in slice.endpoints.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = Path::new("endpoints").index(place).child("addresses");
        if endpoint.addresses.is_empty() {
            errors.push(FieldError::required(&path, "must contain at least 1 address"));
        }
        for (place, text) in endpoint.addresses.iter().enumerate() {
            if errors.is_full() {
                break;
            }
            errors.extend(validate_address(text, &slice.address_type, stored, &path, place));
        }
    }
    errors
}

/// The address that stands at `place` in the list at `path`.
fn validate_address(text: &str, ty: &str, stored: &[&str], path: &Path, place: usize) -> ErrorList {
    let at = path.index(place);
    let (fits, other): (fn(&IpAddr) -> bool, _) = match ty {
        "IPv4" => (IpAddr::is_ipv4, "must be an IPv4 address"),
        "IPv6" => (IpAddr::is_ipv6, "must be an IPv6 address"),
        "FQDN" => {
            let faults = names::dns_subdomain(text).into_iter();
            return faults.map(|fault| FieldError::invalid(&at, text, fault)).collect();
        }
        _ => return ErrorList::default(),
    };
    let mut errors = ip::validate_canonical(text, stored, &at);
    if errors.is_empty() {
        let wrong = ip::parse(text).is_none_or(|ip| !fits(&ip));
        errors.extend(wrong.then(|| FieldError::invalid(path, text, other)));
        errors.extend(ip::validate_reachable(text, &at));
    }
    errors
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
            assert_eq!(lines(&EndpointSliceStrategy.validate(&context(), &object)), expected);
            // What is stored stays, but for what leads to the machine itself.
            let kept = EndpointSliceStrategy.validate_update(&context(), &object, &object);
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
