//! Warnings of ports that are said twice.

use std::collections::BTreeMap;
use std::fmt;

use keelson_api::core::v1::{ContainerPort, PodSpec};
use keelson_machinery::field::Path;

/// Pairs of ports that are compared. Their number grows with the square of that of the ports, and of so many warnings
/// none is shown.
const MAX_PAIRS: usize = 10_000;

/// A port and where it is said.
type Said<'a> = (&'a ContainerPort, Place<'a>);

/// The place of a port, shown as `spec.containers[0].ports[1]`.
#[derive(Clone, Copy)]
struct Place<'a> {
    at: &'a Path,
    list: &'static str,
    i: usize,
    k: usize,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { at, list, i, k } = self;
        write!(f, "{at}.{list}[{i}].ports[{k}]")
    }
}

/// Of all containers, those that initialize first: ports that others have too, then names that others have too.
pub(super) fn of_ports(spec: &PodSpec, at: &Path) -> Vec<String> {
    let mut ports: Vec<Said<'_>> = Vec::new();
    for (list, name) in [
        (&spec.init_containers, "initContainers"),
        (&spec.containers, "containers"),
    ] {
        for (i, container) in list.iter().enumerate() {
            let of_container = container.ports.iter().enumerate();
            ports.extend(of_container.map(|(k, port)| (port, Place { at, list: name, i, k })));
        }
    }
    let mut found = repeated_ports(&ports);
    found.extend(repeated_names(&ports));
    found
}

fn repeated_ports(ports: &[Said<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    let mut known: BTreeMap<(i32, &str), Vec<usize>> = BTreeMap::new();
    let mut pairs = 0;
    for (place, (port, path)) in ports.iter().enumerate() {
        if pairs > MAX_PAIRS {
            break;
        }
        if !port.host_ip.is_empty() && port.host_port == 0 {
            found.push(format!(
                "{path}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} Protocol:{} HostIP:{}}}",
                port.name, port.container_port, port.protocol, port.host_ip
            ));
        }
        let same = known.entry((port.container_port, &port.protocol)).or_default();
        pairs += same.len();
        for (other, other_path) in same.iter().filter_map(|i| ports.get(*i)) {
            if let Some(how) = relation(port, other) {
                found.push(format!("{path}: {how} port definition with {other_path}"));
            }
        }
        same.push(place);
    }
    found
}

/// How the same port of two containers is said, if both are one on the host.
fn relation(a: &ContainerPort, b: &ContainerPort) -> Option<&'static str> {
    let one_open = a.host_ip.is_empty() || b.host_ip.is_empty();
    match (a.host_port == b.host_port, a.host_ip == b.host_ip) {
        (true, true) => Some("duplicate"),
        (true, false) if !one_open => None,
        (true, false) if a.host_port == 0 => Some("overlapping"),
        (true, false) => Some("dangerously ambiguous"),
        (false, _) => (a.host_port == 0 || b.host_port == 0).then_some("overlapping"),
    }
}

fn repeated_names(ports: &[Said<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    let mut known: BTreeMap<&str, Place<'_>> = BTreeMap::new();
    for (port, path) in ports.iter().filter(|(port, _)| !port.name.is_empty()) {
        match known.get(port.name.as_str()) {
            Some(first) => found.push(format!(
                "{path}: duplicate port name {:?} with {first}, services and probes that select ports by name will use {first}",
                port.name
            )),
            None => drop(known.insert(&port.name, *path)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn a_port_that_is_said_very_often_costs_little() {
        let ports = vec![r#"{"containerPort":80}"#; 20_000].join(",");
        let spec: PodSpec = read(&format!(r#"{{"containers":[{{"ports":[{ports}]}}]}}"#));
        let found = of_ports(&spec, &Path::new("s")).len();
        assert!((1_000..=MAX_PAIRS + 200).contains(&found), "{found}");
    }

    #[test]
    fn ports_that_are_said_twice() {
        let spec = |ports: &str| -> PodSpec { read(&format!(r#"{{"containers":[{{"ports":[{ports}]}}]}}"#)) };
        for (ports, expected) in [
            (r#"{"containerPort":80},{"containerPort":80,"protocol":"UDP"}"#, ""),
            (
                r#"{"containerPort":80},{"containerPort":80}"#,
                "s.containers[0].ports[1]: duplicate port definition with s.containers[0].ports[0]",
            ),
            (
                r#"{"containerPort":80,"hostPort":1},{"containerPort":80,"hostPort":2}"#,
                "",
            ),
            (
                r#"{"containerPort":80,"hostPort":1},{"containerPort":80}"#,
                "s.containers[0].ports[1]: overlapping port definition with s.containers[0].ports[0]",
            ),
            (
                r#"{"containerPort":80,"hostPort":1},{"containerPort":80,"hostPort":1,"hostIP":"1.2.3.4"}"#,
                "s.containers[0].ports[1]: dangerously ambiguous port definition with s.containers[0].ports[0]",
            ),
            (
                r#"{"containerPort":80,"hostIP":"1.2.3.4"}"#,
                "s.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol: \
                 HostIP:1.2.3.4}",
            ),
            (
                r#"{"containerPort":80,"name":"x"},{"containerPort":81,"name":"x"}"#,
                "s.containers[0].ports[1]: duplicate port name \"x\" with s.containers[0].ports[0], services and probes \
                 that select ports by name will use s.containers[0].ports[0]",
            ),
        ] {
            assert_eq!(of_ports(&spec(ports), &Path::new("s")).join("\n"), expected, "{ports}");
        }
    }
}
