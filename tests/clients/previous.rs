//! A folder of the program before: what it stored is read whole, is found to be whole, and can be written on.
//!
//! `tests/data/previous` has a snapshot of a store (`widgets store snapshot`) and its objects as that program showed
//! them (`kubectl get widgets,factories -A -o json`). When the form of stores or of stored objects changes, both are
//! made anew with the last program before the change.

use std::io::Read;
use std::path::Path;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::support::{Server, command, widgets};

fn data(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/previous");
    std::fs::read(folder.join(name)).unwrap()
}

/// `widgets store …` of a folder at rest: what it printed.
fn store(folder: &Path, arguments: &[&str]) -> String {
    let done = command(widgets(), folder)
        .arg("store")
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
    assert!(done.status.success(), "{text}");
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
    let folder = tempfile::tempdir().unwrap();
    let mut snapshot = Vec::new();
    let packed = data("store.gz");
    flate2::read::GzDecoder::new(packed.as_slice())
        .read_to_end(&mut snapshot)
        .unwrap();
    std::fs::write(folder.path().join("snapshot"), snapshot).unwrap();
    store(folder.path(), &["restore", "snapshot"]);
    let objects: Vec<Value> = serde_json::from_slice(&data("objects.json")).unwrap();
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
    let refused = command(widgets(), folder.path())
        .args(["store", "restore", "snapshot"])
        .output()
        .unwrap();
    assert!(!refused.status.success());
    store(folder.path(), &["restore", "snapshot", "--overwrite"]);
    assert!(store(folder.path(), &["check"]).contains(&all));
}
