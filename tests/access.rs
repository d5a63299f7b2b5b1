//! The access matrix: every operation that the server documents, asked for by every sort of sender, against a server in
//! this process with roles as objects. What may pass is said here once more, in a few lines that don't know how
//! authorization works: whatever else passes, or does not, fails the test.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::Method;
use actix_web::test::{TestRequest, call_service, init_service};
use keelson::api::SCHEME;
use keelson_access::authn::token_file::StaticTokens;
use keelson_access::authn::tokens::Tokens;
use keelson_access::authn::{self, Authentication};
use keelson_access::authz::node::NodeAuthorizer;
use keelson_access::authz::rbac::Rbac;
use keelson_access::authz::{Authorization, PrivilegedGroup};
use keelson_access::user::User;
use keelson_base::env::SystemClock;
use keelson_machinery::scheme::Scheme;
use keelson_net::listener::ListenerConfig;
use keelson_server::app::app;
use keelson_server::discovery::{RuntimeConfig, Served};
use keelson_server::lifecycle::HookState;
use keelson_server::openapi::{Documents, Info};
use keelson_server::server::{Config, Running, start};
use keelson_server::version::Version;
use keelson_storage::HistoryLimits;
use keelson_storage::memory::MemoryStore;
use serde_json::{Value, json};

static SCHEMES: [&Scheme; 1] = [&SCHEME];
/// The namespace of all paths.
const NAMESPACE: &str = "team";
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sender {
    Anonymous,
    /// Authenticated, and bound to nothing.
    Nobody,
    /// May read everything in the namespace.
    Reader,
    /// May do everything in the namespace.
    Writer,
    /// May do everything in another namespace.
    Elsewhere,
    Node,
    /// May do nothing but act as the reader, and does.
    Impersonator,
    /// The same, who asks for the admin's identity instead.
    Usurper,
    Admin,
}

use Sender::{Admin, Anonymous, Elsewhere, Impersonator, Nobody, Node, Reader, Usurper, Writer};

/// The admin comes last: what passes does something.
const SENDERS: [Sender; 9] = [
    Anonymous,
    Nobody,
    Reader,
    Elsewhere,
    Node,
    Impersonator,
    Usurper,
    Writer,
    Admin,
];

impl Sender {
    fn user(self) -> Option<User> {
        let (name, group) = match self {
            Anonymous => return None,
            Node => ("system:node:n1", "system:nodes"),
            Admin => ("admin", "system:masters"),
            Nobody => ("Nobody", "some"),
            Reader => ("Reader", "some"),
            Writer => ("Writer", "some"),
            Elsewhere => ("Elsewhere", "some"),
            Impersonator => ("Impersonator", "some"),
            Usurper => ("Usurper", "some"),
        };
        Some(User {
            name: name.to_owned(),
            groups: vec![group.to_owned()],
            ..User::default()
        })
    }

    /// The headers that say who sends a request, and as whom.
    fn headers(self) -> Vec<(&'static str, String)> {
        let mut headers = match self {
            Anonymous => Vec::new(),
            sender => vec![("Authorization", format!("Bearer {sender:?}"))],
        };
        match self {
            Impersonator => headers.push(("Impersonate-User", "Reader".to_owned())),
            Usurper => {
                headers.push(("Impersonate-User", "Reader".to_owned()));
                headers.push(("Impersonate-Group", "system:masters".to_owned()));
            }
            _ => {}
        }
        headers
    }
}

/// An operation, with the placeholders of its path filled in.
struct Operation {
    method: Method,
    path: String,
    /// A watch by the query of a list.
    watches: bool,
}

impl Operation {
    /// What follows the group and version, without what names a namespace: `["pods", "x", "log"]`; whether it is in the
    /// namespace; whether it is an old watch path. `None`: the path is of no resource.
    fn resource(&self) -> Option<(&str, Vec<&str>, bool, bool)> {
        let mut parts: Vec<&str> = self.path.trim_matches('/').split('/').collect();
        let (group, skip) = match parts.first() {
            Some(&"api") if parts.len() > 2 => ("", 2),
            Some(&"apis") if parts.len() > 3 => (parts[1], 3),
            _ => return None,
        };
        parts.drain(..skip);
        let watch = parts[0] == "watch" || self.watches;
        if parts[0] == "watch" {
            parts.remove(0);
        }
        let named = parts[0] == "namespaces" && parts.len() > 1;
        let about_itself = named && (parts.len() == 2 || matches!(parts[2], "status" | "finalize"));
        if named && !about_itself {
            parts.drain(..2);
        }
        Some((group, parts, named, watch))
    }

    fn reads(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }
}

/// What everybody may read who is authenticated, and of it what everybody may.
fn is_public(path: &str, sender: Sender) -> bool {
    const TO_ALL: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
    let discovery = ["/api", "/apis", "/openapi"];
    TO_ALL.contains(&path)
        || (sender != Anonymous
            && discovery
                .iter()
                .any(|prefix| path == *prefix || path.starts_with(&format!("{prefix}/"))))
}

fn is_stream(group: &str, parts: &[&str]) -> bool {
    let subresource = parts.get(2).copied().unwrap_or_default();
    group.is_empty() && parts[0] == "pods" && matches!(subresource, "attach" | "exec" | "portforward")
}

/// What everybody may ask about themselves.
fn is_about_oneself(operation: &Operation, group: &str, resource: &str) -> bool {
    let reviews = [
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ];
    operation.method == Method::POST && reviews.contains(&(group, resource))
}

/// What a node may that has no pods: method (`WATCH`: by the old path), group, resource with name and subresource.
const OF_NODES: &[(&str, &str, &str)] = &[
    ("GET", "", "endpoints x"),
    ("GET", "", "services"),
    ("GET", "", "services x"),
    ("WATCH", "", "services"),
    ("WATCH", "", "services x"),
    ("POST", "", "events"),
    ("PATCH", "", "events x"),
    ("PUT", "", "events x"),
    ("POST", "", "nodes"),
    ("PATCH", "", "nodes x"),
    ("PUT", "", "nodes x"),
    ("PATCH", "", "nodes x status"),
    ("PUT", "", "nodes x status"),
    ("POST", "", "pods"),
    ("DELETE", "", "pods x"),
    ("PATCH", "", "pods x status"),
    ("PUT", "", "pods x status"),
    ("POST", "", "pods x eviction"),
    ("POST", "events.k8s.io", "events"),
    ("PATCH", "events.k8s.io", "events x"),
    ("PUT", "events.k8s.io", "events x"),
    ("POST", "authentication.k8s.io", "tokenreviews"),
    ("POST", "authorization.k8s.io", "subjectaccessreviews"),
    ("POST", "authorization.k8s.io", "localsubjectaccessreviews"),
    ("POST", "certificates.k8s.io", "certificatesigningrequests"),
    ("GET", "certificates.k8s.io", "certificatesigningrequests"),
    ("GET", "certificates.k8s.io", "certificatesigningrequests x"),
    ("WATCH", "certificates.k8s.io", "certificatesigningrequests"),
    ("WATCH", "certificates.k8s.io", "certificatesigningrequests x"),
    ("GET", "node.k8s.io", "runtimeclasses"),
    ("GET", "node.k8s.io", "runtimeclasses x"),
    ("WATCH", "node.k8s.io", "runtimeclasses"),
    ("WATCH", "node.k8s.io", "runtimeclasses x"),
    ("POST", "resource.k8s.io", "resourceslices"),
    ("POST", "storage.k8s.io", "csinodes"),
    ("GET", "storage.k8s.io", "csidrivers"),
    ("GET", "storage.k8s.io", "csidrivers x"),
    ("WATCH", "storage.k8s.io", "csidrivers"),
    ("WATCH", "storage.k8s.io", "csidrivers x"),
];

/// The model: who may pass.
fn may(sender: Sender, operation: &Operation) -> bool {
    if sender == Admin {
        return true;
    }
    // Whoever asks for an identity that is not to be had gets nothing, not even what everybody gets.
    if sender == Usurper {
        return false;
    }
    let Some((group, parts, in_namespace, watch)) = operation.resource() else {
        return operation.method == Method::GET && is_public(&operation.path, sender);
    };
    if sender == Anonymous {
        return false;
    }
    if is_about_oneself(operation, group, parts[0]) {
        return true;
    }
    match sender {
        // A stream acts on its pod, also where it is got.
        Reader | Impersonator => in_namespace && (operation.reads() || watch) && !is_stream(group, &parts),
        Writer => in_namespace,
        Node => {
            let resource = parts.join(" ");
            let method = if watch { "WATCH" } else { operation.method.as_str() };
            let named = |row: &&(&str, &str, &str)| **row == (method, group, resource.as_str());
            OF_NODES.iter().any(|row| named(&row))
        }
        Anonymous | Nobody | Elsewhere | Usurper | Admin => false,
    }
}

/// Every operation of the OpenAPI document with all versions switched on, and paths that it does not name.
fn operations() -> Vec<Operation> {
    let served = Served::new(&SCHEMES, &RuntimeConfig::parse(["api/all=true"]).unwrap());
    let info = Info {
        title: "Kubernetes".to_owned(),
        version: "1.36".to_owned(),
        issuer: true,
        known: keelson_kube::KNOWN_VERSIONS,
    };
    let mut text = Vec::new();
    let documents = Documents::new(&SCHEMES, served.fixed(), info, Arc::new(SystemClock));
    documents.v2(&mut text).unwrap();
    let document: Value = serde_json::from_slice(&text).unwrap();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in METHODS.iter().filter(|method| item.get(**method).is_some()) {
            all.push(operation(method, path));
            // Every list can be watched; a path of old says so itself.
            let action = item[*method]["x-kubernetes-action"].as_str();
            if action == Some("list") {
                let watches = true;
                all.push(Operation {
                    watches,
                    ..operation(method, path)
                });
            }
        }
    }
    let others = [
        "/",
        "/healthz",
        "/healthz/ping",
        "/livez",
        "/readyz",
        "/readyz/etcd",
        "/metrics",
        "/metrics/slis",
    ];
    let more = [
        "/openapi/v2",
        "/openapi/v3",
        "/debug/pprof/",
        "/logs/x",
        "/api/",
        "/apis/",
        "/nope",
        "/version",
        "/debug/api_priority_and_fairness/dump_requests",
        "/debug/store/snapshot",
    ];
    for path in others.iter().chain(&more) {
        all.extend(["get", "post", "delete"].map(|method| operation(method, path)));
    }
    all
}

/// Reads of the paths that the server itself lists and that have no rows yet, but for those that can't be covered: each
/// of these is a line in a file, which only shrinks.
fn listed(paths: &[String], known: &[Operation]) -> Vec<Operation> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/uncovered-routes.txt");
    let text = std::fs::read_to_string(file).unwrap();
    let uncovered: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for line in &uncovered {
        assert!(
            paths.iter().any(|path| path == line),
            "{line} is no path of the server any longer"
        );
    }
    let new = paths.iter().filter(|path| !uncovered.contains(&path.as_str()));
    new.filter(|path| !known.iter().any(|one| one.path == **path))
        .map(|path| operation("get", path))
        .collect()
}

fn operation(method: &str, path: &str) -> Operation {
    let own = path.starts_with("/api/v1/namespaces/{name}") || path.starts_with("/api/v1/watch/namespaces/{name}");
    let path = path
        .replace("{namespace}", NAMESPACE)
        .replace("{name}", if own { NAMESPACE } else { "x" })
        .replace("{path}", "y")
        .replace("{logpath}", "x");
    Operation {
        method: Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(),
        path,
        watches: false,
    }
}

fn server() -> Running {
    let tokens = SENDERS.iter().filter_map(|s| Some((format!("{s:?}"), s.user()?)));
    let roles = Arc::new(Rbac::new(keelson_kube::rbac::Reader));
    let nodes = NodeAuthorizer::new(keelson_kube::NodeGraph, keelson_kube::node_rules().unwrap());
    let chain: Vec<Arc<dyn keelson_access::authz::Authorizer>> =
        vec![Arc::new(PrivilegedGroup), Arc::new(nodes), roles.clone()];
    let store = Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap());
    let listener = ListenerConfig::new(([127, 0, 0, 1], 0).into(), None);
    let mut config = Config::new(SCHEMES.to_vec(), store, listener);
    config.resources.code = keelson_kube::code(&keelson_kube::CodeOptions::default());
    config.resources.runtime = RuntimeConfig::parse(["api/all=true"]).unwrap();
    config.resources.admission = keelson_kube::admission::chain();
    config.resources.known_versions = keelson_kube::KNOWN_VERSIONS;
    config.access.authentication = Authentication {
        chain: vec![Tokens::new(vec![Arc::new(StaticTokens::new(tokens))], None)],
        ..Authentication::default()
    }
    .with_anonymous(authn::Anonymous::Everywhere);
    config.access.flow_control = Some(Box::new(keelson_kube::flowcontrol::Reader));
    config.access.authorization = Authorization::with_roles(chain, Some(roles));
    config.version = Version {
        major: "1".to_owned(),
        minor: "36".to_owned(),
        ..Version::default()
    };
    config.hooks = keelson_kube::bootstrap::hooks(&Default::default());
    config.advertise = "192.0.2.2:6443".to_owned();
    start(config).unwrap()
}

/// The objects that make senders what they are.
fn setup() -> Vec<(String, Value)> {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let any = json!(["*"]);
    let role = |name: &str, verbs: Value| json!({"metadata": {"name": name}, "rules": [{"verbs": verbs, "apiGroups": any, "resources": any}]});
    let binding = |role: &str, user: &str| {
        json!({"metadata": {"name": role}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
               "subjects": [{"kind": "User", "name": user}]})
    };
    let mut objects = Vec::new();
    for namespace in [NAMESPACE, "other"] {
        objects.push((
            "/api/v1/namespaces".to_owned(),
            json!({"metadata": {"name": namespace}}),
        ));
    }
    let (here, there) = (
        format!("{rbac}/namespaces/{NAMESPACE}"),
        format!("{rbac}/namespaces/other"),
    );
    objects.push((format!("{here}/roles"), role("reader", json!(["get", "list", "watch"]))));
    objects.push((format!("{here}/roles"), role("writer", any.clone())));
    objects.push((format!("{there}/roles"), role("writer", any.clone())));
    objects.push((format!("{here}/rolebindings"), binding("reader", "Reader")));
    objects.push((format!("{here}/rolebindings"), binding("writer", "Writer")));
    objects.push((format!("{there}/rolebindings"), binding("writer", "Elsewhere")));
    let actor = json!({"metadata": {"name": "actor"}, "rules": [
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["Reader"]},
    ]});
    objects.push((format!("{rbac}/clusterroles"), actor));
    let subjects: Vec<Value> = ["Impersonator", "Usurper"]
        .map(|name| json!({"kind": "User", "name": name}))
        .into();
    let actors = json!({"metadata": {"name": "actors"}, "subjects": subjects,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "actor"}});
    objects.push((format!("{rbac}/clusterrolebindings"), actors));
    objects
}

#[test]
fn nobody_passes_who_may_not_and_everybody_who_may() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, matrix());
}

/// A running server whose hooks are done, and what it answers.
macro_rules! service {
    ($running:ident) => {{
        while $running
            .state
            .hooks
            .states()
            .iter()
            .any(|(_, state)| *state == HookState::Running)
        {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        init_service(app($running.state.clone())).await
    }};
}

fn request(sender: Sender, method: &Method, target: &str) -> TestRequest {
    let mut request = TestRequest::with_uri(target)
        .method(method.clone())
        .insert_header(("Content-Type", "application/json"));
    for header in sender.headers() {
        request = request.insert_header(header);
    }
    request
}

async fn matrix() {
    let running = server();
    let service = service!(running);
    for (path, object) in setup() {
        let request = request(Admin, &Method::POST, &path).set_json(object);
        let response = call_service(&service, request.to_request()).await;
        assert_eq!(response.status(), 201, "{path}");
    }
    let (mut operations, mut wrong, mut asked) = (operations(), String::new(), 0);
    let root = call_service(&service, request(Admin, &Method::GET, "/").to_request()).await;
    let root: Value = actix_web::test::read_body_json(root).await;
    let paths: Vec<String> = serde_json::from_value(root["paths"].clone()).unwrap();
    assert!(paths.len() > 50, "{paths:?}");
    operations.extend(listed(&paths, &operations));
    for sender in SENDERS {
        for operation in &operations {
            let query = match operation.reads() {
                true if operation.watches => "?watch=true&timeoutSeconds=1",
                true => "",
                // What passes must not take away what later senders need.
                false => "?dryRun=All",
            };
            let target = format!("{}{query}", operation.path);
            let request = request(sender, &operation.method, &target);
            let status = call_service(&service, request.to_request()).await.status();
            asked += 1;
            let passed = status != 403;
            if passed != may(sender, operation) {
                writeln!(wrong, "{sender:?} {} {target} {status}", operation.method).unwrap();
            }
        }
    }
    running.stop().await;
    assert!(asked > 10_000, "only {asked} requests were made");
    assert!(
        wrong.is_empty(),
        "{} are not as they should be:\n{wrong}",
        wrong.lines().count()
    );
}

/// CVE-2019-11247: what belongs to no namespace is not to be had through one, where other roles count, and what belongs
/// to one is not to be had without it.
#[test]
fn nothing_is_found_in_the_scope_of_others() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, scopes());
}

async fn scopes() {
    let running = server();
    let service = service!(running);
    let (mut asked, mut wrong) = (0, String::new());
    let versions = SCHEME.groups.iter().flat_map(|group| group.versions);
    let kinds = versions.flat_map(|version| version.kinds);
    // A namespace has parts of its own under its name.
    for kind in kinds.filter(|kind| !kind.plural.is_empty() && kind.plural != "namespaces") {
        let group = match kind.group.as_str() {
            "" => format!("/api/{}", kind.version),
            group => format!("/apis/{group}/{}", kind.version),
        };
        let plural = &kind.plural;
        let target = match kind.namespaced {
            true => format!("{group}/{plural}/x"),
            false => format!("{group}/namespaces/{NAMESPACE}/{plural}/x"),
        };
        let collection = format!("{group}/namespaces/{NAMESPACE}/{plural}");
        let mut targets = vec![target.clone(), format!("{target}/status")];
        if !kind.namespaced {
            targets.push(collection);
        }
        for target in targets {
            for method in ["GET", "PUT", "POST", "PATCH", "DELETE"] {
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                let status = call_service(&service, request(Admin, &method, &target).to_request())
                    .await
                    .status();
                asked += 1;
                if !matches!(status.as_u16(), 404 | 405) {
                    writeln!(wrong, "{method} {target} {status}").unwrap();
                }
            }
        }
    }
    running.stop().await;
    assert!(asked > 1_000, "only {asked} requests were made");
    assert!(wrong.is_empty(), "{wrong}");
}
