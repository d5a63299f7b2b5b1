//! Plans of node ports, which a service takes and frees: worked out before any is taken, so that one write does it.

use std::collections::{BTreeMap, BTreeSet};

use keelson_api::core::v1::{ServicePort, ServiceSpec};

use super::super::validate::needs_health_check;
use super::{Batch, Want};

/// Where a port goes that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// A port of the service, by its place in the list.
    Port(usize),
    /// The one at which nodes say whether they have pods.
    HealthCheck,
}

/// What is to be done for a service.
#[derive(Default)]
pub struct Plan {
    pub batch: Batch,
    /// Of each port that is taken.
    pub places: Vec<Place>,
    /// Ports of the service that get the number of one that is taken: which, and of which.
    shared: Vec<(usize, usize)>,
    /// A number that one protocol has twice. It is found when all before it is taken.
    pub repeated: Option<ServicePort>,
}

impl Plan {
    fn take(&mut self, want: Want, place: Place) -> usize {
        self.batch.take.push(want);
        self.places.push(place);
        self.places.len() - 1
    }

    /// Writes the numbers that were taken into the service.
    pub fn fill(&self, spec: &mut ServiceSpec, taken: &[i32]) {
        let to_shared = self
            .shared
            .iter()
            .map(|(port, of)| (Place::Port(*port), taken.get(*of)));
        let to_own = self.places.iter().copied().zip(taken.iter().map(Some));
        for (place, number) in to_own.chain(to_shared) {
            let number = number.copied().unwrap_or_default();
            match place {
                Place::Port(port) => spec.ports[port].node_port = number,
                Place::HealthCheck => spec.health_check_node_port = number,
            }
        }
    }
}

/// Whether the service may have node ports.
fn has_node_ports(spec: &ServiceSpec) -> bool {
    matches!(spec.r#type.as_str(), "NodePort" | "LoadBalancer")
}

/// Whether ports that ask for no number get one.
fn gives_numbers(spec: &ServiceSpec) -> bool {
    match spec.r#type.as_str() {
        "NodePort" => true,
        "LoadBalancer" => spec.allocate_load_balancer_node_ports.unwrap_or(true),
        _ => false,
    }
}

/// The numbers that ports of a service have.
fn numbers(ports: &[ServicePort]) -> Vec<i32> {
    let numbers = ports.iter().map(|port| port.node_port);
    numbers.filter(|number| *number != 0).collect()
}

/// A new service.
pub fn of_new(spec: &ServiceSpec) -> Plan {
    let mut plan = Plan::default();
    if has_node_ports(spec) {
        of_new_ports(&mut plan, &spec.ports, gives_numbers(spec));
    }
    if needs_health_check(spec) {
        plan.take(wanted(spec.health_check_node_port), Place::HealthCheck);
    }
    plan
}

fn wanted(number: i32) -> Want {
    match number {
        0 => Want::Any,
        number => Want::This(number),
    }
}

/// Ports of one number share a node port, whatever their protocols.
fn of_new_ports(plan: &mut Plan, ports: &[ServicePort], gives: bool) {
    // By the number of the port: which of those that are taken it has, and what that is if it is known.
    let mut seen: BTreeMap<i32, (usize, i32)> = BTreeMap::new();
    for (place, port) in ports.iter().enumerate() {
        if port.node_port == 0 && !gives {
            continue;
        }
        match seen.get(&port.port) {
            None => {
                let mut same = ports.iter().filter(|other| other.port == port.port);
                let number = same
                    .find(|other| other.node_port != 0)
                    .map_or(0, |other| other.node_port);
                let taken = plan.take(wanted(number), Place::Port(place));
                seen.insert(port.port, (taken, number));
            }
            Some((taken, _)) if port.node_port == 0 => plan.shared.push((place, *taken)),
            Some((_, number)) if port.node_port != *number => {
                plan.take(Want::This(port.node_port), Place::Port(place));
            }
            Some(_) => {}
        }
    }
}

/// A service that is changed.
pub fn of_change(new: &ServiceSpec, old: &ServiceSpec) -> Plan {
    let mut plan = Plan::default();
    if has_node_ports(new) {
        of_changed_ports(&mut plan, new, old);
        if plan.repeated.is_some() {
            return plan;
        }
    } else if has_node_ports(old) {
        plan.batch.free.extend(numbers(&old.ports));
    }
    match (needs_health_check(old), needs_health_check(new)) {
        (false, true) => drop(plan.take(wanted(new.health_check_node_port), Place::HealthCheck)),
        (true, false) => plan.batch.free.push(old.health_check_node_port),
        _ => {}
    }
    plan
}

fn of_changed_ports(plan: &mut Plan, new: &ServiceSpec, old: &ServiceSpec) {
    let before = numbers(&old.ports);
    let known: BTreeSet<i32> = before.iter().copied().collect();
    let mut asked = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for (place, port) in new.ports.iter().enumerate() {
        let number = port.node_port;
        if number == 0 {
            if gives_numbers(new) {
                plan.take(Want::Any, Place::Port(place));
            }
            continue;
        }
        if !known.contains(&number) && asked.insert(number) {
            plan.take(Want::This(number), Place::Port(place));
        }
        if !seen.insert((&port.protocol, number)) {
            plan.repeated = Some(port.clone());
            return;
        }
    }
    let now: BTreeSet<i32> = numbers(&new.ports).into_iter().collect();
    let gone = before.iter().filter(|number| !now.contains(number));
    plan.batch.free.extend(gone);
}

/// What is free when a service is gone.
pub fn of_gone(spec: &ServiceSpec) -> Vec<i32> {
    let mut free = numbers(&spec.ports);
    if needs_health_check(spec) && spec.health_check_node_port > 0 {
        free.push(spec.health_check_node_port);
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    fn spec(json: &str) -> ServiceSpec {
        read(json)
    }

    fn shown(plan: &Plan) -> String {
        let take = plan.batch.take.iter().zip(&plan.places);
        let take = take.map(|(want, place)| match (want, place) {
            (Want::This(number), Place::Port(at)) => format!("{at}={number}"),
            (Want::Any, Place::Port(at)) => format!("{at}=any"),
            (Want::This(number), Place::HealthCheck) => format!("h={number}"),
            (Want::Any, Place::HealthCheck) => "h=any".to_owned(),
        });
        let shared = plan.shared.iter().map(|(port, of)| format!("{port}~{of}"));
        let free = plan.batch.free.iter().map(|number| format!("-{number}"));
        take.chain(shared).chain(free).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn new_services_take_ports() {
        for (service, expected) in [
            (r#"{"type":"ClusterIP","ports":[{"port":1}]}"#, ""),
            (
                r#"{"type":"NodePort","ports":[{"port":1},{"port":2,"nodePort":30002}]}"#,
                "0=any 1=30002",
            ),
            (
                r#"{"type":"NodePort","ports":[{"port":1,"protocol":"TCP"},{"port":1,"protocol":"UDP"}]}"#,
                "0=any 1~0",
            ),
            (
                r#"{"type":"NodePort","ports":[{"port":1,"protocol":"TCP"},{"port":1,"protocol":"UDP","nodePort":30001}]}"#,
                "0=30001",
            ),
            (
                r#"{"type":"NodePort","ports":[{"port":1,"nodePort":30001},{"port":1,"nodePort":30002,"protocol":"UDP"}]}"#,
                "0=30001 1=30002",
            ),
            (
                r#"{"type":"NodePort","ports":[{"port":1,"nodePort":30001},{"port":2,"nodePort":30001}]}"#,
                "0=30001 1=30001",
            ),
            (
                r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local","ports":[{"port":1}]}"#,
                "0=any h=any",
            ),
            (
                r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local","allocateLoadBalancerNodePorts":false,
                    "healthCheckNodePort":30009,"ports":[{"port":1},{"port":2,"nodePort":30002}]}"#,
                "1=30002 h=30009",
            ),
        ] {
            assert_eq!(shown(&of_new(&spec(service))), expected, "{service}");
        }
        let mut service = spec(r#"{"type":"NodePort","ports":[{"port":1},{"port":2},{"port":1,"protocol":"UDP"}]}"#);
        of_new(&service).fill(&mut service, &[30_001, 30_002]);
        assert_eq!(numbers(&service.ports), [30_001, 30_002, 30_001]);
    }

    #[test]
    fn changes_take_and_free_ports() {
        let node_port = r#"{"type":"NodePort","ports":[{"port":1,"nodePort":30001},{"port":2,"nodePort":30002}]}"#;
        let local = r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local","healthCheckNodePort":30009,
            "ports":[{"port":1,"nodePort":30001}]}"#;
        for (old, new, expected) in [
            (node_port, node_port, ""),
            (
                node_port,
                r#"{"type":"ClusterIP","ports":[{"port":1}]}"#,
                "-30001 -30002",
            ),
            (
                node_port,
                r#"{"type":"NodePort","ports":[{"port":1,"nodePort":30003},{"port":9}]}"#,
                "0=30003 1=any -30001 -30002",
            ),
            (
                local,
                r#"{"type":"LoadBalancer","externalTrafficPolicy":"Cluster","ports":[{"port":1,"nodePort":30001}]}"#,
                "-30009",
            ),
            (local, r#"{"type":"ExternalName"}"#, "-30001 -30009"),
            (r#"{"type":"ExternalName"}"#, local, "0=30001 h=30009"),
            (
                r#"{"type":"ClusterIP"}"#,
                r#"{"type":"NodePort","ports":[{"port":1,"nodePort":30001},{"port":1,"nodePort":30001,"protocol":"UDP"}]}"#,
                "0=30001",
            ),
        ] {
            let plan = of_change(&spec(new), &spec(old));
            assert_eq!(shown(&plan), expected, "{new}");
            assert_eq!(plan.repeated.map(|port| port.node_port), None);
        }
        let twice = r#"{"type":"NodePort","ports":[{"port":1,"nodePort":30005},{"port":3,"nodePort":30005}]}"#;
        let plan = of_change(&spec(twice), &spec(node_port));
        assert_eq!(
            (shown(&plan).as_str(), plan.repeated.map(|port| port.port)),
            ("0=30005", Some(3))
        );
        assert_eq!(of_gone(&spec(local)), [30001, 30009]);
    }
}
