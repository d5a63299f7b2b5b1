//! Server-side apply of a Deployment of some 3 KiB, beside serde_json's parsing and printing of the same document as a
//! tree.
//!
//! The bars: an apply that changes nothing takes at most 3 times what serde_json takes for both, one that changes
//! something at most 6 times. Timed is all that machinery does for a request: reading document and owners, merging,
//! comparing, and writing the owners.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use keelson::api::apps::v1::Deployment;
use keelson_machinery::apply::{Apply, read_document};
use keelson_machinery::defaults;
use keelson_machinery::fieldset::FieldSet;
use keelson_machinery::json;
use keelson_machinery::managedfields::{Change, Managed, VersionError, Versions, Writer, track};
use keelson_machinery::object::Object;
use keelson_machinery::reflect::Reflect;
use keelson_machinery::time::Time;

const DOCUMENT: &str = include_str!("data/deployment.json");

#[global_allocator]
static ALLOCATOR: keelson::Allocator = keelson::Allocator;

/// All owners speak of one version.
struct OneVersion;

impl Versions for OneVersion {
    fn knows(&self, api_version: &str) -> bool {
        api_version == "apps/v1"
    }
    fn convert(&self, _: &dyn Reflect, version: &str) -> Result<Box<dyn Object>, VersionError> {
        Err(VersionError::Unknown(format!("there is no {version}")))
    }
}

fn writer(manager: &str, subresource: &str) -> Writer {
    Writer {
        manager: manager.to_owned(),
        api_version: "apps/v1".to_owned(),
        subresource: subresource.to_owned(),
        now: Some(Time::from_unix(1_700_000_000, 0)),
    }
}

/// An apply of `document` to `live`. Returns whether it changed something.
fn apply(live: &Deployment, document: &str) -> Option<(Deployment, bool)> {
    json::validate(document.as_bytes()).ok()?;
    let named = json::type_meta(document.as_bytes()).ok()?;
    black_box(&named);
    let mut applied = Deployment::default();
    let document = read_document(document.as_bytes(), &mut applied).ok()?;
    let apply = Apply {
        writer: &writer("kubectl", ""),
        live,
        applied: &applied,
        document: &document,
        force: false,
        ignored: &FieldSet::of_fields(&["status"]),
        versions: &OneVersion,
    };
    if apply.is_noop(&live.metadata.managed_fields) {
        return Some((live.clone(), false));
    }
    let mut managed = Managed::read(&live.metadata.managed_fields).ok()?;
    let mut target = live.clone();
    let changed = apply.run(&mut managed, &mut target).ok()?;
    if changed {
        defaults::apply(&mut target);
    }
    target.metadata.managed_fields = managed.write();
    Some((target, changed))
}

/// The object as it is when its document was applied and a controller has written its status.
fn live() -> Option<Deployment> {
    let (mut live, _) = apply(&Deployment::default(), DOCUMENT)?;
    let before = live.clone();
    live.status.replicas = 3;
    live.status.ready_replicas = 3;
    live.status.observed_generation = 1;
    let mut managed = Managed::read(&live.metadata.managed_fields).ok()?;
    let change = Change {
        old: &before,
        new: &live,
        ignored: &FieldSet::of_fields(&["spec"]),
        versions: &OneVersion,
    };
    track(&mut managed, change, &writer("kube-controller-manager", "status")).ok()?;
    live.metadata.managed_fields = managed.write();
    Some(live)
}

fn applies(c: &mut Criterion) {
    let live = live().unwrap_or_default();
    let other = DOCUMENT
        .replace("web:1.4.2", "web:1.4.3")
        .replace(r#","periodSeconds":7"#, "");
    assert_eq!(apply(&live, DOCUMENT).map(|(_, changed)| changed), Some(false));
    assert_eq!(apply(&live, &other).map(|(_, changed)| changed), Some(true));

    let mut group = c.benchmark_group("deployment");
    group.bench_function("apply-unchanged", |b| b.iter(|| apply(black_box(&live), DOCUMENT)));
    group.bench_function("apply-changing", |b| b.iter(|| apply(black_box(&live), &other)));
    group.bench_function("serde-json-value-both", |b| {
        b.iter(|| serde_json::from_str::<serde_json::Value>(black_box(DOCUMENT)).map(|v| v.to_string()))
    });
    group.finish();
}

criterion_group!(benches, applies);
criterion_main!(benches);
