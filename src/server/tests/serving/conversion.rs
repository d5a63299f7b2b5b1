//! Conversion that others do: objects of one version read, listed, watched and written in another one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use keelson_machinery::json as codec;
use keelson_machinery::object::Object;
use keelson_machinery::scheme::{KindDesc, KindRef};
use keelson_machinery::status::StatusError;
use keelson_registry::{ConversionStrategy, Converted, Converter, Definition, RuntimeConfig};
use serde_json::{Value, json};

use crate::installed::{JSON, crontab, definition, path, server, version};
use crate::setting::{Client, Server, soon, text};

const GROUP: &str = "converted.example.com";
const PLURAL: &str = "crontabs";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// What version v1 calls `cron`, v2 calls `schedule`. Answers after a while.
#[derive(Default)]
struct Renames {
    /// How many objects it was asked about at once.
    asked: Mutex<Vec<usize>>,
    fails: AtomicBool,
}

impl Renames {
    fn told(&self) -> Vec<usize> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn renamed(object: &dyn Object, to: &KindDesc) -> Box<dyn Object> {
    assert_ne!(object.gvk().version, to.version, "asked about what needs no conversion");
    let mut text = Vec::new();
    codec::write_kind(object, &mut text);
    let mut value: Value = serde_json::from_slice(&text).unwrap();
    assert!(value["metadata"].get("resourceVersion").is_none());
    let spec = value["spec"].as_object_mut().unwrap();
    for (v1, v2) in [("cron", "schedule"), ("who", "owner")] {
        let (from, into) = if to.version == "v1" { (v2, v1) } else { (v1, v2) };
        if let Some(said) = spec.remove(from) {
            spec.insert(into.to_owned(), said);
        }
    }
    let mut converted = to.new_object();
    codec::read(value.to_string().as_bytes(), converted.as_reflect_mut()).unwrap();
    converted
}

struct Asked(Arc<Renames>);

impl Converter for Asked {
    fn convert(&self, objects: Vec<Box<dyn Object>>, to: &KindRef) -> Converted {
        let (renames, to) = (self.0.clone(), to.clone());
        async move {
            renames.asked.lock().unwrap().push(objects.len());
            tokio::time::sleep(Duration::from_millis(5)).await;
            if renames.fails.load(Ordering::Relaxed) {
                return Err(StatusError::internal_error("conversion webhook says no"));
            }
            Ok(objects.iter().map(|object| renamed(&**object, &to)).collect())
        }
        .boxed()
    }
}

/// Two versions, of which v1 is stored.
fn two_versions(renames: &Arc<Renames>) -> Definition {
    let mut all = definition(GROUP, PLURAL, &["cron", "who"]);
    let mut v2 = version(GROUP, "v2", PLURAL, &["schedule", "owner"]);
    if let KindRef::Shared(kind) = &mut v2.kind {
        Arc::get_mut(kind).unwrap().storage = false;
    }
    all.versions.push(v2);
    all.conversion = ConversionStrategy::Webhook(Arc::new(Asked(renames.clone())));
    all
}

fn v1() -> String {
    path(GROUP, PLURAL)
}

fn v2() -> String {
    v1().replace("/v1/", "/v2/")
}

async fn serving(cache: Option<usize>) -> (crate::setting::Server, Client, Arc<Renames>) {
    let renames = Arc::new(Renames::default());
    let (server, registry) = server(move |config| {
        if let Some(limit) = cache {
            config.storage.cache_bytes = limit;
        }
    });
    soon(registry.install(two_versions(&renames))).await.unwrap();
    let client = server.client().await;
    (server, client, renames)
}

/// An object in the version of the path that it is sent to.
fn body(path: &str, name: &str, spec: &Value) -> String {
    let text = crontab(GROUP, name, spec);
    match path == v2() {
        true => text.replace(&format!("{GROUP}/v1"), &format!("{GROUP}/v2")),
        false => text,
    }
}

async fn create(client: &mut Client, path: &str, name: &str, spec: &Value) -> Value {
    let (code, made) = client.send("POST", path, JSON, &body(path, name, spec)).await;
    assert_eq!(code, 201, "{made}");
    made
}

#[tokio::test]
async fn objects_are_read_in_a_version_that_others_make_of_them_and_asked_for_once() {
    let (_server, mut client, renames) = serving(None).await;
    for name in ["a", "b", "c"] {
        create(&mut client, &v1(), name, &json!({"cron": name})).await;
    }
    assert!(renames.told().is_empty(), "what is stored as it is written");
    let listed = client.object(&v2()).await;
    let schedules: Vec<_> = listed["items"].as_array().unwrap().iter().map(|o| &o["spec"]).collect();
    assert_eq!(
        schedules,
        [
            &json!({"schedule": "a"}),
            &json!({"schedule": "b"}),
            &json!({"schedule": "c"})
        ]
    );
    assert_eq!(listed["items"][0]["apiVersion"], format!("{GROUP}/v2"));
    assert_eq!(renames.told(), [3], "all that a list shows at once");
    let one = client.object(&format!("{}/b", v2())).await;
    assert_eq!(one["spec"]["schedule"], "b");
    assert_eq!(
        renames.told(),
        [1],
        "a read of one object asks anew, as in kube-apiserver"
    );
    assert_eq!(client.object(&v2()).await["items"].as_array().unwrap().len(), 3);
    let selected = client
        .object(&format!("{}?fieldSelector=spec.schedule%3Dc", v2()))
        .await;
    assert_eq!(selected["items"][0]["metadata"]["name"], "c");
    assert_eq!(selected["items"].as_array().unwrap().len(), 1);
    assert!(renames.told().is_empty(), "what was converted is kept");
    assert_eq!(client.object(&v1()).await["items"][2]["spec"], json!({"cron": "c"}));
}

#[tokio::test]
async fn what_is_converted_outlives_a_cache_without_room() {
    let (_server, mut client, renames) = serving(Some(0)).await;
    create(&mut client, &v1(), "a", &json!({"cron": "x"})).await;
    for _ in 0..3 {
        assert_eq!(client.object(&v2()).await["items"][0]["spec"]["schedule"], "x");
    }
    assert_eq!(renames.told(), [1]);
}

#[tokio::test]
async fn writes_in_another_version_are_stored_in_the_stored_one() {
    let (_server, mut client, renames) = serving(None).await;
    let made = create(&mut client, &v2(), "a", &json!({"schedule": "x", "owner": "me"})).await;
    assert_eq!(made["spec"], json!({"schedule": "x", "owner": "me"}));
    assert_eq!(made["apiVersion"], format!("{GROUP}/v2"));
    let path = format!("{}/a", v2());
    let patch = json!({"spec": {"schedule": "y"}}).to_string();
    let (code, patched) = client.send("PATCH", &path, MERGE_PATCH, &patch).await;
    assert_eq!((code, &patched["spec"]["schedule"]), (200, &json!("y")), "{patched}");
    let stored = client.object(&format!("{}/a", v1())).await;
    assert_eq!(stored["spec"], json!({"cron": "y", "who": "me"}));
    assert_eq!(
        stored["metadata"]["resourceVersion"],
        patched["metadata"]["resourceVersion"]
    );
    renames.told();
    let (code, again) = client.send("PATCH", &path, MERGE_PATCH, &patch).await;
    assert_eq!(code, 200);
    let unchanged = &again["metadata"]["resourceVersion"];
    assert_eq!(unchanged, &patched["metadata"]["resourceVersion"], "nothing changed");
}

#[tokio::test]
async fn owners_in_other_versions_keep_and_lose_fields() {
    let (_server, mut client, _renames) = serving(None).await;
    let document = |version: &str, spec: Value| {
        json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "CronTab", "metadata": {"name": "a"}, "spec": spec})
            .to_string()
    };
    let at = |path: String, manager: &str| format!("{path}/a?fieldManager={manager}");
    let first = document("v1", json!({"cron": "x", "who": "me"}));
    let (code, made) = client.send("PATCH", &at(v1(), "one"), APPLY, &first).await;
    assert_eq!(code, 201, "{made}");
    let second = document("v2", json!({"schedule": "y"}));
    let (code, refused) = client.send("PATCH", &at(v2(), "two"), APPLY, &second).await;
    assert_eq!(code, 409, "{refused}");
    let (code, taken) = client
        .send("PATCH", &(at(v2(), "two") + "&force=true"), APPLY, &second)
        .await;
    assert_eq!(code, 200, "{taken}");
    let of = |manager: &str, object: &Value| {
        let all = object["metadata"]["managedFields"].as_array().unwrap().clone();
        all.into_iter().find(|owner| owner["manager"] == manager).unwrap()
    };
    assert_eq!(of("one", &taken)["fieldsV1"], json!({"f:spec": {"f:who": {}}}));
    assert_eq!(of("two", &taken)["fieldsV1"], json!({"f:spec": {"f:schedule": {}}}));
    let update = json!({"spec": {"owner": "you"}}).to_string();
    let (_, updated) = client.send("PATCH", &at(v2(), "three"), MERGE_PATCH, &update).await;
    let owners = updated["metadata"]["managedFields"].as_array().unwrap();
    assert!(owners.iter().all(|owner| owner["manager"] != "one"), "{updated}");
}

#[tokio::test]
async fn a_watch_shows_what_others_made_of_it_and_ends_where_they_fail() {
    let (server, mut client, renames) = serving(None).await;
    create(&mut client, &v1(), "a", &json!({"cron": "x"})).await;
    let mut events = server.client().await.watch_path(&format!("{}?watch=1", v2())).await;
    let first = events.next().await.unwrap();
    assert_eq!(
        (&first["type"], &first["object"]["spec"]),
        (&json!("ADDED"), &json!({"schedule": "x"}))
    );
    create(&mut client, &v1(), "b", &json!({"cron": "y"})).await;
    let second = events.next().await.unwrap();
    assert_eq!(second["object"]["spec"], json!({"schedule": "y"}));
    renames.fails.store(true, Ordering::Relaxed);
    create(&mut client, &v1(), "c", &json!({"cron": "z"})).await;
    let last = events.next().await.unwrap();
    assert_eq!(
        (&last["type"], &last["object"]["code"]),
        (&json!("ERROR"), &json!(500)),
        "{last}"
    );
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_failure_of_who_converts_is_told_and_remembered_by_nobody() {
    let (_server, mut client, renames) = serving(None).await;
    create(&mut client, &v1(), "a", &json!({"cron": "x"})).await;
    renames.fails.store(true, Ordering::Relaxed);
    for path in [v2(), format!("{}/a", v2()), format!("{}?limit=1", v2())] {
        let answer = client.get(&path).await;
        let (status, body) = (answer.status().as_u16(), text(answer).await);
        assert_eq!(status, 500, "{path}: {body}");
        assert!(body.contains("conversion webhook says no"), "{body}");
    }
    let (code, _) = client
        .send("POST", &v2(), JSON, &body(&v2(), "b", &json!({"schedule": "y"})))
        .await;
    assert_eq!(code, 500);
    assert_eq!(client.object(&v1()).await["items"].as_array().unwrap().len(), 1);
    renames.fails.store(false, Ordering::Relaxed);
    assert_eq!(client.object(&v2()).await["items"][0]["spec"]["schedule"], "x");
}

#[tokio::test]
async fn versions_that_differ_in_their_names_alone_need_nobody() {
    let (_server, registry) = server(|_| {});
    let mut both = two_versions(&Arc::default());
    both.versions[1] = version(GROUP, "v2", PLURAL, &["cron", "more"]);
    if let KindRef::Shared(kind) = &mut both.versions[1].kind {
        Arc::get_mut(kind).unwrap().storage = false;
    }
    both.conversion = ConversionStrategy::None;
    soon(registry.install(both)).await.unwrap();
    let mut client = _server.client().await;
    let made = create(&mut client, &v2(), "a", &json!({"cron": "x", "more": "than v1 has"})).await;
    assert_eq!(
        made["spec"],
        json!({"cron": "x"}),
        "what the stored version lacks is not stored"
    );
    let read = client.object(&format!("{}/a", v1())).await;
    assert_eq!(
        (&read["apiVersion"], &read["spec"]),
        (&json!(format!("{GROUP}/v1")), &json!({"cron": "x"}))
    );
    let read = client.object(&format!("{}/a", v2())).await;
    assert_eq!(
        (&read["apiVersion"], &read["spec"]),
        (&json!(format!("{GROUP}/v2")), &json!({"cron": "x"}))
    );
}

/// Code of a build's conversion refuses what a client sends.
#[tokio::test]
async fn a_value_that_the_hub_version_has_no_form_for_is_refused_by_its_field() {
    let server = Server::configured(|config| config.resources.runtime = RuntimeConfig::all());
    let mut client = server.client().await;
    let path = "/apis/shop.example.com/v1alpha1/namespaces/default/orders";
    let body = r#"{"apiVersion":"shop.example.com/v1alpha1","kind":"Order","metadata":{"name":"far"},"spec":{"customer":"ann","city":"nowhere"}}"#;
    let (code, told) = client.send("POST", path, "application/json", body).await;
    assert_eq!(code, 422, "{told}");
    assert_eq!(
        told["message"],
        r#"Order.shop.example.com "far" is invalid: spec.city: Invalid value: "nowhere": there is no such city"#
    );
    assert_eq!(told["details"]["causes"][0]["field"], "spec.city");
}
