//! Quotas under 32 writers of a server that runs as a program: what is used is what was made, nobody gets more than
//! there is, and a server that is killed between taking and writing has counted what it wrote.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, ResourceQuota, Service};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::{Server, keelson};

const PATIENCE: Duration = Duration::from_secs(60);
const WRITERS: usize = 32;
/// What each writer does.
const WRITES: usize = 12;
const NAMESPACE: &str = "default";
const QUOTA: &str = "bound";

fn api<T>(client: &Client) -> Api<T>
where
    T: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
{
    Api::namespaced(client.clone(), NAMESPACE)
}

/// A quota that allows so much of each resource, whose use is counted from these.
async fn bound(client: &Client, hard: Value, used: Value) {
    let quotas = api::<ResourceQuota>(client);
    let quota = json!({"metadata": {"name": QUOTA}, "spec": {"hard": hard}});
    let quota = serde_json::from_value(quota).unwrap();
    quotas.create(&PostParams::default(), &quota).await.unwrap();
    count_anew(client, json!({"hard": hard, "used": used})).await;
}

/// Writes the status, as the controller of quotas does.
async fn count_anew(client: &Client, status: Value) {
    let status = Patch::Merge(json!({"status": status}));
    let quotas = api::<ResourceQuota>(client);
    quotas
        .patch_status(QUOTA, &PatchParams::default(), &status)
        .await
        .unwrap();
}

/// How much of a resource is used.
async fn used(client: &Client, resource: &str) -> usize {
    let quota = api::<ResourceQuota>(client).get(QUOTA).await.unwrap();
    let used = quota.status.unwrap().used.unwrap();
    // Thousands are said in short.
    let (number, unit) = match used[resource].0.strip_suffix('k') {
        Some(thousands) => (thousands, 1_000),
        None => (used[resource].0.as_str(), 1),
    };
    number.parse::<usize>().unwrap() * unit
}

/// What a refused write took is given back behind its answer.
async fn settles(client: &Client, resource: &str, expected: usize) {
    let begin = Instant::now();
    loop {
        let found = used(client, resource).await;
        if found == expected {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{resource}: {found}, not {expected}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"counted": "yes"}}})).unwrap()
}

/// The objects of this test that are there.
async fn maps(client: &Client) -> usize {
    let labelled = ListParams::default().labels("counted=yes");
    api::<ConfigMap>(client).list(&labelled).await.unwrap().items.len()
}

/// Waits until so many more objects of this test are there.
async fn comes_to(client: &Client, more: usize) {
    let (begin, before) = (Instant::now(), maps(client).await);
    while maps(client).await < before + more {
        assert!(begin.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What the writers did that counts.
#[derive(Default)]
struct Made {
    created: AtomicUsize,
    exceeded: AtomicUsize,
}

/// Creates maps, deletes some of them, tries names that are taken, and asks what would be.
async fn write(client: Client, writer: usize, made: Arc<Made>) {
    let maps = api::<ConfigMap>(&client);
    for number in 0..WRITES {
        let name = format!("m-{writer}-{number}");
        let dry = number % 4 == 1;
        let options = PostParams {
            dry_run: dry,
            ..PostParams::default()
        };
        match maps.create(&options, &map(&name)).await {
            Ok(_) if dry => {}
            Ok(_) => {
                made.created.fetch_add(1, Ordering::Relaxed);
                // It takes nothing: there is one.
                let again = maps.create(&PostParams::default(), &map(&name)).await;
                assert!(matches!(again, Err(kube::Error::Api(ref status)) if [403, 409].contains(&status.code)));
            }
            Err(kube::Error::Api(status)) if status.code == 403 => {
                assert!(status.message.contains("exceeded quota: bound"), "{}", status.message);
                made.exceeded.fetch_add(1, Ordering::Relaxed);
            }
            Err(other) => panic!("{other}"),
        }
        if number % 5 == 4 {
            // What was used stays used until it is counted anew.
            let _ = maps
                .delete(&format!("m-{writer}-{}", number - 4), &DeleteParams::default())
                .await;
        }
    }
}

#[tokio::test]
async fn sums_are_exact_under_many_writers_whatever_becomes_of_a_write() {
    let server = Server::start(keelson(), &[]).await;
    let client = server.client().await;
    for most in [150, 10_000] {
        bound(
            &client,
            json!({"count/configmaps": most.to_string()}),
            json!({"count/configmaps": "0"}),
        )
        .await;
        let made = Arc::new(Made::default());
        let writers = (0..WRITERS).map(|writer| write(client.clone(), writer + most, made.clone()));
        join_all(writers).await;
        let created = made.created.load(Ordering::Relaxed);
        let real = WRITERS * (WRITES - WRITES / 4);
        assert_eq!(created, most.min(real));
        assert_eq!(made.exceeded.load(Ordering::Relaxed) > 0, most < real);
        settles(&client, "count/configmaps", created).await;
        let quotas = api::<ResourceQuota>(&client);
        quotas.delete(QUOTA, &DeleteParams::default()).await.unwrap();
    }
}

/// Makes one service a node port after another, back and forth.
async fn turn(client: Client, writer: usize) -> bool {
    let services = api::<Service>(&client);
    let name = format!("s-{writer}");
    let service = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    let service = serde_json::from_value(service).unwrap();
    services.create(&PostParams::default(), &service).await.unwrap();
    let as_type = async |word: &str| {
        let patch = Patch::Merge(json!({"spec": {"type": word}}));
        services.patch(&name, &PatchParams::default(), &patch).await
    };
    let mut is_open = false;
    for _ in 0..3 {
        is_open = match as_type("NodePort").await {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if status.code == 403 => false,
            Err(other) => panic!("{other}"),
        };
        // Unchanged, it takes nothing more.
        if is_open {
            as_type("NodePort").await.unwrap();
        }
    }
    is_open
}

#[tokio::test]
async fn updates_take_what_they_add() {
    const MOST: usize = 10;
    let server = Server::start(keelson(), &[]).await;
    let client = server.client().await;
    bound(
        &client,
        json!({"services": "100", "services.nodeports": MOST.to_string()}),
        json!({"services": "0", "services.nodeports": "0"}),
    )
    .await;
    let open = join_all((0..WRITERS).map(|writer| turn(client.clone(), writer))).await;
    assert_eq!(open.into_iter().filter(|is_open| *is_open).count(), MOST);
    settles(&client, "services.nodeports", MOST).await;
    settles(&client, "services", WRITERS).await;
}

/// Creates maps until the server is gone or nothing is left.
async fn fill(client: Client, writer: String) {
    for number in 0.. {
        let name = format!("k-{writer}-{number}");
        match api::<ConfigMap>(&client)
            .create(&PostParams::default(), &map(&name))
            .await
        {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 403 => return,
            // Killed.
            Err(_) => return,
        }
    }
}

#[tokio::test]
async fn a_server_that_is_killed_has_counted_what_it_wrote() {
    const MOST: usize = 2_000;
    let mut server = Server::start(keelson(), &[]).await;
    let hard = json!({"count/configmaps": MOST.to_string()});
    bound(&server.client().await, hard.clone(), json!({"count/configmaps": "0"})).await;
    for round in 0..3 {
        let client = server.client().await;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| tokio::spawn(fill(client.clone(), format!("{round}-{writer}"))))
            .collect();
        comes_to(&client, WRITERS).await;
        tokio::time::sleep(Duration::from_millis(50 * round)).await;
        let folder = server.kill();
        join_all(writers).await;
        server = Server::start_in(keelson(), folder, &[]).await;
        let client = server.client().await;
        let (there, used) = (maps(&client).await, used(&client, "count/configmaps").await);
        assert!(
            there > 0 && there <= used && used <= MOST,
            "{there} are there, {used} are counted"
        );
        // Who took something and was killed before writing leaves no more behind than one each.
        assert!(
            used - there <= WRITERS * (round as usize + 1),
            "{there} are there, {used} are counted"
        );
    }
    let client = server.client().await;
    let there = maps(&client).await;
    count_anew(&client, json!({"used": {"count/configmaps": there.to_string()}})).await;
    join_all((0..WRITERS).map(|writer| fill(client.clone(), format!("last-{writer}")))).await;
    assert_eq!(maps(&client).await, MOST);
    settles(&client, "count/configmaps", MOST).await;
}
