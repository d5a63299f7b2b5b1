//! Corrupt objects: one that can't be decoded hurts itself alone.

use std::sync::Arc;

use keelson_access::authz::Authorization;
use keelson_machinery::protobuf;
use keelson_server::server::Config;
use keelson_storage::{Expect, Write};
use serde_json::{Value, json};

use crate::faulty_store::Meddled;
use crate::setting::{Client, Events, ORDERS, Server, Verbs, text};

const JSON: &str = "application/json";
const INSIST: &str = r#"{"ignoreStoreReadErrorWithClusterBreakingPotential":true}"#;

/// A server with the orders `good-1`, `bad` and `good-2`, of which one was stored by somebody who knew other fields.
async fn setting() -> (Server, Client) {
    setting_with(|_| {}).await
}

/// The same with another configuration.
async fn setting_with(change: impl FnOnce(&mut Config) + Send + 'static) -> (Server, Client) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let server = Server::configured(move |config| {
        change(config);
        sender.send(Meddled::of(config)).unwrap();
    });
    let store = receiver.recv().unwrap();
    let mut client = server.client().await;
    for name in ["bad", "good-1", "good-2"] {
        client.create(name, 1).await;
    }
    let entry = store.entry("bad").await.unwrap();
    // The first byte of the message says a field of a wire type that there is not.
    let mut value = entry.value.to_vec();
    let raw = protobuf::decode_envelope(&entry.value).unwrap().raw.as_ptr() as usize - entry.value.as_ptr() as usize;
    value[raw] = 0x0f;
    let write = Write::Put {
        value: value.into(),
        lease: None,
    };
    store
        .store
        .write(&entry.key, Expect::Revision(entry.mod_revision), write)
        .await
        .unwrap();
    (server, client)
}

async fn status(client: &mut Client, path: &str) -> (u16, Value) {
    let answer = client.get(path).await;
    let code = answer.status().as_u16();
    (code, serde_json::from_str(&text(answer).await).unwrap())
}

#[tokio::test]
async fn one_hurts_itself_alone_and_is_named() {
    let (_server, mut client) = setting().await;
    let key = "/registry/shop/orders/default/bad";
    let (code, told) = status(&mut client, &format!("{ORDERS}/bad")).await;
    let message = told["message"].as_str().unwrap();
    assert!(code == 500 && message.contains(key), "{told}");
    assert_eq!(status(&mut client, &format!("{ORDERS}/good-1")).await.0, 200);
    for _ in 0..2 {
        let (code, told) = status(&mut client, ORDERS).await;
        assert_eq!((code, &told["reason"]), (500, &json!("StorageReadError")), "{told}");
        assert_eq!(
            told["message"],
            "failed to read one or more orders.shop.example.com from the storage"
        );
        let causes = told["details"]["causes"].as_array().unwrap();
        assert_eq!((causes.len(), &causes[0]["field"]), (1, &json!(key)), "{told}");
    }
    let metrics = text(client.get("/metrics").await).await;
    let counted = r#"apiserver_storage_decode_errors_total{group="shop.example.com",resource="orders"}"#;
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test]
async fn whoever_insists_removes_one() {
    let (_server, mut client) = setting().await;
    let path = format!("{ORDERS}/bad");
    assert_eq!(client.send("DELETE", &path, JSON, "{}").await.0, 500);
    let (code, told) = client.send("DELETE", &path, JSON, INSIST).await;
    assert_eq!((code, &told["status"]), (200, &json!("Success")), "{told}");
    assert_eq!(status(&mut client, &path).await.0, 404);
    assert_eq!(client.send("DELETE", &path, JSON, INSIST).await.0, 404);
    let (code, list) = status(&mut client, ORDERS).await;
    assert_eq!((code, list["items"].as_array().unwrap().len()), (200, 2));
    // What can be read is deleted as ever.
    let (code, told) = client.send("DELETE", &format!("{ORDERS}/good-1"), JSON, INSIST).await;
    assert_eq!(code, 200, "{told}");
}

#[tokio::test]
async fn a_right_to_delete_is_none_to_remove_what_can_not_be_read() {
    const INSISTING: &str = "unsafe-delete-ignore-read-errors";
    let path = format!("{ORDERS}/bad");
    for (verbs, deleted, then) in [
        (&["create", "get", "delete"][..], 403, 500),
        (&["create", "get", INSISTING], 403, 500),
        (&["create", "get", "delete", INSISTING], 200, 404),
    ] {
        let authorization = Authorization::new(vec![Arc::new(Verbs(verbs))]);
        let (_server, mut client) = setting_with(|config| config.access.authorization = authorization).await;
        let (code, told) = client.send("DELETE", &path, JSON, INSIST).await;
        assert_eq!(code, deleted, "{verbs:?}: {told}");
        assert_eq!(status(&mut client, &path).await.0, then, "{verbs:?}");
    }
}

/// The events of a watch until its end: type and name, or what an error says.
async fn all(mut events: Events) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        let object = &event["object"];
        let told = object["metadata"]["name"].as_str().or(object["message"].as_str());
        seen.push((event["type"].as_str().unwrap().to_owned(), told.unwrap().to_owned()));
    }
    seen
}

#[tokio::test]
async fn a_watch_that_comes_to_one_names_it_and_the_others_go_on() {
    let (server, mut client) = setting().await;
    let mut of_one = client.watch("fieldSelector=metadata.name%3Dgood-1").await;
    assert_eq!(of_one.next_name().await, "good-1");
    for query in ["resourceVersion=1", ""] {
        let seen = all(client.watch(query).await).await;
        let (kind, told) = seen.last().unwrap();
        assert!(
            kind == "ERROR" && told.contains("/registry/shop/orders/default/bad"),
            "{seen:?}"
        );
    }
    let (_, patched) = client
        .send(
            "PATCH",
            &format!("{ORDERS}/good-1"),
            "application/merge-patch+json",
            r#"{"spec":{"price":2}}"#,
        )
        .await;
    let after = patched["metadata"]["resourceVersion"].as_str().unwrap();
    let mut since = server.client().await;
    let since = since.watch(&format!("resourceVersion={after}")).await;
    let (code, told) = client.send("DELETE", &format!("{ORDERS}/bad"), JSON, INSIST).await;
    assert_eq!(code, 200, "{told}");
    client.create("late", 1).await;
    // Whoever saw it being there can't be told of it: as with kube-apiserver, the watch ends and is begun anew.
    let seen = all(since).await;
    assert!(seen.len() == 1 && seen[0].0 == "ERROR", "{seen:?}");
    assert_eq!(of_one.next_name().await, "good-1");
    let mut anew = client.watch("").await;
    for name in ["good-1", "good-2", "late"] {
        assert_eq!(anew.next_name().await, name);
    }
}
