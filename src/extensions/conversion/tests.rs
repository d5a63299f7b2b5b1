//! Conversion by a webhook that answers well or badly.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keelson_base::env::SystemEntropy;
use keelson_machinery::json as codec;
use keelson_net::client::stub::{Reply, Seen, Stub};
use keelson_net::client::{Dialer, Located, ServiceError, Services};
use keelson_registry::{ConversionStrategy, Definition};
use serde_json::{Value, json};

use super::*;
use crate::definition::tests::read;
use crate::resource::resource;

/// No service at all.
struct Nowhere;

impl Services for Nowhere {
    fn locate<'a>(&'a self, service: &'a ServicePort) -> Located<'a> {
        Box::pin(std::future::ready(Err(ServiceError::NotFound(service.name.clone()))))
    }
}

/// Two versions, the first of them stored, that this webhook converts.
fn defined(webhook: &Value, reviews: &[&str]) -> Definition {
    let version = |name: &str, stored: bool| {
        json!({"name": name, "served": true, "storage": stored, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}})
    };
    let names = json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"});
    let definition = json!({"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "names": names, "scope": "Namespaced",
        "versions": [version("v1", true), version("v2", false)],
        "conversion": {"strategy": "Webhook", "webhook": {
            "clientConfig": webhook, "conversionReviewVersions": reviews}}},
        "status": {"acceptedNames": names}});
    resource(&read(&definition.to_string()), &Arc::default(), &outside(), |_| false).unwrap()
}

/// A way to webhooks by their addresses alone.
pub fn outside() -> Outside {
    Outside {
        ways: WebhookWays {
            dialer: Dialer::default(),
            services: Arc::new(Nowhere),
        },
        entropy: Arc::new(SystemEntropy),
        metrics: ConversionMetrics::default(),
    }
}

/// What becomes of objects with these names, each with two labels.
async fn converted(definition: &Definition, names: &[&str]) -> Result<Vec<Value>, String> {
    let ConversionStrategy::Webhook(converter) = &definition.conversion else {
        panic!("no webhook converts")
    };
    let (v1, v2) = (&definition.versions[0].kind, &definition.versions[1].kind);
    let object = |name: &&str| {
        let text = json!({"metadata": {"name": name, "uid": "u", "labels": {"a": "1", "b": "2"}, "generation": 3},
            "spec": {"size": 1}});
        let mut object = v1.new_object();
        codec::read(text.to_string().as_bytes(), object.as_reflect_mut()).unwrap();
        object
    };
    let objects = converter.convert(names.iter().map(object).collect(), v2).await;
    let shown = |object: Box<dyn Object>| {
        let mut text = Vec::new();
        codec::write_kind(&*object, &mut text);
        serde_json::from_slice(&text).unwrap()
    };
    Ok(objects.map_err(|error| error.message)?.into_iter().map(shown).collect())
}

/// A good answer.
fn answer(seen: &Seen) -> Value {
    let review = seen.json();
    let request = &review["request"];
    let mut objects = request["objects"].clone();
    for object in objects.as_array_mut().unwrap() {
        object["apiVersion"] = request["desiredAPIVersion"].clone();
    }
    json!({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": {
        "uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}}})
}

async fn stub(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Stub {
    Stub::https(move |seen: &Seen| {
        let mut answer = answer(seen);
        change(&mut answer);
        Reply::new(200, answer.to_string())
    })
    .await
}

fn webhook(stub: &Stub) -> Value {
    json!({"url": stub.url("/convert"), "caBundle": STANDARD.encode(&stub.ca_pem)})
}

#[tokio::test]
async fn a_webhook_is_sent_a_review_and_may_change_labels_and_all_but_metadata() {
    let stub = stub(|answer| {
        let object = &mut answer["response"]["convertedObjects"][0];
        object["metadata"]["labels"] = json!({"c": "3"});
        object["metadata"]["generation"] = json!(9);
        object["metadata"]["finalizers"] = json!(["example.com/x"]);
        object["spec"] = json!({"size": 2, "unknown": true});
    })
    .await;
    let definition = defined(&webhook(&stub), &["v7", "v1"]);
    let objects = converted(&definition, &["x", "y"]).await.unwrap();
    let metadata = json!({"name": "x", "uid": "u", "labels": {"c": "3"}, "generation": 3});
    let want = json!({"apiVersion": "example.com/v2", "kind": "Widget", "metadata": metadata, "spec": {"size": 2}});
    assert_eq!(objects[0], want);
    assert_eq!(objects[1]["metadata"]["labels"], json!({"a": "1", "b": "2"}));
    let seen = stub.seen();
    assert_eq!((seen.len(), seen[0].path.as_str()), (1, "/convert?timeout=30s"));
    let review = seen[0].json();
    assert_eq!(review["apiVersion"], "apiextensions.k8s.io/v1");
    assert_eq!(review["request"]["desiredAPIVersion"], "example.com/v2");
    assert_eq!(review["request"]["objects"][1]["apiVersion"], "example.com/v1");
    let empty = json!({"uid": "", "convertedObjects": null, "result": {"metadata": {}}});
    assert_eq!(review["response"], empty);
}

type Change = fn(&mut Value);

#[tokio::test]
async fn what_is_wrong_with_an_answer_is_told() {
    let of = "conversion webhook for example.com/v1, Kind=Widget";
    let cases: [(Change, &str); 12] = [
        (
            |answer| answer["kind"] = json!("Other"),
            "failed: converting (v1.Other) to (v1.ConversionReview): unknown conversion",
        ),
        (
            |answer| answer["kind"] = json!(null),
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
             apiextensions.k8s.io/v1, Kind=",
        ),
        (
            |answer| answer["response"] = json!(null),
            "failed: no response provided",
        ),
        (|answer| answer["response"]["uid"] = json!("x"), "got \"x\""),
        (
            |answer| answer["response"]["result"] = json!({"status": "Failure"}),
            "failed: response.result.status was 'Failure', not 'Success'",
        ),
        (
            |answer| answer["response"]["result"] = json!({"status": "Failure", "message": "no"}),
            "failed: no",
        ),
        (
            |answer| answer["response"]["convertedObjects"] = json!([]),
            "returned 0 objects, expected 1",
        ),
        (
            |answer| answer["response"]["convertedObjects"][0]["apiVersion"] = json!("example.com/v1"),
            "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v1)",
        ),
        (
            |answer| answer["response"]["convertedObjects"][0]["kind"] = json!("Gadget"),
            "returned invalid object at index 0: invalid kind (expected Widget, received Gadget)",
        ),
        (
            |answer| answer["response"]["convertedObjects"][0]["metadata"]["name"] = json!("y"),
            "returned invalid object: must have the same name: x != y",
        ),
        (
            |answer| answer["response"]["convertedObjects"][0]["metadata"]["labels"] = json!({"a": 1}),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        ),
        (
            |answer| answer["response"]["convertedObjects"][0]["metadata"]["annotations"] = json!({"": "x"}),
            "returned invalid metadata: [metadata.annotation: Invalid value: \"\": name part must be non-empty, ",
        ),
    ];
    for (change, want) in cases {
        let stub = stub(change).await;
        let error = converted(&defined(&webhook(&stub), &["v1"]), &["x"]).await.unwrap_err();
        assert!(error.starts_with(of) && error.contains(want), "{want}: {error}");
    }
}

#[tokio::test]
async fn version_v1beta1_of_reviews_has_fewer_checks() {
    let stub = stub(|answer| {
        answer["response"]["uid"] = json!("x");
        answer["kind"] = json!(null);
    })
    .await;
    let definition = defined(&webhook(&stub), &["v1beta1"]);
    assert_eq!(converted(&definition, &["x"]).await.unwrap().len(), 1);
    assert_eq!(stub.seen()[0].json()["apiVersion"], "apiextensions.k8s.io/v1beta1");
}

#[tokio::test]
async fn webhooks_that_cannot_be_called_fail_conversions() {
    let stub = stub(|_| {}).await;
    let service = json!({"service": {"namespace": "a", "name": "s", "port": 8443}});
    let untrusted = json!({"url": stub.url("/")});
    let wrong = json!({"url": stub.url("/"), "caBundle": STANDARD.encode("x")});
    for (webhook, want) in [
        (
            service,
            "Post \"https://s.a.svc:8443/?timeout=30s\": service \"s\" not found",
        ),
        (untrusted, "x509"),
        (wrong, "unable to load root certificates"),
    ] {
        let error = converted(&defined(&webhook, &["v1"]), &["x"]).await.unwrap_err();
        assert!(error.contains(want), "{want}: {error}");
    }
}
