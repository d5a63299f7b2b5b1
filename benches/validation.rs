//! Validation: what the rules of a pod of some 3 KiB cost, and a service that is created, with the address that it
//! gets, beside a configmap of the same size, which has neither.
//!
//! The bars: the rules of the pod take at most 12 µs, creating a service at most 150 µs of the server's CPU.

mod support;

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use criterion::{Criterion, criterion_group, criterion_main};
use keelson::api::core::v1::Pod;
use keelson_kube::{CodeOptions, ServiceOptions, bootstrap};
use keelson_machinery::field::Path;
use keelson_machinery::json;
use keelson_machinery::validation::declarative;
use support::client::{Client, Identity, Protocol};
use support::{measure, memory, request, serve_with};

/// A pod as a deployment makes it: two containers, probes, volumes, resources, environment.
const POD: &str = include_str!("data/pod.json");
const NAMESPACE: &str = "/api/v1/namespaces/default";
/// A million addresses.
const RANGE: &str = "10.0.0.0/12";

static NEXT: AtomicU64 = AtomicU64::new(0);

fn rules(criterion: &mut Criterion) {
    let mut pod = Pod::default();
    assert_eq!(json::read(POD.as_bytes(), &mut pod), Ok(vec![]));
    assert!(keelson_kube::new_pod_faults(&pod).is_empty());
    let mut group = criterion.benchmark_group("rules of a pod");
    group.bench_function("all", |bencher| {
        bencher.iter(|| {
            let pod = black_box(&pod);
            let declared = declarative::validate(pod, None, &Path::root());
            (declared, keelson_kube::new_pod_faults(pod))
        });
    });
    group.bench_function("of its definition", |bencher| {
        bencher.iter(|| declarative::validate(black_box(&pod), None, &Path::root()));
    });
    group.bench_function("of code", |bencher| {
        bencher.iter(|| keelson_kube::new_pod_faults(black_box(&pod)));
    });
    group.finish();
}

fn services(criterion: &mut Criterion) {
    let identity = Identity::create();
    let address = serve_with(&identity, memory(), |config| {
        let services = ServiceOptions::default();
        let range = (RANGE.to_owned(), services.ranges[0]);
        config.resources.code = keelson_kube::code(&CodeOptions {
            services,
            ..CodeOptions::default()
        });
        config.resources.code.merge(keelson_extensions::code());
        config.hooks = bootstrap::hooks(&bootstrap::Setting {
            service_ranges: vec![range],
            ..Default::default()
        });
    });
    // Until its namespaces and its range are there.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let client = Client::connect(&identity, address, Protocol::Http2, 2, 16);
    let make = |plural: &'static str, content: &'static str| {
        move || {
            let index = NEXT.fetch_add(1, Ordering::Relaxed);
            let body = format!(r#"{{"metadata":{{"name":"s-{index:09}"}},{content}}}"#);
            request("POST", &format!("{NAMESPACE}/{plural}"), "application/json", body)
        }
    };
    let service = make("services", r#""spec":{"selector":{"app":"a"},"ports":[{"port":80}]}"#);
    let other = make("configmaps", r#""data":{"selector":"app=a","ports":"80, 443, 8080"}"#);
    let mut group = criterion.benchmark_group("create");
    group.sample_size(10);
    measure(&mut group, "service", &client, &service);
    measure(&mut group, "configmap", &client, &other);
    group.finish();
}

criterion_group!(benches, rules, services);
criterion_main!(benches);
