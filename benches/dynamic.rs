//! A pod of some 4 KiB as a struct and as a dynamic message over a table that is made at run time.
//!
//! The bar: what is read, written, copied and applied takes at most twice as long as the struct does.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use keelson::api::core::v1::Pod;
use keelson_machinery::apply::{compare, fields_of, read_document};
use keelson_machinery::dynamic::DynamicObject;
use keelson_machinery::object::Object;
use keelson_machinery::reflect::Desc;
use keelson_machinery::{copy, defaults, json};

#[path = "../src/machinery/reflect/dynamic/twin.rs"]
mod twin;

const POD: &[u8] = include_bytes!("../tests/data/roundtrip/core.v1.Pod.json");

/// How deep messages of a pod nest.
const DEPTH: usize = 12;

#[global_allocator]
static ALLOCATOR: keelson::Allocator = keelson::Allocator;

/// How a new object is made, and what it is called.
type Make<'a> = (&'a str, &'a dyn Fn() -> Box<dyn Object>);

fn read(text: &[u8], make: &dyn Fn() -> Box<dyn Object>) -> Box<dyn Object> {
    let mut object = make();
    let problems = json::read(text, object.as_reflect_mut());
    assert_eq!(problems, Ok(vec![]));
    object
}

fn compared(c: &mut Criterion, (name, make): Make<'_>) {
    let object = read(POD, make);
    let other = {
        let mut other = object.clone_object();
        other.meta_mut().labels.insert("other".to_owned(), "yes".to_owned());
        other
    };
    let mut group = c.benchmark_group(format!("pod-{name}"));
    group.bench_function("json-decode", |b| b.iter(|| read(black_box(POD), make)));
    group.bench_function("json-encode", |b| b.iter(|| json::to_vec(black_box(&*object))));
    group.bench_function("clone", |b| b.iter(|| black_box(&*object).clone_object()));
    group.bench_function("copy", |b| {
        b.iter(|| {
            let mut copied = make();
            copy::copy_message(copied.as_reflect_mut(), black_box(object.as_reflect()));
            copied
        })
    });
    group.bench_function("defaults", |b| {
        b.iter(|| {
            let mut object = object.clone_object();
            defaults::apply(object.as_reflect_mut());
            object
        })
    });
    group.bench_function("compare", |b| {
        b.iter(|| compare(black_box(object.as_reflect()), black_box(other.as_reflect())))
    });
    group.bench_function("fields", |b| b.iter(|| fields_of(black_box(object.as_reflect()))));
    group.bench_function("apply-document", |b| {
        b.iter(|| {
            let mut applied = make();
            let document = read_document(black_box(POD), applied.as_reflect_mut());
            (applied, document.is_ok())
        })
    });
    group.finish();
}

fn structs_and_dynamic_messages(c: &mut Criterion) {
    let typed: &dyn Fn() -> Box<dyn Object> = &|| Box::<Pod>::default();
    compared(c, ("struct", typed));
    let Ok(desc) = twin::of(Pod::message_desc(), DEPTH) else {
        return;
    };
    let dynamic = |desc: &Desc| -> Box<dyn Object> { Box::new(DynamicObject::new(desc.clone())) };
    compared(c, ("dynamic", &|| dynamic(&desc)));
}

criterion_group!(benches, structs_and_dynamic_messages);
criterion_main!(benches);
