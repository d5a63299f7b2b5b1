//! Codecs on a pod of some 3 KiB, beside serde_json's parsing and printing of the same document as a tree.
//!
//! The bars: JSON in and out takes at most 0.75 of what serde_json takes for both, protobuf at most 0.6, a strategic
//! merge patch of the object at most 3 times that.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use keelson::api::core::v1::Pod;
use keelson_machinery::patch::strategic;
use keelson_machinery::reflect::Reflect;
use keelson_machinery::{json, protobuf, yaml};

const POD: &[u8] = include_bytes!("../tests/data/roundtrip/core.v1.Pod.json");

#[global_allocator]
static ALLOCATOR: keelson::Allocator = keelson::Allocator;

fn pod() -> Pod {
    let mut pod = Pod::default();
    let problems = json::read(POD, &mut pod);
    assert_eq!(problems, Ok(vec![]));
    pod
}

fn read_json(text: &[u8]) -> Pod {
    let mut pod = Pod::default();
    let _ = black_box(json::read(text, &mut pod));
    pod
}

fn read_protobuf(bytes: &[u8]) -> Pod {
    let mut pod = Pod::default();
    if let Ok(envelope) = protobuf::decode_envelope(bytes) {
        let _ = black_box(protobuf::read_message(envelope.raw, &mut pod));
    }
    pod
}

/// What a client sends to change an image, a variable and a label.
const PATCH: &[u8] =
    br#"{"metadata":{"labels":{"patched":"yes"}},"spec":{"$setElementOrder/containers":[{"name":"web"}],
"containers":[{"name":"web","image":"i:2","env":[{"name":"MODE","value":"2"},{"name":"NEW","value":"3"}]}],
"tolerations":[{"key":"a","operator":"Exists"}]}}"#;

/// From an object to the patched object, as a PATCH request does it.
fn patch(pod: &Pod) -> Pod {
    let document = json::to_vec(pod);
    let mut patched = Pod::default();
    if let Ok((text, _)) = strategic::apply(&document, PATCH, pod.desc(), true) {
        let _ = black_box(json::restore(&text, &mut patched));
    }
    patched
}

fn codecs(c: &mut Criterion) {
    let pod = pod();
    let bytes = protobuf::encode(&pod);
    let text = yaml::from_json(POD).unwrap_or_default();

    let mut group = c.benchmark_group("pod");
    group.bench_function("json-decode", |b| b.iter(|| read_json(black_box(POD))));
    group.bench_function("json-encode", |b| b.iter(|| json::to_vec(black_box(&pod))));
    group.bench_function("json-both", |b| b.iter(|| json::to_vec(&read_json(black_box(POD)))));
    group.bench_function("protobuf-decode", |b| b.iter(|| read_protobuf(black_box(&bytes))));
    group.bench_function("protobuf-encode", |b| b.iter(|| protobuf::encode(black_box(&pod))));
    group.bench_function("protobuf-both", |b| {
        b.iter(|| protobuf::encode(&read_protobuf(black_box(&bytes))))
    });
    group.bench_function("strategic-patch", |b| b.iter(|| patch(black_box(&pod))));
    group.bench_function("yaml-to-json", |b| b.iter(|| yaml::to_json(black_box(&text))));
    group.bench_function("serde-json-value-both", |b| {
        b.iter(|| serde_json::from_slice::<serde_json::Value>(black_box(POD)).map(|v| v.to_string()))
    });
    group.finish();
}

criterion_group!(benches, codecs);
criterion_main!(benches);
