//! Lists from memory: whole, in pages, by selectors, compressed, while objects change, on every store.

use std::io::Read;

use futures_util::{StreamExt, TryStreamExt, stream};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use serde_json::{Value, json};

use crate::support::{Etcd, Server, keelson};

const PATH: &str = "/api/v1/namespaces/default/configmaps";
/// Enough for an index and for an answer that is compressed.
const OBJECTS: usize = 500;

fn object(n: usize) -> ConfigMap {
    let labels = json!({ "tenth": (n % 10).to_string(), "half": (n % 2).to_string() });
    serde_json::from_value(json!({
        "metadata": { "name": format!("c{n:04}"), "labels": labels },
        "data": { "text": format!("{n} ").repeat(150) },
    }))
    .unwrap()
}

async fn fill(client: &kube::Client) -> Api<ConfigMap> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let post = PostParams::default();
    stream::iter(0..OBJECTS)
        .map(|n| {
            let (maps, post) = (&maps, &post);
            async move { maps.create(post, &object(n)).await }
        })
        .buffer_unordered(16)
        .try_for_each(|_| async { Ok(()) })
        .await
        .unwrap();
    maps
}

/// The body, with the coding that the answer names.
async fn get(client: &kube::Client, query: &str, accept: &str, gzip: bool) -> (Option<String>, Vec<u8>) {
    let mut request = Request::get(format!("{PATH}{query}")).header("accept", accept);
    if gzip {
        request = request.header("accept-encoding", "gzip");
    }
    let response = client.send(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    let coding = response.headers().get("content-encoding");
    let coding = coding.map(|coding| coding.to_str().unwrap().to_owned());
    (coding, response.into_body().collect_bytes().await.unwrap().to_vec())
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}

async fn list(client: &kube::Client, query: &str) -> Value {
    serde_json::from_slice(&get(client, query, "application/json", false).await.1).unwrap()
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Those of a whole list for which `wanted` holds of labels and name.
fn chosen(list: &Value, wanted: impl Fn(&Value, &str) -> bool) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    let metadata = items.map(|item| &item["metadata"]);
    let wanted = metadata.filter(|m| wanted(&m["labels"], m["name"].as_str().unwrap()));
    wanted.map(|m| m["name"].as_str().unwrap().to_owned()).collect()
}

async fn compressed_lists_are_the_plain_ones(client: &kube::Client) {
    for accept in ["application/json", "application/vnd.kubernetes.protobuf"] {
        for _ in 0..2 {
            let (plain, packed) = plain_and_packed(client, accept).await;
            assert!(packed.len() < plain.len());
            assert!(unpacked(&packed) == plain, "{accept}");
        }
    }
}

/// A list twice, of one revision: others write to the same store (the lease of its controllers), which lists show.
async fn plain_and_packed(client: &kube::Client, accept: &str) -> (Vec<u8>, Vec<u8>) {
    for _ in 0..20 {
        let (coding, before) = get(client, "", accept, false).await;
        assert_eq!(coding, None);
        let (coding, packed) = get(client, "", accept, true).await;
        assert_eq!(coding.as_deref(), Some("gzip"));
        if get(client, "", accept, false).await.1 == before {
            return (before, packed);
        }
    }
    panic!("the store is never at rest");
}

/// Asked often enough for an index, a selector selects what it did without.
async fn selectors_select_the_same_with_an_index(client: &kube::Client, maps: &Api<ConfigMap>) {
    for round in 0..4 {
        let whole = list(client, "").await;
        let by = |label: &str, value: &str| {
            let (label, value) = (label.to_owned(), value.to_owned());
            move |labels: &Value, _: &str| labels[&label] == value
        };
        assert_eq!(
            names(&list(client, "?labelSelector=tenth%3D7").await),
            chosen(&whole, by("tenth", "7"))
        );
        assert_eq!(
            names(&list(client, "?labelSelector=tenth+in+(3,8),half%3D1").await),
            chosen(&whole, by("tenth", "3")),
            "round {round}"
        );
        assert_eq!(
            names(&list(client, "?labelSelector=tenth%3D7,half%3D0").await),
            chosen(&whole, |labels, _| labels["tenth"] == "7" && labels["half"] == "0")
        );
        let one = "?fieldSelector=metadata.name%3Dc0007&labelSelector=tenth%3D7";
        assert_eq!(names(&list(client, one).await), ["c0007"]);
        let into = Patch::Merge(json!({ "metadata": { "labels": { "tenth": "7" } } }));
        let moved = format!("c{:04}", 100 + round);
        maps.patch(&moved, &PatchParams::default(), &into).await.unwrap();
        let gone = format!("c{:04}", 207 + 10 * round);
        maps.delete(&gone, &DeleteParams::default()).await.unwrap();
    }
}

/// Pages show the revision of the first one, whatever happens meanwhile.
async fn pages_add_up_to_the_list_they_began_with(client: &kube::Client, maps: &Api<ConfigMap>) {
    for selector in [None, Some("half=1")] {
        let params = |limit| {
            let params = ListParams::default().limit(limit);
            selector.map_or(params.clone(), |selector| params.labels(selector))
        };
        let whole = maps.list(&params(0)).await.unwrap();
        let mut left = whole.items.len();
        let mut seen = Vec::new();
        let mut token = None;
        loop {
            let mut page = params(90);
            page.continue_token = token.take();
            let page = maps.list(&page).await.unwrap();
            assert_eq!(page.metadata.resource_version, whole.metadata.resource_version);
            left -= page.items.len();
            let more = page.metadata.continue_.clone().filter(|token| !token.is_empty());
            let counted = more.is_some() && selector.is_none();
            assert_eq!(page.metadata.remaining_item_count, counted.then_some(left as i64));
            seen.extend(page.items);
            let name = format!("late-{}", seen.len());
            let late = json!({ "metadata": { "name": name, "labels": { "half": "1" } } });
            maps.create(&PostParams::default(), &serde_json::from_value(late).unwrap())
                .await
                .unwrap();
            match more {
                Some(more) => token = Some(more),
                None => break,
            }
        }
        assert!(seen == whole.items);
        let late = ListParams::default().fields("metadata.name!=x");
        for map in maps.list(&late).await.unwrap() {
            let name = map.metadata.name.unwrap();
            if name.starts_with("late-") {
                maps.delete(&name, &DeleteParams::default()).await.unwrap();
            }
        }
    }
    assert_eq!(list(client, "?limit=1").await["items"].as_array().unwrap().len(), 1);
}

async fn check(flags: &[&str]) {
    let server = Server::start(keelson(), flags).await;
    let client = server.client().await;
    let maps = fill(&client).await;
    compressed_lists_are_the_plain_ones(&client).await;
    selectors_select_the_same_with_an_index(&client, &maps).await;
    pages_add_up_to_the_list_they_began_with(&client, &maps).await;
}

#[tokio::test]
async fn lists_of_the_memory_store() {
    check(&["--storage-backend=memory"]).await;
}

#[tokio::test]
async fn lists_without_memory_for_renditions() {
    check(&["--storage-backend=memory", "--cache-memory-limit=0"]).await;
}

#[tokio::test]
async fn lists_of_the_embedded_store() {
    check(&[]).await;
}

#[tokio::test]
async fn lists_of_etcd() {
    let Some(etcd) = Etcd::start() else { return };
    check(&[&format!("--etcd-servers={}", etcd.url)]).await;
}
