//! The filter chain: what it adds to a GET of a small object, in CPU time of the server: a bare server (one
//! authenticator that knows everybody, everything allowed, no flow control, no audit), then one part after the other,
//! up to the whole chain: tokens of service accounts from the cache or client certificates, roles with 10 000 bindings,
//! priority and fairness, audit at level Metadata into a file.
//!
//! The bar: the whole chain adds less than 25 µs. All servers are asked in turns, over HTTP/2 and TLS, so that what
//! else the machine does meets all of them alike; a figure is the median of the rounds.

#![allow(clippy::unwrap_used, reason = "what fails here stops the benchmark, as it should")]

mod support;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use keelson_access::authn::certificate::ClientCertificates;
use keelson_access::authn::jwt::KeySet;
use keelson_access::authn::service_account::{ServiceAccountTokens, Trust};
use keelson_access::authn::token_cache::TokenCache;
use keelson_access::authn::token_issuer::TokenIssuer;
use keelson_access::authn::tokens::{Tokens, WebSocketTokens};
use keelson_access::authn::{Answer, Authentication, Authenticator, Credentials, Identity as Sender};
use keelson_access::authz::node::NodeAuthorizer;
use keelson_access::authz::rbac::Rbac;
use keelson_access::authz::{AlwaysAllow, Authorization, Labeled, PrivilegedGroup};
use keelson_access::user::{GROUP_MASTERS, User};
use keelson_base::env::SystemClock;
use keelson_net::tls::certificates;
use keelson_net::tls::certs::KeyPem;
use keelson_server::audit::sink::{Batching, Format, LogSettings, Mode, Rotation};
use keelson_server::audit::{Audit, AuditSettings, Policy};
use keelson_server::server::Config;
use support::client::{Client, Identity, Protocol, Request, server_cpu};
use support::{memory, request, serve_with};

const BINDINGS: usize = 10_000;
const NAMESPACES: usize = 100;
const ROLES: usize = 100;
const ROUNDS: usize = 15;
const REQUESTS: u64 = 4_000;
const OBJECT: &str = "/api/v1/namespaces/default/configmaps/small";
const JSON: &str = "application/json";
const ISSUER: &str = "https://kubernetes.default.svc";
/// The user whose certificate is shown, and its group.
const OPERATOR: (&str, &str) = ("operator", "operators");

/// How a client says who it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// Nobody asks.
    None,
    Token,
    Certificate,
}

/// One server.
struct Part {
    name: &'static str,
    proof: Proof,
    roles: bool,
    fairness: bool,
    audit: Option<Mode>,
}

const fn part(name: &'static str, proof: Proof, roles: bool, fairness: bool, audit: Option<Mode>) -> Part {
    Part {
        name,
        proof,
        roles,
        fairness,
        audit,
    }
}

/// The first one is bare.
const PARTS: [Part; 10] = [
    part("bare", Proof::None, false, false, None),
    part("a token", Proof::Token, false, false, None),
    part("a certificate", Proof::Certificate, false, false, None),
    part("a token, roles", Proof::Token, true, false, None),
    part("a token, roles, fairness", Proof::Token, true, true, None),
    part("audit alone, batch", Proof::None, false, false, Some(Mode::Batch)),
    part("audit alone, blocking", Proof::None, false, false, Some(Mode::Blocking)),
    part("whole chain, token, batch", Proof::Token, true, true, Some(Mode::Batch)),
    part(
        "whole chain, certificate, batch",
        Proof::Certificate,
        true,
        true,
        Some(Mode::Batch),
    ),
    part(
        "whole chain, token, blocking",
        Proof::Token,
        true,
        true,
        Some(Mode::Blocking),
    ),
];

/// Knows everybody who has no other proof.
struct Everybody(Arc<Sender>);

impl Everybody {
    fn new() -> Everybody {
        Everybody(Sender::of(User {
            name: "bench".to_owned(),
            groups: vec![GROUP_MASTERS.to_owned(), "system:authenticated".to_owned()],
            ..User::default()
        }))
    }
}

impl Authenticator for Everybody {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a> {
        match credentials.headers.contains_key("x-bench") {
            true => Answer::Now(Ok(Some(self.0.clone()))),
            false => Answer::nothing(),
        }
    }
}

/// What servers under measurement share.
struct Setting {
    authority: String,
    key: KeyPem,
    folder: PathBuf,
}

impl Part {
    fn configure(&self, setting: &Setting, config: &mut Config) {
        config.access.authentication = self.authentication(setting);
        config.access.authorization = match self.roles {
            false => Authorization::new(vec![Arc::new(AlwaysAllow)]),
            true => {
                let roles = Arc::new(Rbac::new(keelson_kube::rbac::Reader));
                let node = NodeAuthorizer::new(keelson_kube::NodeGraph, keelson_kube::node_rules().unwrap());
                let chain = vec![
                    Arc::new(PrivilegedGroup) as _,
                    Arc::new(Labeled::new("Node", Arc::new(node))) as _,
                    Arc::new(Labeled::new("RBAC", roles.clone())) as _,
                ];
                Authorization::with_roles(chain, Some(roles))
            }
        };
        if self.fairness {
            config.access.flow_control = Some(Box::new(keelson_kube::flowcontrol::Reader));
        }
        if let Some(mode) = self.audit {
            config.audit = audit(mode, &self.log(&setting.folder));
        }
    }

    fn authentication(&self, setting: &Setting) -> Authentication {
        let everybody: Arc<dyn Authenticator> = Arc::new(Everybody::new());
        if self.proof == Proof::None {
            return Authentication {
                chain: vec![everybody],
                ..Authentication::default()
            };
        }
        let issuer = TokenIssuer::new(&setting.key.private_pem, ISSUER).unwrap();
        let keys = KeySet::new([issuer.verifying_key().clone()]);
        let trust = Arc::new(Trust {
            keys: keys.clone(),
            issuers: vec![ISSUER.to_owned()],
            audiences: vec![ISSUER.to_owned()],
            lookup: true,
        });
        let cache = TokenCache::new(10_000, 0).unwrap();
        let kinds = vec![
            Arc::new(ServiceAccountTokens::legacy(trust.clone())) as _,
            Arc::new(ServiceAccountTokens::bound(trust)) as _,
        ];
        let tokens = Tokens::new(kinds, Some(cache));
        let clients = ClientCertificates::new(&certificates(&setting.authority).unwrap()).unwrap();
        Authentication {
            chain: vec![
                Arc::new(clients),
                tokens.clone(),
                Arc::new(WebSocketTokens(tokens)),
                everybody,
            ],
            audiences: vec![ISSUER.to_owned()],
            issuer: Some(Arc::new(issuer)),
            keys,
            ..Authentication::default()
        }
    }

    fn log(&self, folder: &Path) -> PathBuf {
        folder.join(self.name).join("audit.log")
    }
}

fn audit(mode: Mode, path: &Path) -> Audit {
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";
    let log = LogSettings {
        path: Some(path.to_owned()),
        format: Format::Json,
        mode,
        batching: Batching {
            buffer: 10_000,
            max_events: 400,
            max_wait: Duration::from_millis(100),
            throttle: None,
        },
        truncation: None,
        rotation: Rotation {
            max_bytes: 100 << 20,
            max_days: 0,
            max_files: 1,
            compress: false,
        },
    };
    let settings = AuditSettings {
        policy: Some(Policy::read(policy.as_bytes()).unwrap().0),
        log: Some(log),
        webhook: None,
    };
    Audit::start(settings, Arc::new(SystemClock)).unwrap()
}

/// A server, and whoever asks it.
struct Measured {
    part: &'static Part,
    client: Client,
    token: Option<String>,
    /// CPU time of each round's requests, in µs for each.
    costs: Vec<f64>,
}

impl Measured {
    fn begin(part: &'static Part, identity: &Identity, address: std::net::SocketAddr) -> Measured {
        let maker = Client::connect(&identity.of_nobody(), address, Protocol::Http2, 2, 32);
        fill(&maker, part);
        let token = (part.proof == Proof::Token).then(|| token(&maker));
        let identity = match part.proof {
            Proof::Certificate => identity.of_user(OPERATOR.0, OPERATOR.1),
            Proof::Token | Proof::None => identity.of_nobody(),
        };
        let client = Client::connect(&identity, address, Protocol::Http2, 2, 32);
        let mut measured = Measured {
            part,
            client,
            token,
            costs: Vec::new(),
        };
        measured.round();
        measured.costs.clear();
        measured
    }

    fn round(&mut self) {
        let make = || {
            let mut get = request("GET", OBJECT, JSON, String::new());
            if let Some(token) = &self.token {
                get.headers_mut().insert("authorization", token.parse().unwrap());
            }
            match self.part.proof {
                Proof::None => privileged(get),
                Proof::Token | Proof::Certificate => get,
            }
        };
        let before = server_cpu();
        self.client.run(REQUESTS, &make);
        // What is written later belongs to it.
        std::thread::sleep(Duration::from_millis(if self.part.audit.is_some() { 150 } else { 0 }));
        let used = server_cpu().saturating_sub(before);
        self.costs.push(used.as_secs_f64() * 1e6 / REQUESTS as f64);
    }

    /// By how much a request costs more than the bare one of the same round, in the median.
    fn beyond(&self, bare: &Measured) -> f64 {
        median(
            self.costs
                .iter()
                .zip(&bare.costs)
                .map(|(cost, bare)| cost - bare)
                .collect(),
        )
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A request that every server knows the sender of.
fn privileged(mut request: Request) -> Request {
    request.headers_mut().insert("x-bench", "1".parse().unwrap());
    request
}

fn post(client: &Client, count: usize, make: impl Fn(usize) -> (String, String) + Sync) {
    let next = AtomicUsize::new(0);
    client.run(count as u64, &|| {
        let (path, body) = make(next.fetch_add(1, Ordering::Relaxed));
        privileged(request("POST", &path, JSON, body))
    });
}

/// The object, and where there are roles, bindings of many users, among them those who will ask.
fn fill(client: &Client, part: &Part) {
    let core = "/api/v1/namespaces";
    post(client, 1, |_| {
        let body = r#"{"metadata":{"name":"small"},"data":{"key":"value"}}"#;
        (format!("{core}/default/configmaps"), body.to_owned())
    });
    post(client, 1, |_| {
        let body = r#"{"metadata":{"name":"caller"}}"#;
        (format!("{core}/default/serviceaccounts"), body.to_owned())
    });
    if !part.roles {
        return;
    }
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    post(client, NAMESPACES, |n| {
        (core.to_owned(), format!(r#"{{"metadata":{{"name":"namespace{n}"}}}}"#))
    });
    post(client, ROLES, |n| {
        let rule = |resources: &str| {
            format!(r#"{{"verbs":["get","list","watch"],"apiGroups":[""],"resources":[{resources}]}}"#)
        };
        let rules = [
            rule(&format!(r#""things{n}","services""#)),
            rule(r#""pods","configmaps""#),
        ]
        .join(",");
        let body = format!(r#"{{"metadata":{{"name":"role{n}"}},"rules":[{rules}]}}"#);
        (format!("{RBAC}/clusterroles"), body)
    });
    let binding = |n: usize, subject: &str| {
        let role = format!(
            r#"{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"role{}"}}"#,
            n % ROLES
        );
        format!(r#"{{"metadata":{{"name":"binding{n}"}},"roleRef":{role},"subjects":[{subject}]}}"#)
    };
    let named = |kind: &str, name: String| {
        format!(r#"{{"apiGroup":"rbac.authorization.k8s.io","kind":"{kind}","name":"{name}"}}"#)
    };
    post(client, BINDINGS - 1, |n| {
        let subjects = [
            named("User", format!("user{}", n / 10)),
            named("Group", format!("group{}", n % 500)),
        ]
        .join(",");
        let path = match n % 100 {
            0 => format!("{RBAC}/clusterrolebindings"),
            n => format!("{RBAC}/namespaces/namespace{n}/rolebindings"),
        };
        (path, binding(n, &subjects))
    });
    post(client, 1, |_| {
        let account = r#"{"kind":"ServiceAccount","namespace":"default","name":"caller"}"#;
        let subjects = [named("Group", OPERATOR.1.to_owned()), account.to_owned()].join(",");
        (
            format!("{RBAC}/namespaces/default/rolebindings"),
            binding(BINDINGS, &subjects),
        )
    });
}

/// The token of the service account, as its header has it.
fn token(client: &Client) -> String {
    let path = "/api/v1/namespaces/default/serviceaccounts/caller/token";
    let body = client.body(privileged(request("POST", path, JSON, r#"{"spec":{}}"#.to_owned())));
    let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
    format!("Bearer {}", answer["status"]["token"].as_str().unwrap())
}

/// The CPU time of writing the events of one request to a file, and nothing else, in µs.
fn bare_write(bytes: usize, folder: &Path) -> f64 {
    const WRITES: u32 = 20_000;
    let mut file = File::create(folder.join("bare.log")).unwrap();
    let lines = vec![b'x'; bytes];
    let before = own_cpu();
    (0..WRITES).for_each(|_| file.write_all(&lines).unwrap());
    own_cpu().saturating_sub(before).as_secs_f64() * 1e6 / f64::from(WRITES)
}

fn own_cpu() -> Duration {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let used = schedule.split_whitespace().next().and_then(|used| used.parse().ok());
    Duration::from_nanos(used.unwrap_or_default())
}

fn tell(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Bytes of the two events of a request, by the first ones in a log.
fn event_bytes(log: &Path) -> usize {
    let text = std::fs::read(log).unwrap();
    let lines: Vec<_> = text.split(|byte| *byte == b'\n').take(200).collect();
    2 * lines.iter().map(|line| line.len() + 1).sum::<usize>() / lines.len()
}

fn main() {
    // Parts that are asked for by a piece of their name; all if none is.
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let is_wanted =
        |part: &&Part| part.name == PARTS[0].name || wanted.as_ref().is_none_or(|name| part.name.contains(name));
    let parts: Vec<&'static Part> = PARTS.iter().filter(is_wanted).collect();
    let folder = tempfile::tempdir().unwrap();
    let identity = Identity::create();
    let setting = Arc::new(Setting {
        authority: identity.ca_pem().to_owned(),
        key: KeyPem::create().unwrap(),
        folder: folder.path().to_owned(),
    });
    let started = parts.iter().copied().map(|part| {
        let setting = setting.clone();
        serve_with(&identity, memory(), move |config| part.configure(&setting, config))
    });
    let addresses: Vec<_> = started.collect();
    // Time to make the namespaces.
    std::thread::sleep(Duration::from_secs(3));
    let mut all: Vec<Measured> = parts
        .iter()
        .zip(addresses)
        .map(|(part, address)| Measured::begin(part, &identity, address))
        .collect();
    for _ in 0..ROUNDS {
        all.iter_mut().for_each(Measured::round);
    }
    tell(&format!(
        "{:<34}{:>12}{:>12}",
        "server CPU of a GET, µs", "in all", "over bare"
    ));
    for measured in &all {
        let (whole, beyond) = (median(measured.costs.clone()), measured.beyond(&all[0]));
        tell(&format!("{:<34}{whole:>12.1}{beyond:>12.1}", measured.part.name));
    }
    if let Some(part) = parts.iter().rfind(|part| part.audit.is_some()) {
        let bytes = event_bytes(&part.log(folder.path()));
        let write = bare_write(bytes, folder.path());
        let name = format!("bare write of {bytes} bytes of events");
        tell(&format!("{name:<34}{write:>12.1}"));
    }
}
