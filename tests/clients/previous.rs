//! Folders of other versions of a program. What the one before stored is read whole, is found to be whole, and can be
//! written on; what the next one stored is read as far as `api-defs/README.md`, "Back to the program before", says.
//!
//! `tests/data/previous` and `tests/data/next` have a snapshot of a store each (`widgets store snapshot`) and its objects
//! as that program showed them (`kubectl get widgets,factories -A -o json`). When the form of stores or of stored objects
//! changes, those of `previous` are made anew with the last program before the change. The next program is `widgets` with
//! `tests/data/next/definitions.diff` applied to its definitions.

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use keelson_storage::embedded::EmbeddedStore;
use keelson_storage::{HistoryLimits, Store};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Server, at_rest, widgets};

fn data(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    std::fs::read(folder.join(name)).unwrap()
}

/// A folder with the store of another version of the program, and the objects that it showed.
fn folder_of(version: &str) -> (TempDir, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let (mut snapshot, packed) = (Vec::new(), data(&format!("{version}/store.gz")));
    GzDecoder::new(packed.as_slice()).read_to_end(&mut snapshot).unwrap();
    std::fs::write(folder.path().join("snapshot"), snapshot).unwrap();
    store(folder.path(), &["restore", "snapshot"]);
    let objects = serde_json::from_slice(&data(&format!("{version}/objects.json"))).unwrap();
    (folder, objects)
}

/// `widgets store …` of a folder at rest, which must succeed: what it printed.
fn store(folder: &Path, arguments: &[&str]) -> String {
    let (is_done, text) = at_rest(widgets(), folder, arguments);
    assert!(is_done, "{text}");
    text
}

/// A client for objects of the kind and namespace of this one.
fn api(client: &kube::Client, object: &Value) -> Api<DynamicObject> {
    let kind = object["kind"].as_str().unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", kind));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

#[tokio::test]
async fn the_folder_of_the_program_before_is_read_whole() {
    let (folder, objects) = folder_of("previous");
    let all = format!("{} objects of known kinds can be decoded", objects.len());
    let told = store(folder.path(), &["check"]);
    assert!(told.contains(&all), "{told}");

    let server = Server::start_in(widgets(), folder, &[]).await;
    let client = server.client().await;
    for object in &objects {
        let name = object["metadata"]["name"].as_str().unwrap();
        let mut read = api(&client, object).get(name).await.unwrap();
        // kubectl does not show them.
        assert!(read.metadata.managed_fields.take().is_some());
        assert_eq!(serde_json::to_value(&read).unwrap(), *object);
        let label = Patch::Merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
        let written = api(&client, object)
            .patch(name, &PatchParams::default(), &label)
            .await
            .unwrap();
        assert_eq!(written.data, read.data);
    }
    let (_, _, folder) = server.terminate();

    // Over a store that is there only if it is said, and the one that was there is kept.
    let (is_done, told) = at_rest(widgets(), folder.path(), &["restore", "snapshot"]);
    assert!(!is_done, "{told}");
    store(folder.path(), &["restore", "snapshot", "--overwrite"]);
    assert!(store(folder.path(), &["check"]).contains(&all));
}

/// An object without what a write changes.
fn lasting(object: &DynamicObject) -> Value {
    let mut object = object.clone();
    object.metadata.managed_fields = None;
    object.metadata.resource_version = None;
    object.metadata.generation = None;
    object.metadata.labels = None;
    serde_json::to_value(&object).unwrap()
}

#[tokio::test]
async fn the_folder_of_the_next_program_is_read_as_far_as_is_told() {
    let (folder, objects) = folder_of("next");
    let named = |name: &str| {
        let found = objects.iter().find(|object| object["metadata"]["name"] == name);
        found.unwrap().clone()
    };
    let (gear, sand, mill) = (named("gear"), named("sand"), named("mill"));
    let (is_whole, told) = at_rest(widgets(), folder.path(), &["check"]);
    let corrupt = "/registry/example.com/factories/mill";
    assert!(
        !is_whole && told.contains("1 can't be decoded") && told.contains(corrupt),
        "{told}"
    );

    let server = Server::start_in(widgets(), folder, &[]).await;
    let client = server.client().await;
    let widgets = api(&client, &gear);
    // A field that was added is not shown; a value that an enum got is.
    let mut shown = gear.clone();
    shown["spec"].as_object_mut().unwrap().remove("paint").unwrap();
    let shown: DynamicObject = serde_json::from_value(shown).unwrap();
    assert_eq!(lasting(&widgets.get("gear").await.unwrap()), lasting(&shown));
    // It is no obstacle to other changes, and is refused where it is new.
    let merge = PatchParams::default();
    let label = Patch::Merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
    let patched = widgets.patch("gear", &merge, &label).await.unwrap();
    assert_eq!(lasting(&patched), lasting(&shown));
    let yellow = Patch::Merge(json!({"spec": {"color": "Yellow"}}));
    let refused = widgets.patch("sand", &merge, &yellow).await.unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 422),
        "{refused}"
    );
    // A number that is larger than the type was is read wrongly: the lower 32 bits of it.
    let count = sand["spec"]["parts"][0]["count"].as_u64().unwrap();
    let read = widgets.get("sand").await.unwrap();
    assert_eq!(read.data["spec"]["parts"][0]["count"], count & 0xffff_ffff);

    // What is stored in a version that is not known is named, and hurts itself alone.
    let mut older = mill.clone();
    older["apiVersion"] = json!("example.com/v1");
    let factories = api(&client, &older);
    let list = || async { factories.list(&ListParams::default()).await };
    let unread = list().await.unwrap_err();
    assert!(
        matches!(&unread, kube::Error::Api(status) if status.reason == "StorageReadError"),
        "{unread}"
    );
    older["metadata"] = json!({"name": "forge"});
    let forge: DynamicObject = serde_json::from_value(older).unwrap();
    factories.create(&PostParams::default(), &forge).await.unwrap();
    factories.get("forge").await.unwrap();
    let (_, _, folder) = server.terminate();

    // With the next program the rest is there again; what was added to an object that was written is gone.
    let data = folder.path().join("widgets/store");
    let store = EmbeddedStore::open(&data, HistoryLimits::default()).unwrap();
    let has = |name: &'static str, text: &'static str| {
        let store = &store;
        async move {
            let entry = store.get(&format!("/registry/example.com/{name}")).await.unwrap().entry;
            let value = entry.unwrap().value.clone();
            value.windows(text.len()).any(|part| part == text.as_bytes())
        }
    };
    assert!(has("gauges/default/dial", "Gauge").await && has("factories/mill", "Ulm").await);
    assert!(has("widgets/default/gear", "Yellow").await && !has("widgets/default/gear", "varnish").await);
}
