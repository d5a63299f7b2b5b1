//! Controllers of servers that share a store: one of them leads, and another takes over when it ends or is killed.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::support::{Etcd, Server, keelson};

const PATIENCE: Duration = Duration::from_secs(60);

/// Who holds the lease; "": nobody.
async fn holder(server: &Server) -> String {
    let leases = Api::<Lease>::namespaced(server.client().await, "kube-system");
    let lease = leases.get_opt("keelson-controllers").await.unwrap();
    let spec = lease.and_then(|lease| lease.spec).unwrap_or_default();
    assert!(spec.lease_duration_seconds.unwrap_or(15) <= 15);
    spec.holder_identity.unwrap_or_default()
}

/// The next holder, as soon as there is one.
async fn next_holder(server: &Server, before: &str) -> String {
    let begin = Instant::now();
    loop {
        let now = holder(server).await;
        if !now.is_empty() && now != before {
            return now;
        }
        assert!(begin.elapsed() < PATIENCE, "nobody leads: {}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Makes a flow schema whose level is absent, and then the level: a controller says so each time.
async fn is_controlled(server: &Server, name: &str) {
    let client = server.client().await;
    let schemas = Api::<FlowSchema>::all(client.clone());
    let schema = json!({"metadata": {"name": name}, "spec": {"priorityLevelConfiguration": {"name": name}}});
    let schema = serde_json::from_value(schema).unwrap();
    schemas.create(&PostParams::default(), &schema).await.unwrap();
    dangles(&schemas, name, "True").await;
    let level = json!({"metadata": {"name": name}, "spec": {"type": "Limited", "limited":
        {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}});
    let level: PriorityLevelConfiguration = serde_json::from_value(level).unwrap();
    Api::all(client).create(&PostParams::default(), &level).await.unwrap();
    dangles(&schemas, name, "False").await;
}

async fn dangles(schemas: &Api<FlowSchema>, name: &str, expected: &str) {
    let begin = Instant::now();
    loop {
        let schema = schemas.get(name).await.unwrap();
        let conditions = schema.status.and_then(|status| status.conditions).unwrap_or_default();
        if conditions
            .iter()
            .any(|condition| condition.status.as_deref() == Some(expected))
        {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{name} is not {expected}: {conditions:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn leads(server: &Server) -> bool {
    let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
    let metrics = server.client().await.request_text(request).await.unwrap();
    metrics
        .lines()
        .any(|line| line == "leader_election_master_status{name=\"keelson-controllers\"} 1")
}

#[tokio::test]
async fn one_of_several_servers_leads() {
    let Some(etcd) = Etcd::start() else { return };
    let flag = format!("--etcd-servers={}", etcd.url);
    let first = Server::start(keelson(), &[&flag]).await;
    let second = Server::start(keelson(), &[&flag]).await;
    let own = next_holder(&second, "").await;
    is_controlled(&second, "one").await;
    let (leader, second) = match leads(&first).await {
        true => (first, second),
        false => (second, first),
    };
    assert!(leads(&leader).await && !leads(&second).await);

    // A leader that ends gives the lease back: nobody has to wait until it runs out.
    let (status, _, _folder) = leader.terminate();
    let begin = Instant::now();
    assert_eq!(status.code(), Some(0));
    let next = next_holder(&second, &own).await;
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    is_controlled(&second, "two").await;

    // One that is killed does not.
    drop(second);
    let third = Server::start(keelson(), &[&flag]).await;
    assert_eq!(holder(&third).await, next);
    next_holder(&third, &next).await;
    is_controlled(&third, "three").await;
    assert!(leads(&third).await);
}

/// Without others there is nobody to elect: no lease, and controllers run at once.
#[tokio::test]
async fn a_server_alone_needs_no_lease() {
    let server = Server::start(keelson(), &["--storage-backend=memory"]).await;
    is_controlled(&server, "one").await;
    assert_eq!(holder(&server).await, "");
    let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
    let metrics = server.client().await.request_text(request).await.unwrap();
    let adds = "workqueue_adds_total{name=\"priority_and_fairness_config_queue\"} ";
    let adds = metrics
        .lines()
        .find_map(|line| line.strip_prefix(adds))
        .expect(&metrics);
    assert!(adds.parse::<u64>().unwrap() >= 13, "{adds}");
}
