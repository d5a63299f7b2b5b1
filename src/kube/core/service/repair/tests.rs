//! Repair of what a server that was killed leaves behind, and races of writers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use keelson_api::core::v1::Service;
use keelson_api::networking_k8s_io::v1::IPAddress;
use keelson_base::env::SystemEntropy;
use keelson_machinery::env::Entropy;
use keelson_machinery::meta::v1::DeleteOptions;
use tokio::task::LocalSet;

use super::super::addresses::{object, owner};
use super::super::testing::{Cluster, Server};

const PORTS: (u16, u16) = (30_000, 30_127);

#[tokio::test]
async fn addresses_are_put_right() {
    LocalSet::new()
        .run_until(async {
            let (cluster, server) = Cluster::started("10.0.0.0/24", PORTS).await;
            let at = |ip: &str| format!(r#"{{"ports":[{{"port":80}}],"clusterIP":"{ip}"}}"#);
            for (name, ip) in [("a", "10.0.0.10"), ("b", "10.0.0.11"), ("c", "10.0.0.12")] {
                server.create(name, &at(ip)).await.unwrap();
            }
            let addresses = server.client().of::<IPAddress>("").unwrap();
            let put = async |ip: &str, parent: &str, change: &dyn Fn(&mut IPAddress)| {
                let mut address = object(ip.parse().unwrap(), &owner("ns", parent));
                change(&mut address);
                addresses.create(address).await.unwrap();
            };
            let delete = async |ip: &str| addresses.delete(ip, &DeleteOptions::default()).await.unwrap();
            // Of one the record went, of another it names somebody who is not there, of a third it lacks a label.
            delete("10.0.0.10").await;
            delete("10.0.0.11").await;
            put("10.0.0.11", "nobody", &|_| {}).await;
            delete("10.0.0.12").await;
            put("10.0.0.12", "c", &|address| drop(address.metadata.labels.pop_first())).await;
            // These are of nobody; but the last is none of ours.
            put("10.0.0.20", "gone", &|_| {}).await;
            put("10.0.0.21", "a", &|_| {}).await;
            put("10.0.0.22", "gone", &|address| address.metadata.labels.clear()).await;
            server.repair().await;
            let all = server.addresses().await;
            let all: HashMap<&str, &str> = all.iter().map(|(ip, name)| (ip.as_str(), name.as_str())).collect();
            assert_eq!((all["10.0.0.10"], all["10.0.0.11"], all["10.0.0.12"]), ("a", "b", "c"));
            assert_eq!(all.len(), 6, "what is young may be of a service that is being written");
            cluster.clock.advance(61);
            server.repair().await;
            let left: Vec<_> = server.addresses().await.into_iter().map(|(ip, _)| ip).collect();
            assert_eq!(left, ["10.0.0.10", "10.0.0.11", "10.0.0.12", "10.0.0.22"]);
            assert!(
                addresses
                    .find("10.0.0.12")
                    .await
                    .unwrap()
                    .unwrap()
                    .metadata
                    .labels
                    .len()
                    == 2
            );
        })
        .await;
}

/// Which service has an address or port, as its writers know.
type Held = Mutex<HashMap<String, String>>;

/// What is of a service, as keys of that.
fn things(service: &Service) -> Vec<String> {
    let ips = service.spec.cluster_ips.iter().cloned();
    let ports = service.spec.ports.iter().map(|port| port.node_port);
    let ports = ports.filter(|port| *port != 0).map(|port| port.to_string());
    ips.chain(ports).collect()
}

/// A writer of services: makes, changes and deletes them, and notes what they have. What it finds twice, it tells.
struct Writer {
    server: Server,
    held: Arc<Held>,
    faults: Arc<Mutex<Vec<String>>>,
    made: Arc<AtomicUsize>,
    name: String,
    /// Gives up in the midst of some writes.
    leaves: bool,
}

impl Writer {
    fn dice(sides: u8) -> u8 {
        let mut byte = [0];
        SystemEntropy.fill(&mut byte);
        byte[0] % sides
    }

    fn note(&self, service: &Service) {
        let mut held = self.held.lock().unwrap();
        for thing in things(service) {
            if let Some(other) = held.insert(thing.clone(), service.metadata.name.clone())
                && other != service.metadata.name
            {
                let name = &service.metadata.name;
                self.faults
                    .lock()
                    .unwrap()
                    .push(format!("{thing} is of {other} and {name}"));
            }
        }
    }

    fn forget(&self, service: &Service) {
        let mut held = self.held.lock().unwrap();
        for thing in things(service) {
            held.remove(&thing);
        }
    }

    /// Waits for a write, or leaves.
    async fn wait<T>(&self, write: impl Future<Output = T>) -> Option<T> {
        if !self.leaves || Writer::dice(4) > 0 {
            return Some(write.await);
        }
        let patience = Duration::from_micros(u64::from(Writer::dice(250)) * 4);
        tokio::time::timeout(patience, write).await.ok()
    }

    async fn run(&self, rounds: usize) {
        for round in 0..rounds {
            let name = format!("{}-{round}", self.name);
            let spec = match Writer::dice(3) {
                0 => r#"{"ports":[{"port":80}]}"#,
                1 => r#"{"type":"NodePort","ports":[{"port":80}]}"#,
                _ => r#"{"type":"NodePort","ports":[{"name":"a","port":80},{"name":"b","port":81}]}"#,
            };
            let Some(Ok(service)) = self.wait(self.server.create(&name, spec)).await else {
                continue;
            };
            self.made.fetch_add(1, Ordering::Relaxed);
            self.note(&service);
            tokio::task::yield_now().await;
            // From here on others may have it, whatever we are told.
            self.forget(&service);
            if Writer::dice(2) == 0 {
                let external = |service: &mut Service| {
                    service.spec.r#type = "ExternalName".to_owned();
                    service.spec.external_name = "a.example".to_owned();
                };
                let _ = self.wait(self.server.update(&name, external)).await;
            }
            let _ = self.wait(self.server.delete(&name)).await;
        }
    }
}

/// Lets so many writers write at once, half of them on each of two servers; tells how many services they made.
fn race(cluster: &Cluster, writers: usize, rounds: usize, leaves: bool) -> usize {
    let servers = [cluster.server(), cluster.server()];
    let (held, faults, made): (Arc<Held>, Arc<Mutex<Vec<String>>>, Arc<AtomicUsize>) = Default::default();
    let threads = 4;
    let barrier = Arc::new(Barrier::new(threads));
    let begun: Vec<_> = (0..threads)
        .map(|thread| {
            let (server, barrier) = (servers[thread % 2].clone(), barrier.clone());
            let (held, faults, made) = (held.clone(), faults.clone(), made.clone());
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                barrier.wait();
                let all = (0..writers / threads).map(|n| Writer {
                    server: server.clone(),
                    held: held.clone(),
                    faults: faults.clone(),
                    made: made.clone(),
                    name: format!("w{thread}-{n}"),
                    leaves,
                });
                let all: Vec<_> = all.collect();
                let local = LocalSet::new();
                let runs = all.iter().map(|writer| writer.run(rounds));
                local.block_on(&runtime, async {
                    futures_util::future::join_all(runs).await;
                    // What was left behind goes on for a moment.
                    tokio::time::sleep(Duration::from_millis(200)).await;
                });
            })
        })
        .collect();
    begun.into_iter().for_each(|thread| thread.join().unwrap());
    let faults = faults.lock().unwrap();
    assert!(faults.is_empty(), "{faults:?}");
    made.load(Ordering::Relaxed)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, future)
}

/// Two servers, 64 writers, and no more addresses and ports than are needed: nothing is given twice, nothing is lost.
#[test]
fn writers_on_two_servers_never_get_the_same() {
    let (cluster, server) = block_on(Cluster::started("10.0.0.0/25", PORTS));
    let made = race(&cluster, 64, 10, false);
    assert!(made > 500, "{made}");
    let left = block_on(async { (server.addresses().await, server.ports().await) });
    assert_eq!(left, (Vec::new(), Vec::new()));
}

/// Clients that leave in the midst of a write, as those of a server that is killed do: what is lost is found later.
#[test]
fn what_is_left_behind_is_found() {
    let (cluster, server) = block_on(Cluster::started("10.0.0.0/25", PORTS));
    race(&cluster, 64, 10, true);
    block_on(async {
        let services = server.client().of::<Service>("ns").unwrap();
        for service in services.all().await.unwrap() {
            server.delete(&service.metadata.name).await.unwrap();
        }
        for _ in 0..3 {
            cluster.clock.advance(61);
            server.repair().await;
        }
        assert_eq!(
            (server.addresses().await, server.ports().await),
            (Vec::new(), Vec::new())
        );
    });
}

/// The controller finds by itself what was done behind its back.
#[test]
fn the_controller_repairs() {
    let (_cluster, server) = block_on(Cluster::started("10.0.0.0/24", PORTS));
    let controllers = keelson_registry::controller::Controllers::default();
    controllers
        .run(&server.verbs, super::ServiceRepair::new(PORTS))
        .unwrap();
    block_on(async {
        server.create("a", r#"{"ports":[{"port":80}]}"#).await.unwrap();
        let addresses = server.client().of::<IPAddress>("").unwrap();
        let (ip, _) = server.addresses().await.remove(0);
        addresses.delete(&ip, &DeleteOptions::default()).await.unwrap();
        let done = AtomicBool::new(false);
        for _ in 0..500 {
            if server.addresses().await == [(ip.clone(), "a".to_owned())] {
                done.store(true, Ordering::Relaxed);
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(done.into_inner(), "the address was not recorded again");
        controllers.stop().await;
    });
}
