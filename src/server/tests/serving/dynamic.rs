//! A kind whose table is made at run time, as from a schema that a client sends: served like any other.

use std::sync::Arc;

use keelson_codegen_sample::api::SCHEME;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::Gvk;
use keelson_machinery::reflect::{
    Desc, Details, FieldDesc, Flags, Id, ListType, MessageDesc, Names, Ref, Rules, Type, Unknown,
};
use keelson_machinery::scheme::{Conversion, GroupDesc, KindDesc, Scheme, VersionDesc};
use serde_json::{Value, json};

use crate::setting::{Client, ORDERS, Server, text};

const ONE: &str = "/apis/shop.example.com/v1/namespaces/default/orders/one";
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

fn field(name: &str, ty: Type) -> FieldDesc {
    FieldDesc::shared(name, ty, Flags::NONE)
}

fn message(name: &str, fields: Vec<FieldDesc>, unknown: Unknown) -> Type {
    Type::Message(MessageDesc::shared(name, None, fields, unknown).unwrap())
}

fn list_of(ty: Type) -> Type {
    Type::List(Ref::Shared(Arc::new(field("", ty))))
}

fn details(details: Details) -> Ref<Details> {
    Ref::Shared(Arc::new(details))
}

/// An order as its definition at run time has it.
fn order_table() -> Desc {
    let item = message(
        "example.Item",
        vec![field("article", Type::String), field("count", Type::Int64)],
        Unknown::Dropped,
    );
    let items = field("items", list_of(item))
        .with_list(ListType::Map)
        .with_details(details(Details {
            map_keys: Names::from_iter(["article"]),
            ..Details::NONE
        }));
    let boxes = field("boxes", Type::Int64)
        .with_details(details(Details {
            default: Some("1".into()),
            ..Details::NONE
        }))
        .with_rules(Ref::Shared(Arc::new(Rules {
            maximum: Some(10.0),
            ..Rules::NONE
        })));
    let spec = vec![
        FieldDesc::shared("customer", Type::String, Flags::REQUIRED),
        items,
        boxes,
        field("tags", list_of(Type::String)).with_list(ListType::Set),
    ];
    let status = vec![field("boxes", Type::Int64), field("selector", Type::String)];
    let fields = vec![
        field("metadata", Type::Message(Ref::Static(ObjectMeta::message_desc()))),
        field("spec", message("example.Spec", spec, Unknown::Kept)),
        field("status", message("example.Status", status, Unknown::Dropped)),
    ];
    let gvk = Gvk::new("shop.example.com", "v1", "Order");
    MessageDesc::shared("example.Order", Some(gvk), fields, Unknown::Dropped).unwrap()
}

/// Orders alone, over that table. What is leaked is the scheme of the test, which is one of a build.
fn scheme() -> &'static Scheme {
    let group = &SCHEME.groups[0];
    let version = &group.versions[0];
    let kinds = version.kinds.iter().filter(|kind| kind.kind == "Order");
    let kinds = kinds.map(|kind| KindDesc {
        message: order_table(),
        conversion: Conversion::None,
        stored_as_json: true,
        own_id: Id::fresh(),
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

async fn setting() -> (Server, Client) {
    let server = Server::configured(|config| config.resources.schemes = vec![scheme()]);
    let client = server.client().await;
    (server, client)
}

fn order() -> Value {
    json!({
        "apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": "one", "labels": {"a": "b"}},
        "spec": {"customer": "ann", "items": [{"article": "chair", "count": 2}], "zeal": {"deep": [1, null]}},
        "unknown": {"x": 1},
    })
}

async fn created() -> (Server, Client, Value) {
    let (server, mut client) = setting().await;
    let (code, made) = client.send("POST", ORDERS, JSON, &order().to_string()).await;
    assert_eq!(code, 201, "{made}");
    (server, client, made)
}

#[tokio::test]
async fn an_object_is_made_and_read_as_a_tree_of_maps() {
    let (_server, mut client, made) = created().await;
    assert_eq!(made["spec"]["boxes"], 1, "the default");
    assert_eq!(
        made["spec"]["zeal"],
        json!({"deep": [1, null]}),
        "kept beside the fields"
    );
    assert_eq!(made["unknown"], Value::Null, "dropped");
    let read = text(client.get(ONE).await).await;
    let read = read.trim_end();
    assert!(
        read.starts_with(r#"{"apiVersion":"shop.example.com/v1","kind":"Order","metadata":{"creationTimestamp":"#),
        "{read}"
    );
    let spec =
        r#""spec":{"boxes":1,"customer":"ann","items":[{"article":"chair","count":2}],"zeal":{"deep":[1,null]}}}"#;
    assert!(read.ends_with(spec), "{read}");
    let strict = format!("{ORDERS}?fieldValidation=Strict&dryRun=All");
    let (code, told) = client
        .send("POST", &strict, JSON, &order().to_string().replace("one", "two"))
        .await;
    assert!(
        code == 400 && told["message"].as_str().unwrap().contains(r#"unknown field "unknown""#),
        "{told}"
    );
}

#[tokio::test]
async fn values_that_do_not_fit_are_told_with_their_fields() {
    let (_server, mut client) = setting().await;
    let mut wrong = order();
    wrong["spec"] = json!({"boxes": 11, "items": [{"article": 5}], "tags": {"a": 1}});
    let (code, told) = client.send("POST", ORDERS, JSON, &wrong.to_string()).await;
    assert_eq!(code, 422, "{told}");
    let causes = told["details"]["causes"].as_array().unwrap();
    let fields: Vec<&str> = causes.iter().filter_map(|cause| cause["field"].as_str()).collect();
    assert_eq!(
        fields,
        ["spec.boxes", "spec.customer", "spec.items[0].article", "spec.tags"]
    );
}

#[tokio::test]
async fn every_kind_of_write_works() {
    let (_server, mut client, made) = created().await;
    // Nothing changes: nothing is written.
    let (code, same) = client.send("PUT", ONE, JSON, &made.to_string()).await;
    assert_eq!((code, &same["metadata"]), (200, &made["metadata"]));
    let merge =
        json!({"spec": {"zeal": {"deep": null, "more": true}, "tags": ["x"]}, "metadata": {"labels": {"c": "d"}}});
    let (code, merged) = client.send("PATCH", ONE, MERGE_PATCH, &merge.to_string()).await;
    assert_eq!((code, &merged["spec"]["zeal"]), (200, &json!({"more": true})));
    assert_eq!(
        (&merged["spec"]["tags"], &merged["metadata"]["generation"]),
        (&json!(["x"]), &json!(2))
    );
    let operations = json!([{"op": "add", "path": "/spec/items/-", "value": {"article": "lamp"}},
        {"op": "remove", "path": "/spec/zeal/more"}]);
    let (code, patched) = client.send("PATCH", ONE, JSON_PATCH, &operations.to_string()).await;
    assert_eq!(
        (code, &patched["spec"]["items"][1]["article"]),
        (200, &json!("lamp")),
        "{patched}"
    );
    let status = json!({"status": {"boxes": 3, "selector": "a=b"}});
    let (code, with_status) = client
        .send("PATCH", &format!("{ONE}/status"), MERGE_PATCH, &status.to_string())
        .await;
    assert_eq!((code, &with_status["status"]["boxes"]), (200, &json!(3)));
    assert_eq!(with_status["metadata"]["generation"], patched["metadata"]["generation"]);
    let scaled = json!({"spec": {"replicas": 7}});
    let (code, scale) = client
        .send("PATCH", &format!("{ONE}/scale"), MERGE_PATCH, &scaled.to_string())
        .await;
    assert_eq!(
        (code, &scale["spec"]["replicas"], &scale["status"]["replicas"]),
        (200, &json!(7), &json!(3)),
        "{scale}"
    );
    assert_eq!(client.object(ONE).await["spec"]["boxes"], 7);
    assert_eq!(client.send("DELETE", ONE, JSON, "{}").await.0, 200);
}

#[tokio::test]
async fn appliers_share_an_object() {
    let (_server, mut client) = setting().await;
    let document = |spec: Value| {
        let mut order = order();
        order["spec"] = spec;
        order.as_object_mut().unwrap().remove("unknown");
        order.to_string()
    };
    let path = |manager: &str| format!("{ONE}?fieldManager={manager}");
    let first = document(json!({"customer": "ann", "items": [{"article": "chair", "count": 2}], "zeal": {"a": 1}}));
    let (code, told) = client.send("PATCH", &path("m"), APPLY, &first).await;
    assert_eq!(code, 201, "{told}");
    let second = document(json!({"items": [{"article": "lamp", "count": 1}], "zeal": {"b": [2]}}));
    let (code, told) = client.send("PATCH", &path("n"), APPLY, &second).await;
    assert_eq!(code, 200, "{told}");
    assert_eq!(told["spec"]["zeal"], json!({"a": 1, "b": [2]}));
    let conflicting = document(json!({"items": [{"article": "chair", "count": 3}], "zeal": {"a": 2}}));
    let (code, told) = client.send("PATCH", &path("n"), APPLY, &conflicting).await;
    let fields: Vec<&Value> = told["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["field"])
        .collect();
    assert_eq!(
        (code, fields),
        (
            409,
            vec![&json!(".spec.items[article=\"chair\"].count"), &json!(".spec.zeal.a")]
        )
    );
    // What its only writer no longer applies goes; the rest stays.
    let (code, told) = client.send("PATCH", &path("n"), APPLY, &document(json!({}))).await;
    assert_eq!((code, &told["spec"]["zeal"]), (200, &json!({"a": 1})), "{told}");
    assert_eq!(told["spec"]["items"], json!([{"article": "chair", "count": 2}]));
    let owners = told["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(owners[0]["fieldsV1"]["f:spec"]["f:zeal"], json!({".": {}, "f:a": {}}));
}

#[tokio::test]
async fn lists_tables_selectors_and_watches_show_it() {
    let (_server, mut client, _) = created().await;
    let by_customer = |name: &str| format!("{ORDERS}?fieldSelector=spec.customer%3D{name}&labelSelector=a%3Db");
    let found = client.object(&by_customer("ann")).await;
    assert_eq!(
        (found["items"].as_array().unwrap().len(), &found["kind"]),
        (1, &json!("OrderList"))
    );
    assert_eq!(client.object(&by_customer("bob")).await["items"], json!([]));
    let table = text(client.get_as(ORDERS, TABLE).await).await;
    let table: Value = serde_json::from_str(&table).unwrap();
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[..3], [json!("one"), json!("ann"), json!("chair")]);
    let mut events = client.watch("").await;
    let added = events.next().await.unwrap();
    assert_eq!(
        (&added["type"], &added["object"]["spec"]["zeal"]["deep"]),
        (&json!("ADDED"), &json!([1, null]))
    );
}
