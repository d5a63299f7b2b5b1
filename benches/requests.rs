//! GET and LIST through the whole server, each beside its bare limit in the same run: the same number of bytes, fixed,
//! through the same listener, asked for by the same client.
//!
//! The bar: a GET costs at most twice its limit (`server CPU`).

mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::client::{Client, Identity, Protocol};
use support::{measure, memory, request, serve, serve_fixed};

const NAMESPACE: &str = "/api/v1/namespaces/default/configmaps";
const LISTED: usize = 500;
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn fill(client: &Client) {
    let value = "v".repeat(800);
    for index in 0..LISTED {
        let body = format!(r#"{{"metadata":{{"name":"cm-{index:04}"}},"data":{{"key":"{value}"}}}}"#);
        client.run(1, &|| request("POST", NAMESPACE, "application/json", body.clone()));
    }
}

fn requests(criterion: &mut Criterion) {
    let identity = Identity::create();
    let address = serve(&identity, memory());
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
