//! GET and LIST through the whole server, each beside its bare limit in the same run: the same number of bytes, fixed,
//! through the same listener, asked for by the same client.
//!
//! The bar: a GET costs at most twice its limit (`server CPU`).

// clippy wants to see `cfg(test)` before it takes these for tests; a benchmark may stop when its setting is broken.
#[allow(clippy::unwrap_used)]
#[path = "../src/server/benches/support/mod.rs"]
mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;

use actix_web::{App, HttpResponse, web};
use bytes::Bytes;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use http_body_util::Full;
use keelson::api;
use keelson_server::admission::Admission;
use keelson_server::authn::Authentication;
use keelson_server::authn::certificate::ClientCertificates;
use keelson_server::authz::{Authorization, PrivilegedGroup};
use keelson_server::env::{SystemClock, SystemEntropy};
use keelson_server::listener::{ListenerConfig, Shutdown, bind};
use keelson_server::server::{Config, start};
use keelson_server::tls::certificates;
use keelson_storage::{HistoryLimits, StoreConfig};
use support::{Client, Identity, Protocol, Request};

const NAMESPACE: &str = "/api/v1/namespaces/default/configmaps";
const LISTED: usize = 500;
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The whole server, on a thread of its own.
#[allow(clippy::unwrap_used)]
fn serve(identity: &Identity) -> SocketAddr {
    let (ca, tls) = (identity.ca_pem().to_owned(), identity.tls());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let authority = ClientCertificates::new(&certificates(&ca).unwrap()).unwrap();
            let config = Config {
                schemes: vec![&api::SCHEME],
                code: keelson::kube::code(),
                cells: keelson::kube::cells(),
                store: keelson_storage::open(StoreConfig::Memory {
                    history: HistoryLimits::default(),
                })
                .await
                .unwrap(),
                prefix: "/registry".into(),
                runtime: Default::default(),
                authentication: Authentication {
                    chain: vec![Arc::new(authority)],
                    ..Authentication::default()
                },
                authorization: Authorization {
                    chain: vec![Arc::new(PrivilegedGroup)],
                },
                admission: Admission::default(),
                clock: Arc::new(SystemClock),
                entropy: Arc::new(SystemEntropy),
                version: keelson_server::version::Version::default(),
                hooks: keelson::kube::hooks(),
                listener: ListenerConfig::new(([127, 0, 0, 1], 0).into(), Some(tls)),
                advertise: String::new(),
                cache_bytes: 64 << 20,
            };
            let running = start(config).unwrap();
            sender.send(running.local_addr()).unwrap();
            std::future::pending::<()>().await;
        });
    });
    receiver.recv().unwrap()
}

/// A fixed answer of `bytes` bytes through the same listener.
#[allow(clippy::unwrap_used)]
fn serve_fixed(identity: &Identity, bytes: usize) -> (SocketAddr, keelson_server::listener::Serving) {
    let config = ListenerConfig::new(([127, 0, 0, 1], 0).into(), Some(identity.tls()));
    let body = Bytes::from(vec![b'x'; bytes]);
    let application = move || {
        let body = body.clone();
        App::new().default_service(web::to(move || {
            let body = body.clone();
            async move { HttpResponse::Ok().content_type("application/json").body(body) }
        }))
    };
    let serving = bind(config).unwrap().serve(application, Shutdown::new()).unwrap();
    (serving.local_addr(), serving)
}

#[allow(clippy::unwrap_used)]
fn request(method: &str, path: &str, accept: &str, body: String) -> Request {
    http::Request::builder()
        .method(method)
        .uri(format!("https://localhost{path}"))
        .header("host", "localhost")
        .header("accept", accept)
        .header("content-type", "application/json")
        .header("user-agent", "keelson-bench/1")
        .body(Full::from(body))
        .unwrap()
}

fn fill(client: &Client) {
    let value = "v".repeat(800);
    for index in 0..LISTED {
        let body = format!(r#"{{"metadata":{{"name":"cm-{index:04}"}},"data":{{"key":"{value}"}}}}"#);
        client.run(1, &|| request("POST", NAMESPACE, "application/json", body.clone()));
    }
}

fn measure(
    group: &mut BenchmarkGroup<'_, criterion::measurement::WallTime>,
    name: &str,
    client: &Client,
    make: &(impl Fn() -> Request + Sync),
) {
    group.bench_function(format!("{name}, server CPU"), |bench| {
        bench.iter_custom(|count| client.run(count, make).server_cpu);
    });
    group.bench_function(format!("{name}, wall"), |bench| {
        bench.iter_custom(|count| client.run(count, make).wall)
    });
}

fn requests(criterion: &mut Criterion) {
    let identity = Identity::create();
    let address = serve(&identity);
    fill(&Client::connect(&identity, address, Protocol::Http2, 2, 32));
    let one = format!("{NAMESPACE}/cm-0001");
    let cases = [
        ("get 1 KiB JSON", Protocol::Http2, one.as_str(), "application/json"),
        (
            "get 1 KiB JSON by HTTP 1.1",
            Protocol::Http1,
            one.as_str(),
            "application/json",
        ),
        ("get 1 KiB protobuf", Protocol::Http2, one.as_str(), PROTOBUF),
        ("list 500 JSON", Protocol::Http2, NAMESPACE, "application/json"),
        ("list 500 protobuf", Protocol::Http2, NAMESPACE, PROTOBUF),
    ];
    for (name, protocol, path, accept) in cases {
        let server = Client::connect(&identity, address, protocol, 2, 32);
        let make = || request("GET", path, accept, String::new());
        let bytes = server.run(1, &make).body_bytes;
        assert!(bytes > 800, "{name}: {bytes} bytes");
        let (fixed, _serving) = serve_fixed(&identity, usize::try_from(bytes).unwrap_or_default());
        let limit = Client::connect(&identity, fixed, protocol, 2, 32);
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(bytes));
        measure(&mut group, "server", &server, &make);
        measure(&mut group, "bare limit", &limit, &make);
        group.finish();
    }
}

criterion_group!(benches, requests);
criterion_main!(benches);
