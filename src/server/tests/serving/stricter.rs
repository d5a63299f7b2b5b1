//! A definition that became stricter than what is stored: what stays as it was passes, and no object is held by it.

use keelson_storage::{Expect, Write};
use serde_json::json;

use crate::faulty_store::Meddled;
use crate::setting::{Client, ORDERS, Server};

const MERGE: &str = "application/merge-patch+json";
const ORDER: &str = "/apis/shop.example.com/v1/namespaces/default/orders/old";

/// In the place of the one text the other, which is as long.
fn replaced(value: &mut [u8], old: &[u8], new: &[u8]) {
    let at = value.windows(old.len()).position(|window| window == old).unwrap();
    value[at..at + old.len()].copy_from_slice(new);
}

/// A server with the order `old`, whose customer and type no new order may have.
async fn setting() -> (Server, Client) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let server = Server::configured(move |config| sender.send(Meddled::of(config)).unwrap());
    let store = receiver.recv().unwrap();
    let mut client = server.client().await;
    client.create("old", 1).await;
    let entry = store.entry("old").await.unwrap();
    let mut value = entry.value.to_vec();
    // Fields 1 and 6, texts of three bytes.
    replaced(&mut value, b"\x0a\x03ann", b"\x0a\x03ANN");
    replaced(&mut value, b"\x32\x03Web", b"\x32\x03Fax");
    let write = Write::Put {
        value: value.into(),
        lease: None,
    };
    let expect = Expect::Revision(entry.mod_revision);
    store.store.write(&entry.key, expect, write).await.unwrap();
    let stored = client.object(ORDER).await;
    assert_eq!(stored["spec"]["customer"], "ANN", "{stored}");
    assert_eq!(stored["spec"]["type"], "Fax", "{stored}");
    (server, client)
}

#[tokio::test]
async fn writes_of_other_parts_pass_and_those_of_the_value_itself_do_not() {
    let (_server, mut client) = setting().await;
    for (path, body) in [
        (ORDER.to_owned(), json!({"metadata": {"labels": {"a": "b"}}})),
        (format!("{ORDER}/status"), json!({"status": {"boxes": 2}})),
        (format!("{ORDER}/scale"), json!({"spec": {"replicas": 3}})),
        (ORDER.to_owned(), json!({"spec": {"price": 2}})),
    ] {
        let (code, told) = client.send("PATCH", &path, MERGE, &body.to_string()).await;
        assert_eq!(code, 200, "{path} {body}: {told}");
    }
    let new = json!({"spec": {"type": "Telex"}}).to_string();
    let (code, told) = client.send("PATCH", ORDER, MERGE, &new).await;
    assert_eq!(code, 422, "{told}");
    let causes = told["details"]["causes"].as_array().unwrap();
    let fields: Vec<&str> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    // The second says that rules in CEL were not looked at.
    assert_eq!(fields, ["spec.type", "<nil>"], "{told}");
    // What may be is no mistake of who mends it.
    let mended = json!({"spec": {"type": "Phone"}}).to_string();
    assert_eq!(client.send("PATCH", ORDER, MERGE, &mended).await.0, 200);
    let mut another = client.object(ORDER).await;
    another["metadata"] = json!({"name": "new"});
    let (code, told) = client
        .send("POST", ORDERS, "application/json", &another.to_string())
        .await;
    assert_eq!(code, 422, "{told}");
}

#[tokio::test]
async fn a_deleted_object_lets_its_finalizer_go() {
    let (_server, mut client) = setting().await;
    let held = json!({"metadata": {"finalizers": ["example.com/wait"]}}).to_string();
    assert_eq!(client.send("PATCH", ORDER, MERGE, &held).await.0, 200);
    assert_eq!(client.send("DELETE", ORDER, "application/json", "").await.0, 200);
    let going = client.object(ORDER).await;
    assert!(going["metadata"]["deletionTimestamp"].is_string(), "{going}");
    let free = json!({"metadata": {"finalizers": null}}).to_string();
    let (code, told) = client.send("PATCH", ORDER, MERGE, &free).await;
    assert_eq!(code, 200, "{told}");
    assert_eq!(client.get(ORDER).await.status(), 404);
}
