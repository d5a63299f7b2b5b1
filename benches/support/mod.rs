//! Servers under measurement: the whole one, and its bare limit, the same number of bytes through the same listener.

#![allow(clippy::unwrap_used, reason = "what fails here stops the benchmark, as it should")]
#![allow(dead_code, reason = "each benchmark uses a part of it")]

#[path = "../../src/server/benches/support/mod.rs"]
pub mod client;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;

use actix_web::{App, HttpResponse, web};
use bytes::Bytes;
use criterion::BenchmarkGroup;
use http_body_util::Full;
use keelson::api;
use keelson_access::authn::Authentication;
use keelson_access::authn::certificate::ClientCertificates;
use keelson_access::authz::{Authorization, PrivilegedGroup};
use keelson_net::listener::{ListenerConfig, Shutdown, bind};
use keelson_net::tls::certificates;
use keelson_server::server::{Config, start};
use keelson_storage::{HistoryLimits, StoreConfig};

use client::{Client, Identity, Request};

#[global_allocator]
static ALLOCATOR: keelson::Allocator = keelson::Allocator;

/// A store in memory with the usual window of history.
pub fn memory() -> StoreConfig {
    StoreConfig::Memory {
        history: HistoryLimits::default(),
    }
}

/// The whole server, on a thread of its own, and time for it to make its namespaces, in which nothing can be created
/// before they are there.
pub fn serve(identity: &Identity, store: StoreConfig) -> SocketAddr {
    let address = serve_with(identity, store, |_| ());
    std::thread::sleep(std::time::Duration::from_secs(2));
    address
}

/// Likewise, changed in some respect, and without waiting for anything but its listener.
pub fn serve_with(
    identity: &Identity,
    store: StoreConfig,
    change: impl FnOnce(&mut Config) + Send + 'static,
) -> SocketAddr {
    let (ca, tls) = (identity.ca_pem().to_owned(), identity.tls());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let authority = ClientCertificates::new(&certificates(&ca).unwrap()).unwrap();
            let store = keelson_storage::open(store).await.unwrap();
            let listener = ListenerConfig::new(([127, 0, 0, 1], 0).into(), Some(tls));
            let mut config = Config::new(vec![&api::SCHEME], store, listener);
            config.resources.code = keelson_kube::code(&keelson_kube::CodeOptions::default());
            config.resources.code.merge(keelson_extensions::code());
            config.resources.admission = keelson_kube::admission::chain();
            config.resources.known_versions = keelson_kube::KNOWN_VERSIONS;
            config.access.authentication = Authentication {
                chain: vec![Arc::new(authority)],
                ..Authentication::default()
            };
            config.access.authorization = Authorization::new(vec![Arc::new(PrivilegedGroup)]);
            config.hooks = keelson_kube::bootstrap::hooks(&Default::default());
            change(&mut config);
            let running = start(config).unwrap();
            sender.send(running.local_addr()).unwrap();
            std::future::pending::<()>().await;
        });
    });
    receiver.recv().unwrap()
}

/// A fixed answer of `bytes` bytes through the same listener.
pub fn serve_fixed(identity: &Identity, bytes: usize) -> (SocketAddr, keelson_net::listener::Serving) {
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

/// A request of the measuring client.
pub fn request(method: &str, path: &str, accept: &str, body: String) -> Request {
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

/// Measures requests by the CPU time of the server and by the clock.
pub fn measure(
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
