//! Repair of node ports: the record says that those are taken which services have.

use std::collections::{BTreeMap, BTreeSet};

use keelson_api::core::v1::{RangeAllocation, Service};
use keelson_machinery::status::StatusError;
use keelson_registry::{Client, Lister, NamespacedName, Replaced, TypedLister};

use super::super::ports::bitmap::Bitmap;
use super::super::ports::{Fault, PortRange, record};
use super::EachService;

/// How often a port has to be found without a service before it is free: its service may be about to be written.
const LOOKS: u8 = 3;
/// How often the record is compared with the services anew when others write it.
const MAX_ATTEMPTS: usize = 64;

/// Looks at the ports of all services.
pub struct PortRepair {
    range: PortRange,
    /// Ports without a service, and how often they may still be found so.
    leaks: BTreeMap<u16, u8>,
}

impl PortRepair {
    /// Of a range.
    pub fn new(range: PortRange) -> PortRepair {
        let leaks = BTreeMap::new();
        PortRepair { range, leaks }
    }

    /// Puts the record right, or makes it.
    ///
    /// # Errors
    /// The store can't be read or written.
    pub async fn run_once(&mut self, client: &Client) -> Result<(), StatusError> {
        let record = record(client.registry())?;
        let lister = Lister::new(client.of::<Service>("")?.objects.resource).typed();
        for _ in 0..MAX_ATTEMPTS {
            // The record first: what is taken behind it is seen as a write of others.
            let recorded = record.read().await?;
            let stored = recorded.as_ref().map(|recorded| &recorded.value);
            let mut leaks = self.leaks.clone();
            let wanted = self.compare(stored, &with_ports(&lister).await?, &mut leaks);
            let next = RangeAllocation {
                range: self.range.to_string(),
                data: wanted.to_bytes().into(),
                ..stored.cloned().unwrap_or_default()
            };
            let is_right = stored.is_some_and(|stored| stored.range == next.range && stored.data == next.data);
            if is_right || matches!(record.replace(recorded.as_ref(), next).await?, Replaced::Done(_)) {
                self.leaks = leaks;
                return Ok(());
            }
        }
        let text = "node ports can't be repaired now: other servers are faster";
        Err(StatusError::service_unavailable(text))
    }

    /// What has to be taken.
    fn compare(&self, stored: Option<&RangeAllocation>, services: &[Ports], leaks: &mut BTreeMap<u16, u8>) -> Bitmap {
        let stored_range = stored.and_then(|stored| PortRange::parse(&stored.range));
        let range = stored_range.unwrap_or(self.range);
        let mut left = Bitmap::from_bytes(range, stored.map_or(&[][..], |stored| &stored.data));
        let mut wanted = Bitmap::new(self.range);
        for (service, ports) in services {
            for port in ports {
                self.of_service(service, *port, &mut wanted, &mut left, leaks);
            }
        }
        for port in left.taken().collect::<Vec<_>>() {
            let looks = leaks.entry(port).or_insert(LOOKS);
            *looks = looks.saturating_sub(1);
            if *looks > 0 {
                // A port of another range can't be kept.
                let _ = wanted.take(port.into());
            } else {
                tracing::warn!(port, "a node port is of no service; it is given back");
                leaks.remove(&port);
            }
        }
        wanted
    }

    fn of_service(
        &self,
        service: &NamespacedName,
        port: i32,
        wanted: &mut Bitmap,
        left: &mut Bitmap,
        leaks: &mut BTreeMap<u16, u8>,
    ) {
        match wanted.take(port) {
            Ok(number) => {
                if !left.has(port) {
                    tracing::warn!(%service, port, "a node port was not recorded; it is now");
                }
                left.free(port);
                leaks.remove(&number);
            }
            Err(Fault::NotInRange(range)) => {
                tracing::warn!(%service, port, %range, "a node port is not of the range; make the service again");
            }
            Err(_) => {
                tracing::warn!(%service, port, "a node port belongs to two services; one has to be made again");
            }
        }
    }
}

/// A service and its ports.
type Ports = (NamespacedName, Vec<i32>);

/// The services that have ports on nodes.
async fn with_ports(lister: &TypedLister<Service>) -> Result<Vec<Ports>, StatusError> {
    let mut found = Vec::new();
    let mut services = EachService::of(lister).await?;
    while let Some(service) = services.next().await? {
        let ports = ports_of(&service);
        if !ports.is_empty() {
            found.push((NamespacedName::of(&service), ports));
        }
    }
    Ok(found)
}

/// The ports that a service has on nodes: one that several protocols have once, one that a protocol has twice twice.
fn ports_of(service: &Service) -> Vec<i32> {
    let spec = &service.spec;
    let mut found = Vec::new();
    let mut seen: BTreeMap<i32, BTreeSet<&str>> = BTreeMap::new();
    for port in spec.ports.iter().filter(|port| port.node_port != 0) {
        let protocols = seen.entry(port.node_port).or_default();
        let is_first = protocols.is_empty();
        if !protocols.insert(&port.protocol) || is_first {
            found.push(port.node_port);
        }
    }
    let check = spec.health_check_node_port;
    let is_other = seen.get(&check).is_none_or(|protocols| protocols.contains("TCP"));
    if check != 0 && is_other {
        found.push(check);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    const RANGE: PortRange = PortRange {
        first: 30_000,
        last: 30_099,
    };

    fn service(ports: &str) -> Service {
        read(&format!(
            r#"{{"metadata":{{"name":"a","namespace":"b"}},"spec":{{"type":"NodePort","ports":[{ports}]}}}}"#
        ))
    }

    fn recorded(range: PortRange, ports: &[i32]) -> RangeAllocation {
        let mut bitmap = Bitmap::new(range);
        for port in ports {
            bitmap.take(*port).unwrap();
        }
        RangeAllocation {
            range: range.to_string(),
            data: bitmap.to_bytes().into(),
            ..RangeAllocation::default()
        }
    }

    #[test]
    fn ports_are_counted_by_protocol() {
        for (ports, expected) in [
            ("", &[][..]),
            (
                r#"{"port":1,"nodePort":30001,"protocol":"TCP"},{"port":1,"nodePort":30001,"protocol":"UDP"}"#,
                &[30_001],
            ),
            (
                r#"{"port":1,"nodePort":30001,"protocol":"TCP"},{"port":2,"nodePort":30001,"protocol":"TCP"}"#,
                &[30_001, 30_001],
            ),
            (r#"{"port":1}"#, &[]),
        ] {
            assert_eq!(ports_of(&service(ports)), expected, "{ports}");
        }
    }

    #[test]
    fn what_services_have_is_recorded_and_the_rest_is_free_after_a_while() {
        let mut repair = PortRepair::new(RANGE);
        let key = NamespacedName::default();
        let services = [(key.clone(), vec![30_001]), (key, vec![80])];
        let stored = recorded(RANGE, &[30_002]);
        let mut look = |stored: Option<&RangeAllocation>| {
            let mut leaks = repair.leaks.clone();
            let wanted = repair.compare(stored, &services, &mut leaks);
            repair.leaks = leaks;
            wanted.taken().collect::<Vec<_>>()
        };
        assert_eq!(look(Some(&stored)), [30_001, 30_002]);
        assert_eq!(look(Some(&stored)), [30_001, 30_002]);
        assert_eq!(look(Some(&stored)), [30_001], "it was found often enough");
        assert_eq!(look(None), [30_001], "nothing is recorded yet");
        let other = PortRange {
            first: 29_000,
            last: 30_099,
        };
        let stored = recorded(other, &[29_005, 30_001, 30_003]);
        assert_eq!(
            look(Some(&stored)),
            [30_001, 30_003],
            "the range of the command line has changed"
        );
    }
}
