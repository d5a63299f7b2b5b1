//! The bare limit: a fixed answer of 1 KiB through the listener and an empty actix-web application, over TLS.
//!
//! Whatever the API server does for a GET is measured against this, with the same client.

// clippy wants to see `cfg(test)` before it takes these for tests; a benchmark may stop when its setting is broken.
#[allow(clippy::unwrap_used)]
mod support;

use std::hint::black_box;

use actix_web::{App, HttpResponse, web};
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use http_body_util::Full;
use keelson_net::listener::{ListenerConfig, Serving, Shutdown, bind};
use support::{Client, Identity, Protocol, Request};

const ANSWER: &[u8] = &[b'x'; 1024];

#[allow(clippy::unwrap_used)]
fn serve(identity: &Identity) -> Serving {
    let config = ListenerConfig::new(([127, 0, 0, 1], 0).into(), Some(identity.tls()));
    let application = || {
        App::new().default_service(web::to(|| async {
            HttpResponse::Ok()
                .content_type("application/json")
                .body(Bytes::from_static(ANSWER))
        }))
    };
    bind(config).unwrap().serve(application, Shutdown::new()).unwrap()
}

#[allow(clippy::unwrap_used)]
fn request() -> Request {
    http::Request::get("https://localhost/api/v1/namespaces/default/configmaps/x")
        .header("host", "localhost")
        .header("accept", "application/json")
        .header("user-agent", "keelson-bench/1")
        .body(Full::default())
        .unwrap()
}

fn bare_limit(criterion: &mut Criterion) {
    let identity = Identity::create();
    let serving = serve(&identity);
    for (protocol, name) in [(Protocol::Http2, "http2"), (Protocol::Http1, "http1")] {
        let mut group = criterion.benchmark_group(format!("listener/{name}"));
        group.throughput(Throughput::Elements(1));
        for (lanes, label) in [(1, "one at a time"), (32, "32 at once")] {
            let client = Client::connect(&identity, serving.local_addr(), protocol, 2.min(lanes), lanes);
            let warm_up = client.run(1_000, &request);
            assert_eq!(warm_up.body_bytes, 1_000 * ANSWER.len() as u64);
            group.bench_function(format!("{label}, wall"), |bench| {
                bench.iter_custom(|count| black_box(client.run(count, &request)).wall);
            });
            group.bench_function(format!("{label}, server CPU"), |bench| {
                bench.iter_custom(|count| black_box(client.run(count, &request)).server_cpu);
            });
        }
        group.finish();
    }
}

criterion_group!(benches, bare_limit);
criterion_main!(benches);
