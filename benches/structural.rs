//! Custom resources: what a schema costs when a definition comes, and what an object costs that is read and validated
//! by it.
//!
//! The bars: a schema of fifty fields takes at most a millisecond from its text to a table and a validator, one of 1.2
//! MB at most 25; a rule takes at most 1.5 µs for each of a thousand items.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::json;
use keelson_machinery::object::{Gvk, Object};
use keelson_machinery::reflect::Desc;
use keelson_machinery::structural::{
    Compile, Definition, JsonSchema, Requirements, Subject, Validator, check, compile,
};

#[global_allocator]
static ALLOCATOR: keelson::Allocator = keelson::Allocator;

const ITEMS: usize = 1000;

fn gvk() -> Gvk {
    Gvk::new("example.com", "v1", "Thing")
}

/// Objects of objects with texts, numbers and lists, so many fields all in all.
fn schema_of(fields: usize) -> String {
    let mut text = r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"#.to_owned();
    for n in 0..fields / 5 {
        let comma = if n == 0 { "" } else { "," };
        let _ = write!(
            text,
            r#"{comma}"part{n}":{{"type":"object","description":"What part {n} of the thing is made of, and how.",
            "required":["name"],"properties":{{"name":{{"type":"string","maxLength":63,"pattern":"^[a-z0-9-]+$"}},
            "size":{{"type":"integer","format":"int32","minimum":1,"default":1}},
            "mode":{{"type":"string","enum":["fast","slow"]}},
            "tags":{{"type":"array","items":{{"type":"string"}},"x-kubernetes-list-type":"set"}}}}}}"#
        );
    }
    text + "}}}}"
}

/// A rule over the items of a list.
fn schema_with_rule() -> &'static str {
    r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"items":{"type":"array","maxItems":1000,
    "items":{"type":"object","required":["name","size"],"properties":{"name":{"type":"string","maxLength":63},
    "size":{"type":"integer"}}},
    "x-kubernetes-validations":[{"rule":"self.all(x, x.size > 0 && x.name.startsWith('a'))"}]}}}}}"#
}

fn object_with_items() -> String {
    let items = (0..ITEMS).map(|n| format!(r#"{{"name":"a{n}","size":{}}}"#, n + 1));
    let items: Vec<String> = items.collect();
    format!(
        r#"{{"metadata":{{"name":"a"}},"spec":{{"items":[{}]}}}}"#,
        items.join(",")
    )
}

struct Kind {
    desc: Desc,
    validator: Validator,
}

fn kind(text: &str) -> Option<Kind> {
    let schema = JsonSchema::parse(text.as_bytes()).ok()?;
    let desc = compile(&Compile {
        gvk: gvk(),
        schema: Some(&schema),
        preserve_unknown_fields: false,
    });
    Some(Kind {
        desc: desc.ok()?,
        validator: Validator::new(Arc::new(schema), &gvk()),
    })
}

fn read(desc: &Desc, text: &str) -> Box<dyn Object> {
    let mut object = desc.new_object();
    let problems = json::read(text.as_bytes(), object.as_reflect_mut());
    assert_eq!(problems, Ok(vec![]));
    object
}

fn schemas(c: &mut Criterion) {
    let mut group = c.benchmark_group("schema");
    for (name, fields) in [("50-fields", 50), ("200-fields", 200), ("1.2-mb", 12_500)] {
        let text = schema_of(fields);
        group.bench_function(format!("{name}-made"), |b| b.iter(|| kind(black_box(&text)).is_some()));
        group.bench_function(format!("{name}-checked"), |b| {
            b.iter(|| {
                let schema = JsonSchema::parse(black_box(text.as_bytes()));
                schema.is_ok_and(|schema| {
                    let definition = Definition {
                        preserve_unknown_fields: false,
                        schemas: &[&schema],
                    };
                    let subject = Subject {
                        schema: &schema,
                        path: Path::new("schema"),
                        has_status: true,
                        unchanged: false,
                        requirements: &Requirements::of(&definition, None),
                    };
                    check(&subject).is_empty()
                })
            })
        });
    }
    group.finish();
}

fn objects(c: &mut Criterion) {
    let mut group = c.benchmark_group("object");
    let text = object_with_items();
    let Some(kind) = kind(schema_with_rule()) else { return };
    let object = read(&kind.desc, &text);
    group.bench_function("1000-items-read", |b| b.iter(|| read(&kind.desc, black_box(&text))));
    group.bench_function("1000-items-values", |b| {
        b.iter(|| {
            let mut errors = ErrorList::new();
            kind.validator.values(black_box(object.as_reflect()), None, &mut errors);
            errors
        })
    });
    group.bench_function("1000-items-rule", |b| {
        b.iter(|| {
            let (mut errors, mut warnings) = (ErrorList::new(), Vec::new());
            let object = black_box(object.as_reflect());
            kind.validator.rules(object, None, &mut errors, &mut warnings);
            assert!(errors.is_empty());
        })
    });
    group.finish();
}

criterion_group!(benches, schemas, objects);
criterion_main!(benches);
