//! Custom objects are reached by the paths of their own resource, scope and namespace, and by no others, on every
//! store: CVE-2019-11247 (cluster-wide objects through the path of a namespace) and CVE-2022-3162 (one collection read
//! through another).

use std::collections::BTreeSet;

use kube::Client;
use serde_json::{Value, json};

use crate::definitions::{DEFINITIONS, becomes, create, definition};
use crate::support::{Etcd, Server, keelson};

/// Names that begin or end as others do: group, plural, whether it has namespaces.
const KINDS: [(&str, &str, bool); 7] = [
    ("b.example.com", "as", true),
    ("b.example.com", "ass", true),
    ("b.example.com", "aas", true),
    ("bb.example.com", "as", true),
    ("b.example.com.au", "as", true),
    ("b.example.com", "cs", false),
    ("b.example.com", "team", false),
];
/// The last two are called as resources are.
const NAMESPACES: [&str; 4] = ["team", "tea", "as", "cs"];
/// What a user may do who may do everything in the namespace `team`.
const ROLE: &str = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"all"},
    "rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}"#;
const BINDING: &str = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"all"},
    "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"all"},
    "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ann"}]}"#;

/// Paths that lead, or look as if they led, out of the collection of `as` in `team`.
const ODD: [&str; 20] = [
    "/apis/b.example.com/v1/namespaces/..%2fas/ass",
    "/apis/b.example.com/v1/namespaces/%2e%2e/ass",
    "/apis/b.example.com/v1/namespaces/%2e%2e%2fass%2fteam/as",
    "/apis/b.example.com/v1/namespaces/team%2f..%2ftea/as",
    "/apis/b.example.com/v1/namespaces/../bb.example.com/as",
    "/apis/b.example.com/v1/namespaces/..%2f..%2fsecrets/as",
    "/apis/b.example.com/v1/namespaces/team/as/..%2f..%2fass%2fteam%2fx",
    "/apis/b.example.com/v1/namespaces/team/as/%2e%2e%2ftea%2fx",
    "/apis/b.example.com/v1/namespaces/team%2fx/as",
    "/apis/b.example.com/v1/namespaces/team/as%2f..%2fass",
    "/apis/b.example.com/v1/as%2fteam",
    "/apis/b.example.com/v1/as%2fteam%2fx",
    "/apis/b.example.com/v1/a",
    "/apis/b.example.com/v1/",
    "/apis/b.example.com/v2/as",
    "/apis/example.com/v1/as",
    "/apis/b.example.co/v1/as",
    "/apis/b.example.com/v1/watch/namespaces/%2e%2e/ass?timeoutSeconds=1",
    "/apis/b.example.com/v1/watch/namespaces/..%2fass/as?timeoutSeconds=1",
    "/apis/b.example.com/v1/namespaces/..%2fass/as?watch=1&timeoutSeconds=1&resourceVersion=0",
];
/// Paths whose slashes are written otherwise: they are decoded before anybody is asked whether they are allowed, and
/// lead where they lead with plain ones.
const ENCODED: [&str; 4] = [
    "/apis/b.example.com/v1/namespaces/team/as%2fx",
    "/apis/b.example.com/v1/cs%2fx",
    "/apis/b.example.com%2fv1/as",
    "/apis/b.example.com/v1%2fas",
];
/// Queries that mean to lead out of a collection.
const QUERIES: [&str; 4] = [
    "fieldSelector=metadata.namespace=..%2fass",
    "fieldSelector=metadata.name=..%2f..%2fass%2fteam%2fx",
    "limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi9hc3MvdGVhbS94In0",
    "limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vYXNzLyJ9",
];

/// What an object holds that tells it from all others.
fn mark(group: &str, plural: &str, namespace: &str) -> String {
    format!("«{group} {plural} {namespace}»")
}

/// The collection of a resource in a namespace; "": in all of them.
fn collection(group: &str, plural: &str, namespace: &str) -> String {
    match namespace {
        "" => format!("/apis/{group}/v1/{plural}"),
        namespace => format!("/apis/{group}/v1/namespaces/{namespace}/{plural}"),
    }
}

/// The status and the text of an answer; `user`: who is impersonated.
async fn send(client: &Client, method: &str, path: &str, body: &Value, user: Option<&str>) -> (u16, String) {
    let content_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let mut request = http::Request::builder().method(method).uri(path);
    request = request.header("Content-Type", content_type);
    if let Some(user) = user {
        request = request.header("Impersonate-User", user);
    }
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = request.body(kube::client::Body::from(body.into_bytes())).unwrap();
    let answer = client.send(request).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap();
    (status, String::from_utf8_lossy(&bytes.to_bytes()).into_owned())
}

fn object(group: &str, plural: &str, namespace: &str) -> Value {
    json!({"apiVersion": format!("{group}/v1"), "kind": format!("K{plural}"), "metadata": {"name": "x"},
        "spec": {"field1": mark(group, plural, namespace)}})
}

/// A server with objects of all kinds, each called `x`.
async fn filled(flags: &[&str]) -> Server {
    let server = Server::start(keelson(), flags).await;
    let client = server.client().await;
    for name in NAMESPACES {
        create(&client, "/api/v1/namespaces", &json!({"metadata": {"name": name}})).await;
    }
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/team";
    for (kind, text) in [("roles", ROLE), ("rolebindings", BINDING)] {
        let body = serde_json::from_str(text).unwrap();
        create(&client, &format!("{roles}/{kind}"), &body).await;
    }
    for (group, plural, namespaced) in KINDS {
        let mut new = definition(plural, group, &["v1"]);
        if !namespaced {
            new["spec"]["scope"] = json!("Cluster");
        }
        create(&client, DEFINITIONS, &new).await;
        becomes(&client, &collection(group, plural, ""), 200).await;
        for namespace in if namespaced { &NAMESPACES[..] } else { &[""] } {
            let path = collection(group, plural, namespace);
            create(&client, &path, &object(group, plural, namespace)).await;
        }
    }
    server
}

/// The marks in an answer.
fn marks(text: &str) -> BTreeSet<String> {
    let parts = text.split('«').skip(1);
    let marks = parts.filter_map(|part| part.split_once('»'));
    marks.map(|(mark, _)| format!("«{mark}»")).collect()
}

/// One server for each store.
async fn servers() -> (Vec<Server>, Option<Etcd>) {
    let etcd = Etcd::start();
    let mut servers = Vec::new();
    for store in ["memory", "embedded"] {
        servers.push(filled(&[&format!("--storage-backend={store}")]).await);
    }
    if let Some(etcd) = &etcd {
        servers.push(filled(&[&format!("--etcd-servers={}", etcd.url)]).await);
    }
    (servers, etcd)
}

#[tokio::test]
async fn no_custom_collection_is_read_through_another() {
    let (servers, _etcd) = servers().await;
    for server in &servers {
        let client = server.client().await;
        for (group, plural, namespaced) in KINDS {
            let all: &[&str] = if namespaced { &NAMESPACES } else { &[""] };
            for namespace in all.iter().chain(&[""]) {
                let path = collection(group, plural, namespace);
                let own = all.iter().filter(|own| namespace.is_empty() || own == &namespace);
                let own: BTreeSet<String> = own.map(|own| mark(group, plural, own)).collect();
                let watched = path.replace("/v1/", "/v1/watch/");
                let paths = [
                    path.clone(),
                    format!("{path}?resourceVersion=0"),
                    format!("{path}?limit=100"),
                    format!("{path}?fieldSelector=metadata.name=x"),
                    format!("{path}?watch=1&timeoutSeconds=1"),
                    format!("{path}?watch=1&timeoutSeconds=1&resourceVersion=0"),
                    format!("{watched}?timeoutSeconds=1"),
                ];
                let none = Value::Null;
                let asked = paths.iter().map(|path| send(&client, "GET", path, &none, None));
                let answers = futures_util::future::join_all(asked).await;
                for (path, (status, text)) in paths.iter().zip(answers) {
                    assert_eq!((status, marks(&text)), (200, own.clone()), "{path}: {text}");
                }
            }
        }
        let queries = QUERIES
            .iter()
            .map(|query| format!("{}?{query}", collection("b.example.com", "as", "team")));
        for path in ODD.iter().map(|path| (*path).to_owned()).chain(queries) {
            let (status, text) = send(&client, "GET", &path, &Value::Null, None).await;
            assert!(marks(&text).is_empty(), "{path}: {status} {text}");
        }
        for path in ENCODED {
            for user in [None, Some("ann")] {
                let (status, text) = send(&client, "GET", path, &Value::Null, user).await;
                let (plain, shown) = send(&client, "GET", &path.replace("%2f", "/"), &Value::Null, user).await;
                assert_eq!((status, marks(&text)), (plain, marks(&shown)), "{path}");
            }
        }
    }
}

#[tokio::test]
async fn custom_objects_are_reached_in_their_own_scope_alone() {
    let (servers, _etcd) = servers().await;
    for server in &servers {
        let client = server.client().await;
        let state = async || {
            let mut all = Vec::new();
            for (group, plural, _) in KINDS {
                all.push(becomes(&client, &collection(group, plural, ""), 200).await["items"].clone());
            }
            all
        };
        let before = state().await;
        for (group, plural, namespaced) in KINDS {
            // Where it is not: in a namespace, or outside of all.
            let wrong = collection(group, plural, if namespaced { "" } else { "team" });
            let mut body = object(group, plural, "none");
            body["metadata"]["name"] = json!("y");
            let item = format!("{wrong}/x");
            let mut requests = vec![("POST", wrong.clone()), ("DELETE", wrong.clone())];
            requests.extend(["GET", "PUT", "PATCH", "DELETE"].map(|method| (method, item.clone())));
            if !namespaced {
                requests.extend([
                    ("GET", wrong.clone()),
                    ("GET", format!("{wrong}?watch=1&timeoutSeconds=1")),
                ]);
            }
            for user in [None, Some("ann")] {
                for (method, path) in &requests {
                    let sent = if matches!(*method, "GET" | "DELETE") {
                        &Value::Null
                    } else {
                        &body
                    };
                    let (status, text) = send(&client, method, path, sent, user).await;
                    let refused = status == 404 || user.is_some() && status == 403;
                    assert!(
                        refused && marks(&text).is_empty(),
                        "{user:?} {method} {path}: {status} {text}"
                    );
                }
            }
        }
        assert_eq!(state().await, before);
    }
}

#[tokio::test]
async fn a_role_in_a_namespace_reaches_custom_objects_of_that_namespace_alone() {
    let server = filled(&["--storage-backend=memory"]).await;
    let client = server.client().await;
    let mut seen = BTreeSet::new();
    for (group, plural, _) in KINDS {
        for namespace in NAMESPACES.iter().chain(&[""]) {
            let path = collection(group, plural, namespace);
            for path in [
                path.clone(),
                format!("{path}/x"),
                format!("{path}?watch=1&timeoutSeconds=1"),
            ] {
                let (status, text) = send(&client, "GET", &path, &Value::Null, Some("ann")).await;
                assert_eq!(status == 200, !marks(&text).is_empty(), "{path}: {status} {text}");
                seen.append(&mut marks(&text));
            }
        }
    }
    let own = KINDS.iter().filter(|(_, _, namespaced)| *namespaced);
    let own: BTreeSet<String> = own.map(|(group, plural, _)| mark(group, plural, "team")).collect();
    assert_eq!(seen, own);
}
