//! The published samples of every kind that exists here survive JSON → object → protobuf → object → JSON, and their
//! protobuf form, byte for byte, is ours.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test, as it should")]

mod facts;
#[path = "../src/machinery/reflect/dynamic/twin.rs"]
mod twin;

use std::collections::BTreeSet;
use std::path::Path;

use facts::facts;
use keelson_machinery::meta::v1::WatchEvent;
use keelson_machinery::object::{Gvk, Kind};
use keelson_machinery::scheme::Scheme;
use keelson_machinery::{equality, json, protobuf};
use serde_json::Value;

/// A kind and how to make an empty object of it.
type Sample = (Gvk, Box<dyn Fn() -> Box<dyn Kind>>);

/// All kinds of the library and of the built-in groups.
fn kinds() -> Vec<Sample> {
    let schemes: [&'static Scheme; 2] = [&keelson_machinery::SCHEME, &keelson::api::SCHEME];
    let mut all: Vec<Sample> = Vec::new();
    for scheme in schemes {
        for t in scheme.types {
            all.push((Gvk::new_static(t.group, t.version, t.kind), Box::new(|| t.new_kind())));
        }
        for k in scheme.groups.iter().flat_map(|g| g.versions).flat_map(|v| v.kinds) {
            all.push((k.gvk(), Box::new(|| k.new_object())));
        }
    }
    all
}

fn canonical(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// Name of a kind's sample. The samples call the legacy group core, and have the options of requests there.
fn stem([group, version, kind]: [&str; 3]) -> String {
    let legacy = group.is_empty() || group == "meta.k8s.io";
    let group = if legacy { "core" } else { group };
    format!("{group}.{version}.{kind}")
}

/// What is wrong with one sample; `None`: nothing.
fn check(folder: &Path, gvk: &Gvk, make: &dyn Fn() -> Box<dyn Kind>) -> Option<String> {
    let stem = folder.join(stem([&gvk.group, &gvk.version, &gvk.kind]));
    let mut sample = canonical(&std::fs::read(stem.with_added_extension("json")).ok()?);
    // The server says what each claim is; the library that made the samples does not.
    if let Some(claims) = sample
        .pointer_mut("/spec/volumeClaimTemplates")
        .and_then(Value::as_array_mut)
    {
        for claim in claims.iter_mut().filter_map(Value::as_object_mut) {
            let rest = std::mem::take(claim);
            claim.insert("kind".into(), "PersistentVolumeClaim".into());
            claim.insert("apiVersion".into(), "v1".into());
            claim.extend(rest);
        }
    }
    let bytes = std::fs::read(stem.with_added_extension("pb")).ok()?;
    // Without the indentation, which raw fields would keep.
    let text = sample.to_string();
    let api_version = sample["apiVersion"].as_str().unwrap_or_default().to_owned();
    let write = |object: &dyn Kind| {
        let mut out = Vec::new();
        json::write_kind_as(object.as_reflect(), &api_version, &gvk.kind, &mut out);
        // Read and written again: the escapes of Go's encoder are not those of this one.
        serde_json::from_slice::<serde_json::Value>(&out).unwrap().to_string()
    };

    let mut object = make();
    let problems = json::read(text.as_bytes(), object.as_reflect_mut()).unwrap();
    if !problems.is_empty() {
        return Some(format!("{gvk}: {problems:?}"));
    }
    if write(&*object) != text {
        return Some(format!("{gvk}: JSON\n   ours: {}\n theirs: {sample}", write(&*object)));
    }
    let mut encoded = Vec::new();
    protobuf::encode_as(object.as_reflect(), &api_version, &gvk.kind, &mut encoded);
    if encoded != bytes {
        return Some(format!(
            "{gvk}: protobuf differs ({} bytes, theirs {})",
            encoded.len(),
            bytes.len()
        ));
    }
    let mut again = make();
    let envelope = protobuf::decode_envelope(&bytes).unwrap();
    protobuf::read_message(envelope.raw, again.as_reflect_mut()).unwrap();
    (write(&*again) != text).then(|| format!("{gvk}: lost on the way through protobuf"))
}

#[test]
fn every_built_in_resource_has_a_sample() {
    let Some(facts) = facts() else { return };
    let kinds = keelson::api::SCHEME
        .groups
        .iter()
        .flat_map(|g| g.versions)
        .flat_map(|v| v.kinds);
    // The samples are those of k8s.io/api: they lack the groups of the two other servers.
    for kind in kinds.filter(|k| k.message.name.starts_with("io.k8s.api.")) {
        let group = if kind.group.is_empty() { "core" } else { &*kind.group };
        let file = facts.join(format!("roundtrip/{group}.{}.{}.json", kind.version, kind.kind));
        assert!(file.is_file(), "{}", file.display());
    }
}

/// Samples of kinds and versions that v1.36 does not serve any more, not even when it is told to.
const NOT_SERVED: usize = 63;
/// No kind, though it has a sample: it stands for itself on a watch.
const WATCH_EVENT: &str = "core.v1.WatchEvent";

#[test]
fn published_samples_survive() {
    let Some(facts) = facts() else { return };
    let folder = facts.join("roundtrip");
    let kinds = kinds();
    let found: Vec<String> = kinds
        .iter()
        .filter_map(|(gvk, make)| check(&folder, gvk, make))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    let names: BTreeSet<String> = kinds
        .iter()
        .map(|(gvk, _)| stem([&gvk.group, &gvk.version, &gvk.kind]))
        .collect();
    let files = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path());
    let samples: BTreeSet<String> = files
        .filter(|p| p.extension().is_some_and(|e| e == "pb"))
        .map(|p| p.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let unknown: Vec<&String> = samples.difference(&names).filter(|n| *n != WATCH_EVENT).collect();
    let text = std::fs::read(facts.join("resources.json")).unwrap();
    let rows: Value = serde_json::from_slice(&text).unwrap();
    for row in rows["resources"].as_array().unwrap() {
        let name = stem(["group", "version", "kind"].map(|key| row[key].as_str().unwrap()));
        assert!(!unknown.contains(&&name), "{name} is served, but there is no such kind");
    }
    assert_eq!(unknown.len(), NOT_SERVED, "{unknown:?}");
    assert!(
        samples.len() - unknown.len() > 100,
        "only {} samples were read",
        samples.len()
    );
}

#[test]
fn the_sample_of_a_watch_event_survives() {
    let Some(facts) = facts() else { return };
    let path = facts.join("roundtrip").join(WATCH_EVENT);
    let text = canonical(&std::fs::read(path.with_added_extension("json")).unwrap()).to_string();
    let bytes = std::fs::read(path.with_added_extension("pb")).unwrap();
    let mut event = WatchEvent::default();
    assert_eq!(json::read(text.as_bytes(), &mut event), Ok(vec![]));
    let mut out = Vec::new();
    json::write(&event, &mut out);
    assert_eq!(canonical(&out).to_string(), text);
    // The object within keeps the text of the sample, indentation and all.
    let mut decoded = WatchEvent::default();
    let envelope = protobuf::decode_envelope(&bytes).unwrap();
    protobuf::read_message(envelope.raw, &mut decoded).unwrap();
    let mut encoded = Vec::new();
    protobuf::encode_as(&decoded, "", "", &mut encoded);
    assert_eq!(encoded, bytes);
    out.clear();
    json::write(&decoded, &mut out);
    assert_eq!(canonical(&out).to_string(), text);
}

/// Objects of our own, as Kubernetes' Go libraries encode them: checked where the published samples are not at hand.
#[test]
fn own_samples_survive() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/roundtrip");
    let kinds = kinds();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let (gvk, make) = kinds
            .iter()
            .find(|(gvk, _)| {
                let group = if gvk.group.is_empty() { "core" } else { &gvk.group };
                stem == format!("{group}.{}.{}", gvk.version, gvk.kind)
            })
            .unwrap();
        assert_eq!(check(&folder, gvk, make), None);

        let (mut from_json, mut from_protobuf) = (make(), make());
        let text = std::fs::read(path.with_extension("json")).unwrap();
        assert_eq!(json::read(&text, from_json.as_reflect_mut()), Ok(vec![]));
        let bytes = std::fs::read(path.with_extension("pb")).unwrap();
        let envelope = protobuf::decode_envelope(&bytes).unwrap();
        protobuf::read_message(envelope.raw, from_protobuf.as_reflect_mut()).unwrap();
        assert!(
            equality::equal(from_json.as_reflect(), from_protobuf.as_reflect()),
            "{stem}"
        );
    }
}

/// Over a table that is made at run time, field by field, from that of its struct, every sample is what it was, with
/// its keys sorted, and equal to itself alone.
#[test]
fn samples_survive_as_dynamic_messages() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/roundtrip");
    let folders: Vec<_> = facts()
        .map(|facts| facts.join("roundtrip"))
        .into_iter()
        .chain([own])
        .collect();
    let mut seen = 0;
    for (gvk, make) in kinds() {
        let typed = make();
        let desc = twin::of(typed.desc(), 9).unwrap();
        let name = stem([&gvk.group, &gvk.version, &gvk.kind]);
        for folder in &folders {
            let Ok(text) = std::fs::read(folder.join(format!("{name}.json"))) else {
                continue;
            };
            let mut typed = make();
            json::read(&text, typed.as_reflect_mut()).unwrap();
            let shown = json::to_vec(&*typed);
            let mut dynamic = desc.new_kind();
            let problems = json::read(&shown, dynamic.as_reflect_mut());
            assert_eq!(problems, Ok(Vec::new()), "{gvk}");
            let written = json::to_vec(&*dynamic);
            assert_eq!(
                String::from_utf8_lossy(&written),
                String::from_utf8_lossy(&json::sorted(&shown)),
                "{gvk}"
            );
            assert!(
                equality::equal(dynamic.as_reflect(), &*dynamic.clone_message()),
                "{gvk}"
            );
            assert!(!equality::equal(dynamic.as_reflect(), &*desc.new_message()), "{gvk}");
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen} samples");
}
