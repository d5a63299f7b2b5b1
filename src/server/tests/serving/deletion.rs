//! Deletions of what has a grace period: interrupted, raced, with any number of seconds.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use keelson_codegen_sample::api::shop_example_com::v1::Order;
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_machinery::protobuf;
use keelson_machinery::time::Time;
use keelson_registry::Strategy;
use keelson_storage::{Expect, StoreError, Write};
use serde_json::{Value, json};

use crate::faulty_store::Meddled;
use crate::faulty_store::Meddling::{self, Failed, Late, Nothing, Put, Removed, Touched};
use crate::setting::{Client, ORDERS, Server, soon};

/// Somebody needs half a minute to end what an order stands for.
struct Graceful;

impl Strategy for Graceful {
    type Object = Order;

    fn grace_seconds(&self, _: &Order, options: &DeleteOptions) -> Option<i64> {
        let seconds = options.grace_period_seconds.unwrap_or(30);
        Some(if seconds < 0 { 1 } else { seconds })
    }
}

/// A server with one order.
async fn setting() -> (Server, Client, Arc<Meddled>) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let server = Server::configured(move |config| {
        sender.send(Meddled::of(config)).unwrap();
        config.resources.code.kind::<Order>().strategy(Graceful);
    });
    let mut client = server.client().await;
    client.create("one", 1).await;
    (server, client, receiver.recv().unwrap())
}

const ONE: &str = "one";
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

fn seconds(seconds: i64) -> Value {
    json!({"gracePeriodSeconds": seconds})
}

async fn delete(client: &mut Client, query: &str, options: &Value) -> (u16, Value) {
    let (path, body) = (format!("{ORDERS}/{ONE}{query}"), options.to_string());
    client.send("DELETE", &path, JSON, &body).await
}

async fn status(client: &mut Client) -> u16 {
    client.get(&format!("{ORDERS}/{ONE}")).await.status().as_u16()
}

fn unavailable() -> Meddling {
    Failed(StoreError::Unavailable("by chance".to_owned()))
}

/// The mark is written, the removal is not: whatever is sent next finishes it.
#[tokio::test]
async fn an_interrupted_deletion_is_finished_by_the_next_write() {
    const PATCH: &str = r#"{"metadata":{"labels":{"a":"b"}}}"#;
    for (method, body) in [
        ("DELETE", "{}"),
        ("DELETE", r#"{"gracePeriodSeconds":0}"#),
        ("DELETE", r#"{"gracePeriodSeconds":60}"#),
        ("DELETE", r#"{"propagationPolicy":"Background"}"#),
        ("PATCH", PATCH),
    ] {
        let (_server, mut client, store) = setting().await;
        store.plan([Nothing, unavailable()]);
        let (code, told) = delete(&mut client, "", &seconds(0)).await;
        assert_eq!(code, 503, "{told}");
        let left = client.object(&format!("{ORDERS}/{ONE}")).await;
        assert_eq!(left["metadata"]["deletionGracePeriodSeconds"], 0, "{left}");
        let path = format!("{ORDERS}/{ONE}");
        let media_type = if method == "PATCH" { MERGE_PATCH } else { JSON };
        let (code, last) = client.send(method, &path, media_type, body).await;
        assert_eq!(code, 200, "{method} {body}: {last}");
        assert_eq!(last["metadata"]["deletionGracePeriodSeconds"], 0, "{last}");
        assert_eq!(status(&mut client).await, 404, "{method} {body}");
    }
}

/// With a finalizer the object stays until that is taken away.
#[tokio::test]
async fn an_interrupted_deletion_waits_for_finalizers() {
    let (_server, mut client, store) = setting().await;
    let path = format!("{ORDERS}/{ONE}");
    store.plan([Nothing, unavailable()]);
    delete(&mut client, "", &seconds(0)).await;
    let (code, told) = delete(&mut client, "", &json!({"propagationPolicy": "Foreground"})).await;
    assert_eq!(
        (code, &told["metadata"]["finalizers"][0]),
        (200, &json!("foregroundDeletion"))
    );
    assert_eq!(status(&mut client).await, 200);
    let patch = r#"{"metadata":{"finalizers":null}}"#;
    let (code, told) = client.send("PATCH", &path, MERGE_PATCH, patch).await;
    assert_eq!(code, 200, "{told}");
    assert_eq!(status(&mut client).await, 404);
}

/// A client that leaves, or whose time is over, does not come between the two writes.
#[tokio::test]
async fn a_request_that_ends_early_leaves_no_half_deletion() {
    const WHILE: Duration = Duration::from_millis(300);
    for plan in [vec![Late(WHILE)], vec![Nothing, Late(WHILE)]] {
        let (_server, mut client, store) = setting().await;
        store.plan(plan);
        let (code, told) = delete(&mut client, "?timeout=50ms", &seconds(0)).await;
        assert_eq!(code, 504, "{told}");
        assert_eq!(status(&mut client).await, 200);
        soon(async {
            while status(&mut client).await == 200 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
}

/// Whoever removes the marked object first does what was asked for.
#[tokio::test]
async fn a_deletion_that_is_overtaken_succeeds() {
    for (plan, writes) in [
        (vec![Nothing, Removed], 2),
        (vec![Nothing, Touched], 3),
        (vec![Nothing, Touched, Removed], 3),
        (vec![Touched, Nothing, Touched, Touched], 5),
    ] {
        let (_server, mut client, store) = setting().await;
        let mut watch = client.watch("resourceVersion=0").await;
        assert_eq!(watch.next().await.unwrap()["type"], "ADDED");
        store.plan(plan);
        let (code, told) = delete(&mut client, "", &seconds(0)).await;
        assert_eq!((code, store.planned()), (200, 0), "{told}");
        assert_eq!(told["metadata"]["deletionGracePeriodSeconds"], 0, "{told}");
        assert_eq!(status(&mut client).await, 404);
        for _ in 1..writes {
            assert_eq!(watch.next().await.unwrap()["type"], "MODIFIED");
        }
        let last = watch.next().await.unwrap();
        assert_eq!(
            (&last["type"], &last["object"]["metadata"]["deletionGracePeriodSeconds"]),
            (&json!("DELETED"), &json!(0))
        );
    }
}

/// The object went and another one of its name came, all after the mark: that one stays.
#[tokio::test]
async fn a_successor_is_not_deleted() {
    let (_server, mut client, store) = setting().await;
    let uid = client.object(&format!("{ORDERS}/{ONE}")).await["metadata"]["uid"].clone();
    let uid = uid.as_str().unwrap();
    let stored = store.entry(ONE).await.unwrap().value.to_vec();
    let at = stored
        .windows(uid.len())
        .position(|part| part == uid.as_bytes())
        .unwrap();
    let mut successor = stored;
    successor[at] = if successor[at] == b'0' { b'1' } else { b'0' };
    store.plan([Nothing, Put(Bytes::from(successor))]);
    let (code, told) = delete(&mut client, "", &seconds(0)).await;
    assert_eq!((code, told["metadata"]["uid"].as_str().unwrap()), (200, uid));
    assert_eq!(status(&mut client).await, 200);
}

/// Who names a version deletes nothing that was written since.
#[tokio::test]
async fn a_version_is_that_of_the_object_to_the_end() {
    let (_server, mut client, store) = setting().await;
    let version = client.object(&format!("{ORDERS}/{ONE}")).await["metadata"]["resourceVersion"].clone();
    let options = json!({"gracePeriodSeconds": 0, "preconditions": {"resourceVersion": version}});
    store.plan([Nothing, Touched]);
    assert_eq!(delete(&mut client, "", &options).await.0, 409);
    assert_eq!(status(&mut client).await, 200);
    let (code, told) = delete(&mut client, "", &json!({})).await;
    assert_eq!(code, 200, "{told}");
    assert_eq!(status(&mut client).await, 404);
}

/// Whatever number of seconds is asked for, others can be listed and watched, and the time can be shortened.
#[tokio::test]
async fn any_grace_period_leaves_lists_readable() {
    for asked in [-1, 1, 30, 999_999_999_999, i64::MAX] {
        let (_server, mut client, _store) = setting().await;
        client.create("two", 1).await;
        let (code, told) = delete(&mut client, "", &seconds(asked)).await;
        assert_eq!(code, 200, "{told}");
        let running = if asked < 0 { 1 } else { asked };
        assert_eq!(told["metadata"]["deletionGracePeriodSeconds"], running, "{told}");
        let list = client.object(ORDERS).await;
        for item in list["items"].as_array().unwrap() {
            if let Some(ends) = item["metadata"]["deletionTimestamp"].as_str() {
                assert!(Time::parse(ends).is_ok(), "{asked}: {ends}");
            }
        }
        let (code, told) = delete(&mut client, "", &seconds(0)).await;
        assert_eq!(code, 200, "{told}");
        assert_eq!(status(&mut client).await, 404, "{asked}");
    }
}

/// An older version of this server has stored a time beyond the calendar.
#[tokio::test]
async fn an_unreadable_time_in_the_store_is_shown_as_the_last_that_can_be_read() {
    let (_server, mut client, store) = setting().await;
    delete(&mut client, "", &seconds(999_999_999_999)).await;
    let entry = store.entry(ONE).await.unwrap();
    let envelope = protobuf::decode_envelope(&entry.value).unwrap();
    let mut order = Order::default();
    protobuf::read_message(envelope.raw, &mut order).unwrap();
    order.metadata.deletion_timestamp = Some(Time::from_unix(1_001_790_000_000, 0));
    let write = Write::Put {
        value: protobuf::encode(&order).into(),
        lease: None,
    };
    let expect = Expect::Revision(entry.mod_revision);
    store.store.write(&entry.key, expect, write).await.unwrap();
    let list = client.object(ORDERS).await;
    let shown = list["items"][0]["metadata"]["deletionTimestamp"].as_str().unwrap();
    assert!(Time::parse(shown).is_ok(), "{shown}");
    let (code, told) = delete(&mut client, "", &seconds(0)).await;
    assert_eq!(code, 200, "{told}");
    assert_eq!(status(&mut client).await, 404);
}
