//! Definitions of custom resources: what one of several servers is told all of them serve; many at a time.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt};
use kube::Client;
use serde_json::{Value, json};

use crate::support::{Etcd, Server, keelson};

pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PATIENCE: Duration = Duration::from_secs(60);

pub fn definition(plural: &str, group: &str, versions: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> = (0..50)
        .map(|n| {
            (
                format!("field{n}"),
                json!({"type": "string", "description": "One of the fields."}),
            )
        })
        .collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
    let versions: Vec<Value> = (0..)
        .zip(versions)
        .map(|(place, name)| {
            json!({"name": name, "served": true, "storage": place == 0, "schema": {"openAPIV3Schema": schema}})
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": format!("K{plural}")},
            "versions": versions,
        },
    })
}

/// The status and the body of an answer.
async fn ask(client: &Client, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let content_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("Content-Type", content_type);
    let request = request.body(kube::client::Body::from(body)).unwrap();
    let answer = client.send(request).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = http_body_util::BodyExt::collect(answer.into_body())
        .await
        .unwrap()
        .to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

pub async fn create(client: &Client, path: &str, body: &Value) {
    let (status, answer) = ask(client, "POST", path, body).await;
    assert_eq!(status, 201, "{answer}");
}

/// Asks until this is the status.
pub async fn becomes(client: &Client, path: &str, status: u16) -> Value {
    let begin = Instant::now();
    loop {
        let (found, answer) = ask(client, "GET", path, &Value::Null).await;
        if found == status {
            return answer;
        }
        assert!(begin.elapsed() < PATIENCE, "{path}: {found} {answer}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn object(name: &str) -> Value {
    json!({"apiVersion": "x.example.com/v1", "kind": "Kas", "metadata": {"name": name}, "spec": {"field1": name}})
}

#[tokio::test]
async fn several_servers_serve_what_one_of_them_is_told() {
    let Some(etcd) = Etcd::start() else { return };
    let flag = format!("--etcd-servers={}", etcd.url);
    let first = Server::start(keelson(), &[&flag]).await;
    let second = Server::start(keelson(), &[&flag]).await;
    let (one, other) = (first.client().await, second.client().await);
    let (all, own) = (
        "/apis/x.example.com/v1/as",
        "/apis/x.example.com/v1/namespaces/default/as",
    );

    create(&other, DEFINITIONS, &definition("as", "x.example.com", &["v1"])).await;
    for client in [&one, &other] {
        becomes(client, all, 200).await;
    }
    create(&one, own, &object("a")).await;
    let (_, list) = ask(&other, "GET", all, &Value::Null).await;
    assert_eq!(list["items"][0]["spec"]["field1"], "a", "{list}");

    // Another version ends watches, on the server that was not told of it too.
    let request = http::Request::get(format!("{all}?watch=1")).body(Vec::new()).unwrap();
    let watch = other.request_stream(request).await.unwrap();
    let changed = definition("as", "x.example.com", &["v1", "v2"])["spec"]["versions"].clone();
    let path = format!("{DEFINITIONS}/as.x.example.com");
    let (status, answer) = ask(&one, "PATCH", &path, &json!({"spec": {"versions": changed}})).await;
    assert_eq!(status, 200, "{answer}");
    let mut sink = futures_util::io::sink();
    let end = futures_util::io::copy(watch, &mut sink);
    tokio::time::timeout(PATIENCE, end).await.unwrap().unwrap();
    for client in [&one, &other] {
        let list = becomes(client, "/apis/x.example.com/v2/as", 200).await;
        assert_eq!(list["items"][0]["apiVersion"], "x.example.com/v2", "{list}");
    }

    // Whoever leads, its end leaves somebody who establishes and finalizes.
    drop(first);
    create(&other, DEFINITIONS, &definition("bs", "x.example.com", &["v1"])).await;
    becomes(&other, "/apis/x.example.com/v1/bs", 200).await;
    let (status, answer) = ask(&other, "DELETE", &path, &Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    becomes(&other, &path, 404).await;
    becomes(&other, all, 404).await;
    create(&other, DEFINITIONS, &definition("as", "x.example.com", &["v1"])).await;
    let list = becomes(&other, all, 200).await;
    assert_eq!(list["items"], json!([]), "{list}");
}

/// Names of the groups in the document of aggregated discovery.
async fn discovered(client: &Client) -> Vec<String> {
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let request = http::Request::get("/apis")
        .header("Accept", accept)
        .body(Vec::new())
        .unwrap();
    let document: Value = client.request(request).await.unwrap();
    let groups = document["items"].as_array().unwrap().iter();
    groups
        .map(|group| group["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn two_hundred_definitions_of_eight_clients() {
    let server = Server::start(keelson(), &["--storage-backend=memory"]).await;
    let mut clients = Vec::new();
    for writer in 0..8 {
        let client = server.client().await;
        clients.push(async move {
            for n in 0..25 {
                let group = format!("g{writer}-{n}.example.com");
                create(&client, DEFINITIONS, &definition("things", &group, &["v1"])).await;
            }
            Ok::<_, kube::Error>(())
        });
    }
    let writers: futures_util::stream::FuturesUnordered<_> = clients.into_iter().collect();
    writers.try_collect::<Vec<()>>().await.unwrap();
    let (client, begin) = (server.client().await, Instant::now());
    while discovered(&client)
        .await
        .iter()
        .filter(|name| name.ends_with(".example.com"))
        .count()
        < 200
    {
        assert!(begin.elapsed() < PATIENCE, "not in discovery: {}", server.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for writer in 0..8 {
        let path = format!("/apis/g{writer}-24.example.com/v1/things");
        assert_eq!(ask(&client, "GET", &path, &Value::Null).await.0, 200);
    }
}

/// What is accepted is served before the definition says so, while others write to it: who has seen it served must not
/// find it gone.
#[tokio::test]
async fn what_is_served_once_stays_served() {
    let server = Server::start(keelson(), &["--storage-backend=memory"]).await;
    let mut all = futures_util::stream::FuturesUnordered::new();
    for writer in 0..8 {
        let (client, other) = (server.client().await, server.client().await);
        all.push(async move {
            for n in 0..4 {
                let group = format!("s{writer}-{n}.example.com");
                let (path, own) = (
                    format!("/apis/{group}/v1/things"),
                    format!("{DEFINITIONS}/things.{group}"),
                );
                let writes = async {
                    create(&client, DEFINITIONS, &definition("things", &group, &["v1"])).await;
                    for n in 0..4 {
                        let labels = json!({"metadata": {"labels": {"n": n.to_string()}}});
                        let (status, answer) = ask(&client, "PATCH", &own, &labels).await;
                        assert_eq!(status, 200, "{answer}");
                    }
                };
                let reads = async {
                    becomes(&other, &path, 200).await;
                    for _ in 0..10 {
                        let (status, answer) = ask(&other, "GET", &path, &Value::Null).await;
                        assert_eq!(status, 200, "{path}: {answer}");
                    }
                };
                futures_util::future::join(writes, reads).await;
            }
        });
    }
    while all.next().await.is_some() {}
}
