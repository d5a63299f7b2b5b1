//! Resources that come, change and go thousands of times under load: no answer is wrong, no watch is left behind, and
//! nothing of them stays.
//!
//! A few hundred rounds run always. How many is said by `KEELSON_CHURN=10000`, which also looks at the memory of the
//! process: so it is for one of these tests alone.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use keelson_registry::{Registry, Resource};
use keelson_storage::{EtcdConfig, HistoryLimits, Store, StoreConfig};
use serde_json::json;

use crate::etcd_server::EtcdServer;
use crate::installed::{JSON, crontab, definition, documents, path, server, status, types_to_the_end};
use crate::setting::{Client, ORDERS, Server, soon, text};

const MERGE_PATCH: &str = "application/merge-patch+json";
const ROUNDS: usize = 150;
/// Who install and remove at a time, each in a group of its own.
const WORKERS: usize = 2;
/// Clients that ask for everything meanwhile.
const READERS: usize = 2;
/// Memory that may come on top in the second half, in bytes: allocators round.
const GROWTH: usize = 24 << 20;

/// How many rounds were asked for.
fn asked_for() -> Option<usize> {
    let given = std::env::var("KEELSON_CHURN").ok()?;
    Some(given.parse().expect("KEELSON_CHURN is a number"))
}

fn history() -> HistoryLimits {
    HistoryLimits {
        age: Some(Duration::from_secs(5)),
        bytes: 1 << 20,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_memory() {
    churn(StoreConfig::Memory { history: history() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_disk() {
    let dir = tempfile::tempdir().unwrap();
    churn(StoreConfig::Embedded {
        dir: dir.path().to_owned(),
        history: history(),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_etcd() {
    let Some(etcd) = EtcdServer::start() else { return };
    churn(StoreConfig::Etcd(EtcdConfig {
        compaction_interval: Some(Duration::from_secs(5)),
        ..etcd.config()
    }))
    .await;
}

/// What the parties share.
struct Churn {
    server: Server,
    registry: Arc<Registry>,
    store: Arc<dyn Store>,
    /// Resources that were installed.
    resources: Mutex<Vec<(String, Weak<Resource>)>>,
    /// What is there now, for readers to ask for; it may be gone when they do.
    newest: Mutex<Option<(String, String)>>,
    done: AtomicUsize,
    over: AtomicBool,
}

async fn churn(config: StoreConfig) {
    let store = keelson_storage::open(config).await.unwrap();
    let own = store.clone();
    let (server, registry) = server(move |config| config.storage.store = own);
    let mut client = server.client().await;
    let before = documents(&mut client).await;
    let churn = Arc::new(Churn {
        server,
        registry,
        store,
        resources: Mutex::default(),
        newest: Mutex::default(),
        done: AtomicUsize::new(0),
        over: AtomicBool::new(false),
    });
    let rounds = asked_for().unwrap_or(ROUNDS);
    let readers: Vec<_> = (0..READERS).map(|n| tokio::spawn(read(churn.clone(), n))).collect();
    let half = run(&churn, rounds / 2).await;
    let whole = run(&churn, rounds - rounds / 2).await;
    churn.over.store(true, Ordering::Release);
    let mut answers = 0;
    for reader in readers {
        answers += reader.await.unwrap();
    }
    println!("{rounds} rounds, {answers} answers to readers, {half} then {whole} bytes of memory");
    assert!(
        asked_for().is_none() || whole < half + GROWTH,
        "memory grows: {half}, then {whole} bytes"
    );
    // The connection of before may have been idle for too long.
    let mut client = churn.server.client().await;
    assert_eq!(documents(&mut client).await, before, "all is as it was");
    nothing_is_left(&churn, &mut client).await;
}

/// Runs rounds, and says how much memory the process has then.
async fn run(churn: &Arc<Churn>, rounds: usize) -> usize {
    let goal = churn.done.load(Ordering::Acquire) + rounds;
    let workers: Vec<_> = (0..WORKERS)
        .map(|n| tokio::spawn(work(churn.clone(), n, goal)))
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

async fn work(churn: Arc<Churn>, worker: usize, goal: usize) {
    let group = format!("w{worker}.example.com");
    let mut client = churn.server.client().await;
    loop {
        let round = churn.done.fetch_add(1, Ordering::AcqRel);
        if round >= goal {
            churn.done.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        one_round(
            &churn,
            &mut client,
            &group,
            &format!("tabs{round}"),
            round.is_multiple_of(3),
        )
        .await;
    }
}

/// Installs a resource, uses it, changes its definition maybe, and removes it.
async fn one_round(churn: &Churn, client: &mut Client, group: &str, plural: &str, changes: bool) {
    let path = path(group, plural);
    assert_eq!(status(client, &path).await, 404, "before");
    install(churn, group, plural, &["cron"]).await;
    *churn.newest.lock().unwrap() = Some((group.to_owned(), plural.to_owned()));
    let mut watch = client.watch_path(&format!("{path}?watch=1")).await;
    let (code, made) = client
        .send(
            "POST",
            &path,
            JSON,
            &crontab(group, "a", &json!({"cron": "1", "image": "x"})),
        )
        .await;
    assert_eq!(code, 201, "{made}");
    let mut expected = vec!["ADDED", "DELETED"];
    if changes {
        install(churn, group, plural, &["cron", "image"]).await;
        assert_eq!(types_to_the_end(watch).await, ["ADDED"]);
        watch = client.watch_path(&format!("{path}?watch=1")).await;
        let change = json!({"spec": {"image": "y"}}).to_string();
        let (code, changed) = client.send("PATCH", &format!("{path}/a"), MERGE_PATCH, &change).await;
        assert_eq!(
            (code, &changed["spec"]),
            (200, &json!({"cron": "1", "image": "y"})),
            "{changed}"
        );
        let found = client.object(&format!("{path}?fieldSelector=spec.image=y")).await;
        assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found}");
        expected.insert(1, "MODIFIED");
    }
    assert_eq!(client.object(&path).await["items"].as_array().unwrap().len(), 1);
    assert_eq!(client.send("DELETE", &format!("{path}/a"), JSON, "{}").await.0, 200);
    assert!(soon(churn.registry.remove(group, plural)).await);
    assert_eq!(status(client, &path).await, 404, "after");
    assert_eq!(types_to_the_end(watch).await, expected);
}

async fn install(churn: &Churn, group: &str, plural: &str, fields: &[&str]) {
    soon(churn.registry.install(definition(group, plural, fields)))
        .await
        .unwrap();
    let resource = churn.registry.resource(group, plural).unwrap();
    let held = (resource.key_prefix.clone(), Arc::downgrade(&resource));
    let mut resources = churn.resources.lock().unwrap();
    // The test keeps no memory of those that are gone.
    for (_, gone) in resources
        .iter_mut()
        .filter(|(_, resource)| resource.strong_count() == 0)
    {
        *gone = Weak::new();
    }
    resources.push(held);
}

/// Asks for what may be there, and for what is always there; says how often.
async fn read(churn: Arc<Churn>, reader: usize) -> usize {
    let mut client = churn.server.client().await;
    let mut asked = 0;
    while !churn.over.load(Ordering::Acquire) {
        asked += 1;
        let newest = churn.newest.lock().unwrap().clone();
        let Some((group, plural)) = newest else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let path = path(&group, &plural);
        // None of it may fail but by saying that there is no such thing.
        let (path, may_be_gone) = match asked % 8 {
            0 => (path, true),
            1 => (format!("{path}/a"), true),
            2 => (format!("{path}?watch=1&timeoutSeconds=1"), true),
            3 => (format!("/apis/{group}/v1"), true),
            4 => (format!("/openapi/v3/apis/{group}/v1"), true),
            5 => ("/openapi/v2".to_owned(), false),
            6 => ("/openapi/v3".to_owned(), false),
            _ => (ORDERS.to_owned(), false),
        };
        let answer = client.get(&path).await;
        let code = answer.status().as_u16();
        let body = text(answer).await;
        assert!(code == 200 || (may_be_gone && code == 404), "{path}: {code} {body}");
        if asked % 8 == 7 {
            client.create(&format!("order-{reader}-{asked}"), 10).await;
            let one = format!("{ORDERS}/order-{reader}-{asked}");
            assert_eq!(client.send("DELETE", &one, JSON, "{}").await.0, 200);
        }
    }
    asked
}

/// No resource, no mirror, no open watch and no series of metrics is left of what was installed.
async fn nothing_is_left(churn: &Churn, client: &mut Client) {
    let resources = std::mem::take(&mut *churn.resources.lock().unwrap());
    soon(async {
        while resources.iter().any(|(_, resource)| resource.strong_count() > 0) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let is_elsewhere = churn.store.held_position("/registry/nothing/").is_none();
    for (prefix, _) in resources.iter().filter(|_| is_elsewhere) {
        assert!(
            churn.store.held_position(prefix).is_none(),
            "a mirror of {prefix} is left"
        );
    }
    let is_ours = |line: &&str| line.contains("example.com") && !line.contains("shop.example.com");
    soon(async {
        loop {
            let metrics = text(client.get("/metrics").await).await;
            if metrics.lines().filter(is_ours).count() == 0 {
                let mut open = metrics
                    .lines()
                    .filter(|line| line.starts_with("apiserver_longrunning_requests{"));
                assert!(open.all(|line| line.ends_with(" 0")), "{metrics}");
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
}
