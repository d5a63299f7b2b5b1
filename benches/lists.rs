//! Lists of 10 000 pods through the whole server, each beside streaming as many fixed bytes; and lists whose answer is
//! a small part of the collection, in a collection and in one ten times as large.
//!
//! The bars: a whole list reaches 65 % of the throughput of the fixed bytes; ten times the collection takes at most 1.5
//! times the time of the same answer.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::client::{Client, Identity, Protocol, Request};
use support::{measure, memory, request, serve, serve_fixed};

const POD: &str = include_str!("../tests/data/roundtrip/core.v1.Pod.json");
const PODS: &str = "/api/v1/namespaces/default/pods";
const ALL: &str = "/api/v1/pods";
const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const SIZES: [usize; 2] = [1_000, 10_000];
/// Pods of the label `shard=one`, and those of one node, in a collection of any size.
const CHOSEN: usize = 100;
const ON_NODE: usize = 10;

/// A pod like those of a cluster, some 3 KiB. Node and label are spread over the collection.
fn pod(index: usize, size: usize) -> serde_json::Value {
    let mut pod: serde_json::Value = serde_json::from_str(POD).unwrap_or_default();
    pod["metadata"] = serde_json::json!({
        "name": format!("pod-{index:05}"),
        "labels": {"app": "web", "shard": if index.is_multiple_of(size / CHOSEN) { "one" } else { "other" }},
    });
    pod["spec"]["nodeName"] = format!("node-{:04}", index % (size / ON_NODE)).into();
    pod
}

fn fill(client: &Client, size: usize) {
    let next = AtomicUsize::new(0);
    let make = || {
        let pod = pod(next.fetch_add(1, Ordering::Relaxed), size);
        request("POST", PODS, JSON, pod.to_string())
    };
    client.run(size as u64, &make);
}

fn get(path: &'static str, accept: &'static str, gzip: bool) -> impl Fn() -> Request + Sync {
    move || {
        let mut request = request("GET", path, accept, String::new());
        if gzip {
            request
                .headers_mut()
                .insert("accept-encoding", http::HeaderValue::from_static("gzip"));
        }
        request
    }
}

fn lists(criterion: &mut Criterion) {
    let identity = Identity::create();
    let servers = SIZES.map(|size| {
        let address = serve(&identity, memory());
        fill(&Client::connect(&identity, address, Protocol::Http2, 2, 32), size);
        (size, address)
    });
    for (name, accept, gzip) in [
        ("10 000 pods JSON", JSON, false),
        ("10 000 pods protobuf", PROTOBUF, false),
        ("10 000 pods JSON gzip", JSON, true),
    ] {
        let make = get(ALL, accept, gzip);
        let server = Client::connect(&identity, servers[1].1, Protocol::Http2, 1, 1);
        let bytes = server.run(1, &make).body_bytes;
        let (fixed, _serving) = serve_fixed(&identity, usize::try_from(bytes).unwrap_or_default());
        let limit = Client::connect(&identity, fixed, Protocol::Http2, 1, 1);
        let mut group = criterion.benchmark_group(name);
        group
            .throughput(Throughput::Bytes(bytes))
            .sample_size(10)
            .measurement_time(Duration::from_secs(4));
        measure(&mut group, "server", &server, &make);
        measure(&mut group, "bare limit", &limit, &make);
        group.finish();
    }
    for (name, path) in [
        ("limit 500", "/api/v1/pods?limit=500"),
        ("label, 100 pods", "/api/v1/pods?labelSelector=shard%3Done"),
        (
            "spec.nodeName, 10 pods",
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-0007",
        ),
    ] {
        let mut group = criterion.benchmark_group(name);
        for (size, address) in servers {
            let client = Client::connect(&identity, address, Protocol::Http2, 1, 1);
            measure(&mut group, &format!("of {size}"), &client, &get(path, JSON, false));
        }
        group.finish();
    }
}

criterion_group!(benches, lists);
criterion_main!(benches);
