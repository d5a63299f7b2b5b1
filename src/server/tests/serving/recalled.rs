//! Writes that begin with what the store's memory holds, which may be of the past: no client notices, and no read of
//! the store is spent where memory is right.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use keelson_storage::{Entry, Got, ListOptions, Store, StoreError};

use crate::forwarded::forwarded;
use crate::setting::{Client, ORDERS, Server};

const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const JSON: &str = "application/json";

/// A store that recalls what a test says, and counts its reads of keys.
struct Remembering {
    store: Arc<dyn Store>,
    memory: Mutex<HashMap<String, Entry>>,
    reads: AtomicUsize,
}

impl Remembering {
    /// From now on memory holds what the store holds.
    async fn remember(&self, key: &str) {
        let entry = self.store.get(key).await.unwrap().entry.unwrap();
        self.memory.lock().unwrap().insert(key.to_owned(), entry);
    }

    fn reads(&self) -> usize {
        self.reads.swap(0, Ordering::Relaxed)
    }
}

impl Store for Remembering {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Got, StoreError>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.store.get(key)
    }
    fn recall(&self, _prefix: &str, key: &str) -> Option<Entry> {
        self.memory.lock().unwrap().get(key).cloned()
    }
    forwarded!(
        list,
        snapshot,
        held,
        events,
        write,
        watch,
        request_progress,
        current_revision,
        compact,
        grant,
        health,
        close,
    );
}

/// A server with one order, a client, and the store.
async fn setting() -> (Server, Client, Arc<Remembering>) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let server = Server::configured(move |config| {
        let store = Arc::new(Remembering {
            store: config.storage.store.clone(),
            memory: Mutex::default(),
            reads: AtomicUsize::new(0),
        });
        config.storage.store = store.clone();
        sender.send(store).unwrap();
    });
    let mut client = server.client().await;
    client.create("one", 1).await;
    (server, client, receiver.recv().unwrap())
}

/// The key of the order.
async fn key(store: &Remembering) -> String {
    let all = store.store.list("/registry/", ListOptions::default()).await.unwrap();
    let key = all.entries.iter().find(|entry| entry.key.ends_with("/default/one"));
    key.unwrap().key.to_string()
}

async fn send(client: &mut Client, method: &str, media_type: &str, body: &str) -> (u16, serde_json::Value) {
    client.send(method, &format!("{ORDERS}/one"), media_type, body).await
}

async fn label(client: &mut Client, name: &str, value: &str) -> serde_json::Value {
    let patch = format!(r#"{{"metadata":{{"labels":{{"{name}":"{value}"}}}}}}"#);
    let (status, object) = send(client, "PATCH", MERGE_PATCH, &patch).await;
    assert_eq!(status, 200, "{object}");
    object
}

#[tokio::test]
async fn a_write_on_what_memory_rightly_holds_reads_nothing() {
    let (_server, mut client, store) = setting().await;
    let key = key(&store).await;
    store.remember(&key).await;
    store.reads();
    let mut object = label(&mut client, "a", "1").await;
    assert_eq!(store.reads(), 0);
    store.remember(&key).await;
    object["metadata"]["labels"]["a"] = "2".into();
    let (status, _) = send(&mut client, "PUT", JSON, &object.to_string()).await;
    assert_eq!((status, store.reads()), (200, 0));
    store.remember(&key).await;
    let (status, _) = send(&mut client, "DELETE", JSON, "{}").await;
    assert_eq!((status, store.reads()), (200, 0));
}

/// Another server has written meanwhile: nothing of it is lost, and what was read from there is accepted.
#[tokio::test]
async fn a_write_on_the_past_is_made_on_the_present() {
    let (_server, mut client, store) = setting().await;
    let key = key(&store).await;
    store.remember(&key).await;
    label(&mut client, "a", "1").await;
    let mut object = label(&mut client, "b", "2").await;
    assert_eq!(object["metadata"]["labels"], serde_json::json!({"a": "1", "b": "2"}));
    object["metadata"]["labels"]["c"] = "3".into();
    let (status, object) = send(&mut client, "PUT", JSON, &object.to_string()).await;
    assert_eq!(status, 200, "its revision is the present one: {object}");
    let test = r#"[{"op":"test","path":"/metadata/labels/c","value":"3"},{"op":"add","path":"/metadata/labels/d","value":"4"}]"#;
    let (status, object) = send(&mut client, "PATCH", JSON_PATCH, test).await;
    assert_eq!(status, 200, "in the past there was no such label: {object}");
    let wanted = format!(
        r#"{{"preconditions":{{"resourceVersion":{}}}}}"#,
        object["metadata"]["resourceVersion"]
    );
    let (status, told) = send(&mut client, "DELETE", JSON, &wanted).await;
    assert_eq!(status, 200, "{told}");
}

/// Refusals, and writes that change nothing, are told of the present only.
#[tokio::test]
async fn what_is_not_written_is_confirmed() {
    let (_server, mut client, store) = setting().await;
    let key = key(&store).await;
    let first = label(&mut client, "a", "1").await;
    store.remember(&key).await;
    let second = label(&mut client, "a", "2").await;
    // In memory the label is still 1.
    let third = label(&mut client, "a", "1").await;
    assert_ne!(
        third["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    assert_ne!(
        third["metadata"]["resourceVersion"],
        second["metadata"]["resourceVersion"]
    );
    let (status, told) = send(&mut client, "PUT", JSON, &first.to_string()).await;
    assert_eq!(status, 409, "what memory holds is not what there is: {told}");
    let (status, _) = send(&mut client, "DELETE", JSON, "{}").await;
    assert_eq!(status, 200);
    let (status, told) = send(
        &mut client,
        "PATCH",
        MERGE_PATCH,
        r#"{"metadata":{"labels":{"a":"3"}}}"#,
    )
    .await;
    assert_eq!(status, 404, "{told}");
    let (status, told) = send(&mut client, "DELETE", JSON, "{}").await;
    assert_eq!(status, 404, "{told}");
}
