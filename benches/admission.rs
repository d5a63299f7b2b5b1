//! Admission: what plug-ins, webhooks and policies add to a create, in CPU time of the server: a server without any
//! plug-in, one with all that are on where nobody says anything, and ones with webhooks and policies beside them. Each
//! is beside its bare limit: a webhook beside a call of the same stub by the same client, a policy beside the same five
//! questions to a tree of JSON.
//!
//! The bars: a webhook 60 µs, 100 webhooks that do not match 3 µs, a policy of five validations 15 µs; a create of a
//! pod with all default plug-ins 290 µs, of a configmap 85 µs. All servers are asked in turns, over HTTP/2 and TLS,
//! with a store in memory; a figure is the median of the rounds.

#![allow(clippy::unwrap_used, reason = "what fails here stops the benchmark, as it should")]

mod support;

use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use keelson_net::client::{Call, Client as Outwards, ClientSettings, ClientTls, Roots};
use keelson_net::tls::certs::{CertificateAuthority, Validity};
use keelson_registry::admission::Admission;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use support::client::{Client, Identity, Protocol, server_cpu};
use support::{memory, request, serve_with};

const ROUNDS: usize = 15;
const REQUESTS: u64 = 1_500;
const JSON: &str = "application/json";
const CORE: &str = "/api/v1/namespaces/default";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

/// What is made: configmaps or pods.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    Map,
    Pod,
}

/// What a server has beside its plug-ins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    Webhook,
    OtherWebhooks,
    Policy,
}

/// One server.
struct Part {
    name: &'static str,
    made: Made,
    has_plugins: bool,
    beside: Beside,
    /// The place of the one that it is compared with.
    bare: usize,
}

const fn part(name: &'static str, made: Made, has_plugins: bool, beside: Beside, bare: usize) -> Part {
    Part {
        name,
        made,
        has_plugins,
        beside,
        bare,
    }
}

const PARTS: [Part; 7] = [
    part("configmap, no plug-in", Made::Map, false, Beside::Nothing, 0),
    part("configmap", Made::Map, true, Beside::Nothing, 0),
    part("configmap, a webhook", Made::Map, true, Beside::Webhook, 1),
    part(
        "configmap, 100 others' webhooks",
        Made::Map,
        true,
        Beside::OtherWebhooks,
        1,
    ),
    part("configmap, a policy", Made::Map, true, Beside::Policy, 1),
    part("pod, no plug-in", Made::Pod, false, Beside::Nothing, 5),
    part("pod", Made::Pod, true, Beside::Nothing, 5),
];

const EXPRESSIONS: [&str; 5] = [
    "object.metadata.name.startsWith('o')",
    "object.data.all(key, object.data[key].size() < 1024)",
    "!has(object.metadata.labels) || !('forbidden' in object.metadata.labels)",
    "size(object.data) <= 10",
    "request.userInfo.username != 'nobody'",
];

/// A webhook that allows everything, on a thread of its own.
struct Stub {
    address: SocketAddr,
    ca: String,
}

impl Stub {
    fn start() -> Stub {
        let year = || Validity::years_from(SystemTime::now(), 1);
        let ca = CertificateAuthority::create("stub", year()).unwrap();
        let pair = ca
            .issue_server("stub", &[], &["127.0.0.1".parse().unwrap()], year())
            .unwrap();
        let chain = CertificateDer::pem_slice_iter(pair.certificate_pem.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain.map(Result::unwrap).collect(), key)
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    let acceptor = acceptor.clone();
                    tokio::spawn(async move {
                        let stream = acceptor.accept(stream).await.unwrap();
                        let http = hyper::server::conn::http1::Builder::new();
                        let _ = http.serve_connection(TokioIo::new(stream), service_fn(allow)).await;
                    });
                }
            });
        });
        Stub {
            address,
            ca: ca.pem().certificate_pem.clone(),
        }
    }

    fn url(&self) -> String {
        format!("https://{}/", self.address)
    }
}

async fn allow(request: http::Request<Incoming>) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true}});
    let answer = http::Response::builder()
        .header("content-type", JSON)
        .body(Full::from(answer.to_string()));
    Ok(answer.unwrap())
}

fn webhook(name: &str, stub: &Stub, resource: &str) -> Value {
    use base64::Engine;
    let ca = base64::engine::general_purpose::STANDARD.encode(&stub.ca);
    json!({
        "name": format!("{name}.example.com"), "clientConfig": {"url": stub.url(), "caBundle": ca},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource]}],
        "namespaceSelector": {"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]},
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
    })
}

fn post(client: &Client, path: &str, body: &Value) {
    let answer = client.body(request("POST", path, JSON, body.to_string()));
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_ne!(answer["status"], "Failure", "{answer}");
}

fn registered(kind: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}});
    for (key, value) in rest.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    object
}

/// Makes what a part has.
fn fill(client: &Client, part: &Part, stub: &Stub) {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    post(client, &format!("{CORE}/serviceaccounts"), &account);
    let kind = "ValidatingWebhookConfiguration";
    let hooks = format!("{CONFIGURATIONS}/validatingwebhookconfigurations");
    match part.beside {
        Beside::Nothing => {}
        Beside::Webhook => {
            let all = json!({"webhooks": [webhook("one", stub, "configmaps")]});
            post(client, &hooks, &registered(kind, "one", all));
        }
        Beside::OtherWebhooks => (0..100).for_each(|number| {
            // Half of them are about something else, and half want other objects.
            let about = if number % 2 == 0 { "secrets" } else { "configmaps" };
            let mut other = webhook("other", stub, about);
            other["objectSelector"] = json!({"matchLabels": {"wanted": format!("by-{number}")}});
            let all = json!({"webhooks": [other]});
            post(client, &hooks, &registered(kind, &format!("other-{number}"), all));
        }),
        Beside::Policy => policy(client),
    }
}

fn policy(client: &Client) {
    let validations: Vec<Value> = EXPRESSIONS
        .iter()
        .map(|expression| json!({"expression": expression}))
        .collect();
    let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]});
    let spec = json!({"spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": validations}});
    let path = format!("{CONFIGURATIONS}/validatingadmissionpolicies");
    post(client, &path, &registered("ValidatingAdmissionPolicy", "five", spec));
    let spec = json!({"spec": {"policyName": "five", "validationActions": ["Deny"]}});
    let path = format!("{CONFIGURATIONS}/validatingadmissionpolicybindings");
    post(
        client,
        &path,
        &registered("ValidatingAdmissionPolicyBinding", "five", spec),
    );
}

/// A server, and whoever asks it.
struct Measured {
    part: &'static Part,
    client: Client,
    next: AtomicU64,
    /// CPU time of each round's requests, in µs for each.
    costs: Vec<f64>,
}

impl Measured {
    fn begin(part: &'static Part, identity: &Identity, address: SocketAddr, stub: &Stub) -> Measured {
        let client = Client::connect(identity, address, Protocol::Http2, 2, 16);
        fill(&client, part, stub);
        let mut measured = Measured {
            part,
            client,
            next: AtomicU64::new(0),
            costs: Vec::new(),
        };
        measured.round();
        measured.costs.clear();
        measured
    }

    fn round(&mut self) {
        let make = || {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let (plural, body) = body(self.part.made, number);
            request("POST", &format!("{CORE}/{plural}"), JSON, body)
        };
        let before = server_cpu();
        self.client.run(REQUESTS, &make);
        let used = server_cpu().saturating_sub(before);
        self.costs.push(used.as_secs_f64() * 1e6 / REQUESTS as f64);
    }

    /// By how much a request costs more than that of another server in the same round, in the median.
    fn beyond(&self, bare: &Measured) -> f64 {
        let pairs = self.costs.iter().zip(&bare.costs);
        median(pairs.map(|(cost, bare)| cost - bare).collect())
    }
}

fn body(made: Made, number: u64) -> (&'static str, String) {
    match made {
        Made::Map => {
            let value = "v".repeat(800);
            let body = format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"o{number}"}},"data":{{"key":"{value}"}}}}"#
            );
            ("configmaps", body)
        }
        Made::Pod => {
            let container = r#"{"name":"a","image":"registry.example.com/a:1","ports":[{"containerPort":80}],
                "resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"128Mi"}},
                "env":[{"name":"A","value":"b"}],"livenessProbe":{"httpGet":{"path":"/","port":80}}}"#;
            let body = format!(
                r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"o{number}","labels":{{"app":"a"}}}},"spec":{{"containers":[{container}]}}}}"#
            );
            ("pods", body)
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// CPU time of this thread.
fn own_cpu() -> Duration {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let used = schedule.split_whitespace().next().and_then(|used| used.parse().ok());
    Duration::from_nanos(used.unwrap_or_default())
}

/// A call of the stub, and nothing else, in µs.
fn bare_call(stub: &Stub) -> f64 {
    const CALLS: u32 = 3_000;
    let settings = ClientSettings {
        tls: ClientTls {
            roots: Roots::Pem(stub.ca.clone()),
            ..ClientTls::default()
        },
        ..ClientSettings::default()
    };
    let client = Outwards::new(settings).unwrap();
    let review = json!({"request": {"uid": "u", "object": body(Made::Map, 0).1}}).to_string();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let call = Call::post(stub.url(), JSON, review);
        client.call(&call).await.unwrap();
        let before = own_cpu();
        for _ in 0..CALLS {
            client.call(&call).await.unwrap();
        }
        own_cpu().saturating_sub(before).as_secs_f64() * 1e6 / f64::from(CALLS)
    })
}

/// The questions of the policy to a tree of JSON, in µs.
fn bare_policy() -> f64 {
    const TIMES: u32 = 20_000;
    let object: Value = serde_json::from_str(&body(Made::Map, 0).1).unwrap();
    let user = std::hint::black_box("bench".to_owned());
    let asked = |object: &Value| {
        let (metadata, data) = (&object["metadata"], object["data"].as_object().unwrap());
        metadata["name"].as_str().unwrap().starts_with('o')
            && data
                .values()
                .all(|value| value.as_str().unwrap().chars().count() < 1024)
            && metadata["labels"].get("forbidden").is_none()
            && data.len() <= 10
            && user != "nobody"
    };
    let before = own_cpu();
    for _ in 0..TIMES {
        assert!(std::hint::black_box(asked(std::hint::black_box(&object))));
    }
    own_cpu().saturating_sub(before).as_secs_f64() * 1e6 / f64::from(TIMES)
}

fn tell(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn main() {
    let identity = Identity::create();
    let stub = Stub::start();
    let started = PARTS.iter().map(|part| {
        serve_with(&identity, memory(), move |config| {
            if !part.has_plugins {
                config.resources.admission = Admission::default();
            }
        })
    });
    let addresses: Vec<SocketAddr> = started.collect();
    // Time to make the namespaces.
    std::thread::sleep(Duration::from_secs(3));
    let mut all: Vec<Measured> = PARTS
        .iter()
        .zip(addresses)
        .map(|(part, address)| Measured::begin(part, &identity, address, &stub))
        .collect();
    for _ in 0..ROUNDS {
        all.iter_mut().for_each(Measured::round);
    }
    tell(&format!(
        "{:<34}{:>12}{:>12}",
        "server CPU of a create, µs", "in all", "over bare"
    ));
    for measured in &all {
        let (whole, beyond) = (
            median(measured.costs.clone()),
            measured.beyond(&all[measured.part.bare]),
        );
        tell(&format!("{:<34}{whole:>12.1}{beyond:>12.1}", measured.part.name));
    }
    tell(&format!("{:<34}{:>12.1}", "bare call of the webhook", bare_call(&stub)));
    tell(&format!(
        "{:<34}{:>12.2}",
        "bare questions of the policy",
        bare_policy()
    ));
}
