//! Servers that share an etcd: services of all of them have addresses and node ports of their own, and each server is
//! an endpoint of the service `kubernetes` as long as it runs.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IPAddress;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;

use crate::support::{Etcd, Server, keelson};

const PATIENCE: Duration = Duration::from_secs(60);
/// Writers on each server, and what each makes.
const WRITERS: usize = 32;
const SERVICES: usize = 2;

async fn started(etcd: &Etcd, address: &str) -> Server {
    let flags = [
        format!("--etcd-servers={}", etcd.url),
        format!("--advertise-address={address}"),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        // Hardly more than are needed.
        "--service-node-port-range=30000-30159".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Server::start(keelson(), &flags).await
}

/// Waits until these are the addresses of the endpoints and of their slice.
async fn leads_to(server: &Server, expected: &[&str]) {
    let client = server.client().await;
    let endpoints = Api::<Endpoints>::namespaced(client.clone(), "default");
    let slices = Api::<EndpointSlice>::namespaced(client, "default");
    let begin = Instant::now();
    loop {
        let subsets = endpoints.get("kubernetes").await.unwrap().subsets.unwrap_or_default();
        let addresses = subsets.into_iter().flat_map(|one| one.addresses.unwrap_or_default());
        let addresses: Vec<String> = addresses.map(|address| address.ip).collect();
        let slice = slices.get("kubernetes").await.unwrap();
        let shown: Vec<String> = slice
            .endpoints
            .into_iter()
            .flatten()
            .flat_map(|one| one.addresses)
            .collect();
        if addresses == expected && shown == expected {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{addresses:?} {shown:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Makes services side by side, and shows what they have got.
async fn write(server: &Server, name: &str) -> Vec<Service> {
    let services = Api::<Service>::namespaced(server.client().await, "default");
    let writers = (0..WRITERS).map(|writer| {
        let services = services.clone();
        async move {
            let mut made = Vec::new();
            for number in 0..SERVICES {
                let service = json!({"metadata": {"name": format!("{name}-{writer}-{number}")},
                    "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
                let service = serde_json::from_value(service).unwrap();
                made.push(services.create(&PostParams::default(), &service).await.unwrap());
            }
            made
        }
    });
    join_all(writers).await.into_iter().flatten().collect()
}

#[tokio::test]
async fn servers_on_one_etcd_give_nothing_twice_and_know_each_other() {
    let Some(etcd) = Etcd::start() else { return };
    let first = started(&etcd, "192.0.2.11").await;
    leads_to(&first, &["192.0.2.11"]).await;
    let second = started(&etcd, "192.0.2.12").await;
    leads_to(&first, &["192.0.2.11", "192.0.2.12"]).await;

    let (one, two) = tokio::join!(write(&first, "one"), write(&second, "two"));
    let all: Vec<Service> = one.into_iter().chain(two).collect();
    let specs = || all.iter().filter_map(|service| service.spec.as_ref());
    let addresses: BTreeSet<&str> = specs().filter_map(|spec| spec.cluster_ip.as_deref()).collect();
    let ports = specs().flat_map(|spec| spec.ports.iter().flatten());
    let ports: BTreeSet<i32> = ports.filter_map(|port| port.node_port).collect();
    assert_eq!((addresses.len(), ports.len()), (all.len(), all.len()));

    // What one server gave, the other takes back.
    let services = Api::<Service>::namespaced(second.client().await, "default");
    let deletions = all.iter().map(|service| {
        let (services, name) = (services.clone(), service.metadata.name.clone().unwrap());
        async move { services.delete(&name, &DeleteParams::default()).await.map(drop) }
    });
    for done in join_all(deletions).await {
        done.unwrap();
    }
    let addresses = Api::<IPAddress>::all(first.client().await);
    let left = addresses.list(&ListParams::default()).await.unwrap();
    let left: Vec<_> = left
        .items
        .into_iter()
        .filter_map(|address| address.metadata.name)
        .collect();
    assert_eq!(left, ["10.0.0.1"], "that of the service kubernetes");
    write(&first, "again").await;

    let (status, _, _folder) = second.terminate();
    assert_eq!(status.code(), Some(0));
    leads_to(&first, &["192.0.2.11"]).await;
}

/// One that is killed is an endpoint until its note in the store has expired.
#[tokio::test]
async fn a_server_that_is_killed_is_no_endpoint_any_more() {
    let Some(etcd) = Etcd::start() else { return };
    let (first, second) = (started(&etcd, "192.0.2.11").await, started(&etcd, "192.0.2.12").await);
    leads_to(&first, &["192.0.2.11", "192.0.2.12"]).await;
    drop(second);
    leads_to(&first, &["192.0.2.11"]).await;
}

/// A server has an identity lease, which goes with it.
#[tokio::test]
async fn a_server_has_an_identity() {
    let Some(etcd) = Etcd::start() else { return };
    let first = started(&etcd, "192.0.2.11").await;
    let leases = async |server: &Server| {
        let leases = Api::<Lease>::namespaced(server.client().await, "kube-system");
        let of_servers = ListParams::default().labels("apiserver.kubernetes.io/identity=kube-apiserver");
        leases.list(&of_servers).await.unwrap().items
    };
    let found = leases(&first).await;
    assert_eq!(found.len(), 1);
    let (name, spec) = (found[0].metadata.name.clone().unwrap(), found[0].spec.clone().unwrap());
    assert!(name.starts_with("apiserver-"), "{name}");
    assert!(spec.holder_identity.clone().unwrap().starts_with(&format!("{name}_")));
    assert_eq!(spec.lease_duration_seconds, Some(3_600));
    assert_eq!(first.terminate().0.code(), Some(0));
    let second = started(&etcd, "192.0.2.12").await;
    let again = leases(&second).await;
    assert_eq!(again.len(), 1, "{again:?}");
    assert_ne!(again[0].spec.clone().unwrap().holder_identity, spec.holder_identity);
}
