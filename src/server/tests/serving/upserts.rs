//! Writes that make what is absent and lose the race to another writer, and writes under leases that end too soon.

use std::sync::Arc;
use std::time::Duration;

use keelson_codegen_sample::api::SCHEME;
use keelson_codegen_sample::api::shop_example_com::v1::Order;
use keelson_machinery::scheme::{GroupDesc, KindDesc, Scheme, VersionDesc};
use keelson_registry::Strategy;
use keelson_storage::{LeaseId, StoreError};
use serde_json::{Value, json};

use crate::faulty_store::Meddled;
use crate::faulty_store::Meddling::{Failed, Nothing, Put, Removed};
use crate::setting::{Client, ORDERS, Server};

const ONE: &str = "/apis/shop.example.com/v1/namespaces/default/orders/one";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

/// Orders of the newest version alone, which are updated whatever version they had.
fn unconditional() -> &'static Scheme {
    let group = &SCHEME.groups[0];
    let version = &group.versions[0];
    let kinds = version.kinds.iter().map(|kind| KindDesc {
        conditional_update: false,
        ..kind.clone()
    });
    let version = VersionDesc {
        kinds: Box::leak(kinds.collect()),
        ..*version
    };
    let group = GroupDesc {
        versions: Box::leak(Box::new([version])),
        ..*group
    };
    Box::leak(Box::new(Scheme {
        groups: Box::leak(Box::new([group])),
        ..SCHEME
    }))
}

fn order(customer: &str) -> Value {
    json!({
        "apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": "one"},
        "spec": {
            "customer": customer, "street": "s", "items": [{"article": "a"}], "price": 1,
            "extra": {"apiVersion": "v1", "kind": "X"},
        },
    })
}

async fn setting(scheme: &'static Scheme, strategy: impl Strategy<Object = Order>) -> (Server, Client, Arc<Meddled>) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let server = Server::configured(move |config| {
        sender.send(Meddled::of(config)).unwrap();
        config.resources.schemes = vec![scheme];
        config.resources.code.kind::<Order>().strategy(strategy);
    });
    let client = server.client().await;
    (server, client, receiver.recv().unwrap())
}

struct Ordinary;
impl Strategy for Ordinary {
    type Object = Order;
}

/// What another writer will have made of `one` by then.
async fn rival(client: &mut Client, store: &Meddled) -> bytes::Bytes {
    let (code, told) = client.send("POST", ORDERS, JSON, &order("rival").to_string()).await;
    assert_eq!(code, 201, "{told}");
    let value = store.entry("one").await.unwrap().value.clone();
    assert_eq!(client.send("DELETE", ONE, JSON, "{}").await.0, 200);
    value
}

/// The second of two writers that make the same object changes what the first has made, as if it had come later.
#[tokio::test]
async fn an_upsert_that_loses_the_race_goes_on_as_an_update() {
    let conflict = "Operation cannot be fulfilled on orders.shop.example.com \"one\": the object has been modified; \
                    please apply your changes to the latest version and try again";
    let unnamed = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    let (always, conditional) = (unconditional(), &SCHEME);
    let versioned = {
        let mut order = order("rival");
        order["metadata"]["resourceVersion"] = "1".into();
        order
    };
    for (scheme, method, media_type, path, body, expected) in [
        (conditional, "PATCH", APPLY, "?fieldManager=m", order("rival"), Ok(200)),
        (
            conditional,
            "PATCH",
            APPLY,
            "?fieldManager=m&dryRun=All",
            order("rival"),
            Ok(201),
        ),
        (always, "PUT", JSON, "", order("rival"), Ok(200)),
        (always, "PUT", JSON, "", versioned.clone(), Err((409, conflict))),
        (conditional, "PUT", JSON, "", versioned, Err((409, conflict))),
        (conditional, "PUT", JSON, "", order("rival"), Err((422, unnamed))),
    ] {
        let (_server, mut client, store) = setting(scheme, Ordinary).await;
        let value = rival(&mut client, &store).await;
        store.plan([Put(value)]);
        let (code, told) = client
            .send(method, &format!("{ONE}{path}"), media_type, &body.to_string())
            .await;
        match expected {
            Ok(wanted) => assert_eq!(code, wanted, "{method} {path}: {told}"),
            Err((wanted, text)) => {
                let message = told["message"].as_str().unwrap();
                assert!(code == wanted && message.contains(text), "{method}: {told}");
            }
        }
    }
}

/// A rival owns other fields than the loser, who is asked about conflicts like everybody else.
#[tokio::test]
async fn an_apply_that_loses_the_race_is_merged() {
    let (_server, mut client, store) = setting(&SCHEME, Ordinary).await;
    let value = rival(&mut client, &store).await;
    store.plan([Put(value.clone())]);
    let mut labelled = order("rival");
    labelled["metadata"]["labels"] = json!({"by": "loser"});
    let path = format!("{ONE}?fieldManager=m");
    let (code, told) = client.send("PATCH", &path, APPLY, &labelled.to_string()).await;
    assert_eq!(
        (code, &told["metadata"]["labels"]["by"]),
        (200, &json!("loser")),
        "{told}"
    );
    assert_eq!(client.send("DELETE", ONE, JSON, "{}").await.0, 200);
    store.plan([Put(value)]);
    let (code, told) = client.send("PATCH", &path, APPLY, &order("loser").to_string()).await;
    assert_eq!((code, &told["reason"]), (409, &json!("Conflict")), "{told}");
    assert_eq!(told["details"]["causes"][0]["field"], ".spec.customer", "{told}");
}

/// It comes and goes: whoever sees it gone makes it.
#[tokio::test]
async fn an_upsert_follows_what_comes_and_goes() {
    let (_server, mut client, store) = setting(&SCHEME, Ordinary).await;
    let value = rival(&mut client, &store).await;
    store.plan([Put(value.clone()), Removed, Put(value), Removed]);
    let path = format!("{ONE}?fieldManager=m");
    let mut body = order("rival");
    body["metadata"]["labels"] = json!({"by": "loser"});
    let (code, told) = client.send("PATCH", &path, APPLY, &body.to_string()).await;
    assert_eq!((code, store.planned()), (201, 0), "{told}");
}

/// Orders live for an hour.
struct Mortal;

impl Strategy for Mortal {
    type Object = Order;

    fn time_to_live(&self) -> Option<Duration> {
        Some(Duration::from_secs(3600))
    }
}

/// A lease that ends between its grant and the write is replaced.
#[tokio::test]
async fn a_write_whose_lease_has_ended_gets_another_one() {
    let (_server, mut client, store) = setting(&SCHEME, Mortal).await;
    let ended = || Failed(StoreError::LeaseNotFound(LeaseId(1)));
    let mut finalized = order("ann");
    finalized["metadata"]["finalizers"] = json!(["kubernetes"]);
    let label = r#"{"metadata":{"labels":{"a":"b"}}}"#;
    for (method, path, media_type, body, wanted) in [
        ("POST", ORDERS, JSON, finalized.to_string(), 201),
        ("PATCH", ONE, MERGE_PATCH, label.to_owned(), 200),
        ("DELETE", ONE, JSON, "{}".to_owned(), 200),
    ] {
        store.plan([ended(), ended(), Nothing]);
        let (code, told) = client.send(method, path, media_type, &body).await;
        assert_eq!((code, store.planned()), (wanted, 0), "{method}: {told}");
        assert!(store.entry("one").await.unwrap().lease.is_some(), "{method}");
    }
    store.plan(std::iter::repeat_with(ended).take(100));
    let (code, told) = client
        .send("PATCH", ONE, MERGE_PATCH, r#"{"metadata":{"labels":{"a":"c"}}}"#)
        .await;
    assert_eq!(code, 500, "not for ever: {told}");
    assert!(store.planned() > 90, "{}", store.planned());
}
