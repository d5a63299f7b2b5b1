//! Stores that go back to an older state, and clients that come with what they know of the newer one; stores whose
//! memory lags behind.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use keelson_storage::{HistoryLimits, Store, StoreConfig};

use crate::setting::{Client, ORDERS, Server, soon, text};
use crate::swapped::Swapped;

async fn empty() -> Arc<dyn Store> {
    let history = HistoryLimits::default();
    keelson_storage::open(StoreConfig::Memory { history }).await.unwrap()
}

/// A server, a client, and the store.
async fn setting() -> (Server, Client, Arc<Swapped>) {
    let store = Arc::new(Swapped::new(empty().await));
    let served = store.clone();
    let server = Server::configured(move |config| config.storage.store = served);
    let client = server.client().await;
    (server, client, store)
}

async fn create(client: &mut Client, name: &str, half: &str) {
    let body = format!(
        r#"{{"metadata":{{"name":"{name}","labels":{{"half":"{half}"}}}},"spec":{{"customer":"ann","street":"s","items":[{{"article":"a"}}],"price":1}}}}"#
    );
    let request = http::Request::post(format!("http://localhost{ORDERS}"))
        .header("content-type", "application/json")
        .body(Full::from(Bytes::from(body)))
        .unwrap();
    let answer = soon(client.sender.send_request(request)).await.unwrap();
    assert_eq!(answer.status(), 201);
}

async fn delete(client: &mut Client, name: &str) {
    let request = http::Request::delete(format!("http://localhost{ORDERS}/{name}"));
    let answer = client.sender.send_request(request.body(Full::default()).unwrap());
    assert_eq!(soon(answer).await.unwrap().status(), 200);
}

async fn read(client: &mut Client, query: &str) -> (u16, serde_json::Value) {
    let answer = client.get(&format!("{ORDERS}?{query}")).await;
    let status = answer.status().as_u16();
    (status, serde_json::from_str(&text(answer).await).unwrap())
}

/// Names of a list, and its resource version.
async fn names(client: &mut Client, query: &str) -> (BTreeSet<String>, u64) {
    let (status, list) = read(client, query).await;
    assert_eq!(status, 200, "{list}");
    let name = |item: &serde_json::Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    let names = list["items"].as_array().unwrap().iter().map(name).collect();
    (
        names,
        list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap(),
    )
}

/// Enough for an index.
const OBJECTS: usize = 220;

/// An index that was made on one timeline shows nothing of it on another, also when that has come to the same revision.
#[tokio::test]
async fn lists_by_label_go_by_the_timeline_that_is_served() {
    let (_server, mut client, store) = setting().await;
    for n in 0..OBJECTS {
        create(&mut client, &format!("old-{n:03}"), "a").await;
    }
    let mut newest = 0;
    for _ in 0..3 {
        newest = names(&mut client, "labelSelector=half%3Da").await.1;
    }
    store.put_back(empty().await);
    let (mut n, mut revision) = (0, 0);
    while revision < newest + 20 {
        let half = if n % 2 == 0 { "a" } else { "b" };
        create(&mut client, &format!("new-{n:03}"), half).await;
        n += 1;
        if revision + 10 > newest || n % 50 == 0 {
            let (all, at) = names(&mut client, "").await;
            let mut halves = names(&mut client, "labelSelector=half%3Da").await.0;
            halves.append(&mut names(&mut client, "labelSelector=half%3Db").await.0);
            assert_eq!(halves, all, "at {at}");
            revision = at;
        } else {
            revision += 1;
        }
    }
}

/// A resource version that is ahead of the store was handed out on another timeline: who watches from it would miss all
/// that happened up to it.
#[tokio::test]
async fn a_watch_from_another_timeline_ends_at_once() {
    let (_server, mut client, store) = setting().await;
    for n in 0..5 {
        create(&mut client, &format!("old-{n}"), "a").await;
    }
    let ahead = names(&mut client, "").await.1;
    store.put_back(empty().await);
    create(&mut client, "new", "a").await;
    let current = names(&mut client, "").await.1;
    assert!(ahead > current);
    let from_here = format!("resourceVersion={current}&timeoutSeconds=1");
    assert!(
        client.watch(&from_here).await.next().await.is_none(),
        "nothing is missed"
    );
    for wanted in [ahead, current + 1, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
        let initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        for more in ["", "&allowWatchBookmarks=true", "&labelSelector=half%3Da", initial] {
            let query = format!("resourceVersion={wanted}{more}");
            let mut watch = client.watch(&query).await;
            let event = watch.next().await.expect("an error");
            assert_eq!(event["type"], "ERROR", "{query}: {event}");
            let status = &event["object"];
            assert_eq!(
                (&status["code"], &status["reason"]),
                (&410.into(), &"Expired".into()),
                "{query}"
            );
            let message = format!("too old resource version: {wanted} ({current})");
            assert_eq!(status["message"], message);
            assert!(watch.next().await.is_none());
        }
    }
}

/// The pages of a list are of one timeline, or the client is told to begin again as if too much time had passed.
#[tokio::test]
async fn a_page_of_another_timeline_is_refused() {
    let (_server, mut client, store) = setting().await;
    for n in 0..6 {
        create(&mut client, &format!("old-{n}"), "a").await;
    }
    let (_, first) = read(&mut client, "limit=2").await;
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    let (status, second) = read(&mut client, &format!("limit=2&continue={token}")).await;
    assert_eq!((status, second["items"].as_array().unwrap().len()), (200, 2));
    let later = second["metadata"]["continue"].as_str().unwrap().to_owned();

    store.put_back(empty().await);
    for n in 0..9 {
        create(&mut client, &format!("new-{n}"), "a").await;
    }
    delete(&mut client, "new-8").await;
    for token in [token, later] {
        let (status, refused) = read(&mut client, &format!("limit=2&continue={token}")).await;
        assert_eq!((status, &refused["reason"]), (410, &"Expired".into()), "{refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.starts_with("The provided continue parameter is too old"),
            "{message}"
        );
        // With the token of the answer the list goes on, as of now.
        let token = refused["metadata"]["continue"].as_str().unwrap();
        let (status, _) = read(&mut client, &format!("limit=2&continue={token}")).await;
        assert_eq!(status, 200);
    }
}

/// Where memory lags behind the store, no more of it is read than is asked for, and the answers are the same.
#[tokio::test]
async fn a_lagging_memory_costs_only_what_is_asked_for() {
    let (_server, mut client, store) = setting().await;
    for n in 0..9 {
        create(&mut client, &format!("o-{n}"), if n % 3 == 0 { "a" } else { "b" }).await;
    }
    let token = |list: &serde_json::Value| list["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    let (_, first) = read(&mut client, "limit=2").await;
    let page = format!("limit=2&continue={}", token(&first));
    // The query, and the limit of what is read: none for one object, that is got.
    for (query, limit) in [
        ("", Some(0)),
        ("limit=1", Some(1)),
        ("limit=4", Some(4)),
        ("limit=100", Some(100)),
        (&page, Some(2)),
        ("labelSelector=half%3Da", Some(0)),
        ("labelSelector=half%3Da&limit=2", Some(0)),
        ("fieldSelector=metadata.name%3Do-3", None),
        ("fieldSelector=metadata.name%3Dnone", None),
        ("fieldSelector=metadata.name%3Do-3&labelSelector=half%3Db", None),
        ("resourceVersion=0", Some(0)),
    ] {
        let held = read(&mut client, query).await;
        store.listed();
        store.set_lags(true);
        let lagging = read(&mut client, query).await;
        store.set_lags(false);
        assert_eq!(lagging, held, "{query}");
        let listed = store.listed();
        let parts: Vec<_> = listed
            .iter()
            .map(|(prefix, limit)| (prefix.ends_with("/default/"), *limit))
            .collect();
        let expected: Vec<_> = limit.map(|limit| (true, limit)).into_iter().collect();
        assert_eq!(parts, expected, "{query}: {listed:?}");
    }
}

/// Nobody may know that the store was put back before the page is read.
#[tokio::test]
async fn a_page_whose_reading_finds_another_timeline_is_refused() {
    let (_server, mut client, store) = setting().await;
    let other = empty().await;
    let old = store.now();
    store.put_back(other.clone());
    for n in 0..9 {
        create(&mut client, &format!("new-{n}"), "a").await;
    }
    store.put_back(old);
    for n in 0..6 {
        create(&mut client, &format!("old-{n}"), "a").await;
    }
    let (_, first) = read(&mut client, "limit=2").await;
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    store.put_back_unseen(other);
    let (status, refused) = read(&mut client, &format!("limit=2&continue={token}")).await;
    assert_eq!((status, &refused["reason"]), (410, &"Expired".into()), "{refused}");
}
