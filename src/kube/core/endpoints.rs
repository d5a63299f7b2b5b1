//! Endpoints: addresses and ports of what stands behind a service.

use keelson_api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::validation::names;
use keelson_registry::{Context, KindCode, Strategy};

use super::{ip, port};
use crate::cells;

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

    fn validate(&self, _context: &Context, object: &Endpoints) -> ErrorList {
        validate(object, &[])
    }

    fn validate_update(&self, _context: &Context, new: &Endpoints, old: &Endpoints) -> ErrorList {
        validate(new, &addresses(old))
    }
}

fn addresses(endpoints: &Endpoints) -> Vec<&str> {
    let subsets = endpoints.subsets.iter();
    let all = subsets.flat_map(|subset| subset.addresses.iter().chain(&subset.not_ready_addresses));
    all.map(|address| address.ip.as_str()).collect()
}

fn validate(endpoints: &Endpoints, stored: &[&str]) -> ErrorList {
    let mut errors = ErrorList::default();
    for (place, subset) in endpoints.subsets.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        errors.extend(validate_subset(subset, stored, &Path::new("subsets").index(place)));
    }
    errors
}

fn validate_subset(subset: &EndpointSubset, stored: &[&str], path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    if subset.addresses.is_empty() && subset.not_ready_addresses.is_empty() {
        errors.push(FieldError::required(
            path,
            "must specify `addresses` or `notReadyAddresses`",
        ));
    }
    for (field, list) in [
        ("addresses", &subset.addresses),
        ("notReadyAddresses", &subset.not_ready_addresses),
    ] {
        for (place, address) in list.iter().enumerate() {
            if errors.is_full() {
                break;
            }
            errors.extend(validate_address(address, stored, &path.child(field).index(place)));
        }
    }
    for (place, entry) in subset.ports.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        errors.extend(validate_port(
            entry,
            subset.ports.len() > 1,
            &path.child("ports").index(place),
        ));
    }
    errors
}

fn validate_address(address: &EndpointAddress, stored: &[&str], path: &Path) -> ErrorList {
    let place = path.child("ip");
    let mut errors = ip::validate(&address.ip, stored, &place);
    errors.extend(ip::validate_reachable(&address.ip, &place));
    if !address.hostname.is_empty() {
        let texts = names::dns_label(&address.hostname);
        let path = path.child("hostname");
        errors.extend(
            texts
                .into_iter()
                .map(|t| FieldError::invalid(&path, &address.hostname, t)),
        );
    }
    errors
}

fn validate_port(entry: &EndpointPort, named: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    let name = path.child("name");
    match entry.name.as_str() {
        "" if named => errors.push(FieldError::required(&name, "")),
        "" => {}
        text => errors.extend(
            names::dns_label(text)
                .into_iter()
                .map(|t| FieldError::invalid(&name, text, t)),
        ),
    }
    errors.extend(port::validate_number(entry.port, &path.child("port")));
    errors
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
            assert_eq!(lines(&EndpointsStrategy.validate(&context(), &object)), expected);
        }
    }
}
