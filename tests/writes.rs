//! Short cuts of writes: each gives what the long way gives, for an object of every kind with something in every field.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test, as it should")]

mod facts;

use std::path::Path;

use facts::facts;
use keelson::api::SCHEME;
use keelson_machinery::fieldset::FieldSet;
use keelson_machinery::managedfields::{Change, Managed, VersionError, Versions, Writer, track, track_new};
use keelson_machinery::object::Object;
use keelson_machinery::patch::{Reach, merge, strategic};
use keelson_machinery::reflect::Reflect;
use keelson_machinery::scheme::KindDesc;
use keelson_machinery::time::Time;
use keelson_machinery::{defaults, json, protobuf};

/// The samples of our own and those that are published, as they would be read from a store.
fn samples() -> Vec<(&'static KindDesc, Box<dyn Object>)> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/roundtrip");
    let folders = [Some(own), facts().map(|facts| facts.join("roundtrip"))];
    let mut all = Vec::new();
    for folder in folders.into_iter().flatten() {
        for kind in SCHEME.groups.iter().flat_map(|g| g.versions).flat_map(|v| v.kinds) {
            let group = if kind.group.is_empty() { "core" } else { &*kind.group };
            let name = format!("{group}.{}.{}.json", kind.version, kind.kind);
            if let Ok(text) = std::fs::read(folder.join(name)) {
                all.push((kind, stored(kind, &text)));
            }
        }
    }
    assert!(all.len() >= 6, "{}", all.len());
    all
}

fn stored(kind: &'static KindDesc, text: &[u8]) -> Box<dyn Object> {
    let mut object = kind.new_object();
    json::read(text, object.as_reflect_mut()).unwrap();
    defaults::apply(object.as_reflect_mut());
    let bytes = protobuf::encode(&*object);
    let mut read = kind.new_object();
    let envelope = protobuf::decode_envelope(&bytes).unwrap();
    protobuf::read_message(envelope.raw, read.as_reflect_mut()).unwrap();
    read
}

struct NoOther;

impl Versions for NoOther {
    fn knows(&self, _: &str) -> bool {
        true
    }
    fn convert(&self, _: &dyn Reflect, version: &str) -> Result<Box<dyn Object>, VersionError> {
        Err(VersionError::Unknown(format!("there is no {version}")))
    }
}

#[test]
fn the_maker_of_an_object_owns_what_a_comparison_with_nothing_finds() {
    let writer = Writer {
        manager: "maker".to_owned(),
        api_version: "v1".to_owned(),
        subresource: String::new(),
        now: Some(Time::from_unix(1_700_000_000, 0)),
    };
    for (kind, object) in samples() {
        for ignored in [FieldSet::EMPTY, FieldSet::of_fields(&["status"])] {
            let empty = kind.new_object();
            let owners = |record: fn(&mut Managed, Change<'_>, &Writer) -> Result<(), VersionError>| {
                let mut managed = Managed::default();
                let change = Change {
                    old: empty.as_reflect(),
                    new: object.as_reflect(),
                    ignored: &ignored,
                    versions: &NoOther,
                };
                record(&mut managed, change, &writer).unwrap();
                let entries = managed.write().into_iter();
                let text = |e: keelson_machinery::meta::v1::ManagedFieldsEntry| e.fields_v1.unwrap();
                entries
                    .map(|e| String::from_utf8(text(e).as_bytes().to_vec()).unwrap())
                    .collect::<Vec<_>>()
            };
            assert_eq!(owners(track_new), owners(track), "{}", kind.kind);
        }
    }
}

#[test]
fn a_patch_of_a_part_gives_what_a_patch_of_the_whole_gives() {
    let mut parts = 0;
    for (kind, object) in samples() {
        let whole = json::to_vec(&*object);
        let fields = object
            .desc()
            .fields
            .iter()
            .map(|f| f.json.as_str())
            .filter(|name| *name != "metadata");
        let mut patches: Vec<String> = fields
            .flat_map(|f| [format!(r#"{{"{f}":{{}}}}"#), format!(r#"{{"{f}":null}}"#)])
            .collect();
        patches.push(r#"{"metadata":{"labels":{"a":"b"},"annotations":null}}"#.to_owned());
        patches.push(
            r#"{"metadata":{"finalizers":["a/b"]},"status":{"phase":"x","conditions":[{"type":"A"}]}}"#.to_owned(),
        );
        patches.push(r#"{"spec":{"replicas":7,"template":{"spec":{"nodeName":"n"}}}}"#.to_owned());
        for patch in patches {
            for strategic in [false, true] {
                let apply = |document: &[u8]| match strategic {
                    true => strategic::apply(document, patch.as_bytes(), &kind.message, true),
                    false => merge::apply(document, patch.as_bytes(), true),
                };
                let read = |text: &[u8], object: &mut dyn Object| {
                    let found = match strategic {
                        true => json::restore(text, object.as_reflect_mut()),
                        false => json::read(text, object.as_reflect_mut()),
                    };
                    found
                        .is_ok_and(|problems| problems.is_empty())
                        .then(|| protobuf::encode(object))
                };
                let Some(reach) = Reach::of(&*object, patch.as_bytes()) else {
                    continue;
                };
                let mut part = object.clone_object();
                let Ok((text, _)) = apply(&reach.document) else {
                    continue;
                };
                reach.clear(part.as_reflect_mut());
                let Some(part) = read(&text, &mut *part) else { continue };
                let expected = read(&apply(&whole).unwrap().0, &mut *kind.new_object());
                let shown = |bytes: Option<&Vec<u8>>| bytes.map(|b| String::from_utf8_lossy(b).into_owned());
                assert_eq!(
                    shown(Some(&part)),
                    shown(expected.as_ref()),
                    "{} {patch} {strategic}",
                    kind.kind
                );
                parts += 1;
            }
        }
    }
    assert!(parts > 50, "{parts}");
}
