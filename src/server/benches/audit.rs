//! What the audit of a request costs the server: nothing recorded, ruled out by a policy, and recorded at level Metadata,
//! two events for each request.

#![allow(clippy::unwrap_used, reason = "what fails here stops the benchmark, as it should")]

mod support;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use http_body_util::Full;
use keelson_server::audit::sink::{Batching, Format, LogSettings, Mode, Rotation};
use keelson_server::audit::{Audit, AuditSettings, Policy};
use keelson_server::authn::Authentication;
use keelson_server::authn::token_file::StaticTokens;
use keelson_server::authn::tokens::Tokens;
use keelson_server::authz::{AlwaysAllow, Authorization};
use keelson_server::env::SystemClock;
use keelson_server::listener::ListenerConfig;
use keelson_server::server::{Config, start};
use keelson_server::user::User;
use keelson_storage::{HistoryLimits, StoreConfig};
use support::{Client, Identity, Protocol, Request};

const RULES: [(&str, Option<&str>); 3] = [
    ("no policy", None),
    ("ruled out", Some("[{level: Metadata, users: [ann]}]")),
    ("metadata", Some("[{level: None, users: [ann]}, {level: Metadata}]")),
];

fn audit(rules: Option<&str>, mode: Mode, folder: &Path) -> Audit {
    let Some(rules) = rules else {
        return Audit::default();
    };
    let policy = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}\n");
    let log = LogSettings {
        path: Some(folder.join("audit.log")),
        format: Format::Json,
        mode,
        batching: Batching {
            buffer: 100_000,
            max_events: 400,
            max_wait: Duration::from_millis(100),
            throttle: None,
        },
        truncation: None,
        rotation: Rotation {
            max_bytes: 100 << 20,
            max_days: 0,
            max_files: 2,
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

/// Starts a server that ends with the process.
fn serve(identity: &Identity, audit: Audit) -> SocketAddr {
    let (started, is_started) = std::sync::mpsc::channel();
    let listener = ListenerConfig::new(([127, 0, 0, 1], 0).into(), Some(identity.tls()));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let history = HistoryLimits::default();
            let store = keelson_storage::open(StoreConfig::Memory { history }).await.unwrap();
            let config = Config {
                authentication: Authentication {
                    chain: vec![Tokens::new(vec![Arc::new(tokens())], None)],
                    ..Authentication::default()
                },
                authorization: Authorization::new(vec![Arc::new(AlwaysAllow)]),
                audit,
                ..Config::new(vec![&keelson_codegen_sample::api::SCHEME], store, listener)
            };
            let running = start(config).unwrap();
            started.send(running.local_addr()).unwrap();
            std::future::pending::<()>().await;
        });
    });
    is_started.recv().unwrap()
}

fn tokens() -> StaticTokens {
    let user = User {
        name: "bob".to_owned(),
        uid: "b".to_owned(),
        groups: vec!["devs".to_owned()],
        ..User::default()
    };
    StaticTokens::new([("token".to_owned(), user)])
}

fn request() -> Request {
    http::Request::get("https://localhost/version")
        .header("host", "localhost")
        .header("user-agent", "keelson-bench/1")
        .header("authorization", "Bearer token")
        .body(Full::default())
        .unwrap()
}

fn audited(criterion: &mut Criterion) {
    let identity = Identity::create();
    let settings = [
        (Mode::Batch, Protocol::Http2, "http2"),
        (Mode::Blocking, Protocol::Http2, "http2"),
        (Mode::Blocking, Protocol::Http1, "http1"),
    ];
    for (mode, protocol, label) in settings {
        let mut group = criterion.benchmark_group(format!("audit/{}/{label}", mode.name()));
        for (name, rules) in RULES {
            let folder = tempfile::tempdir().unwrap();
            let address = serve(&identity, audit(rules, mode, folder.path()));
            let client = Client::connect(&identity, address, protocol, 2, 32);
            assert!(client.run(1_000, &request).body_bytes > 0);
            group.bench_function(format!("{name}, wall"), |bench| {
                bench.iter_custom(|count| client.run(count, &request).wall);
            });
            group.bench_function(format!("{name}, server CPU"), |bench| {
                bench.iter_custom(|count| client.run(count, &request).server_cpu);
            });
        }
        group.finish();
    }
}

criterion_group!(benches, audited);
criterion_main!(benches);
