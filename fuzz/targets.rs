//! Fuzz targets, called by the fuzzer and by the test that replays the corpus: each takes any bytes, and panics where a
//! promise is broken.

#![allow(dead_code, reason = "each program of the fuzzer calls one of them")]

use std::sync::Arc;

use keelson_machinery::cel::{Environment, Type, Value};
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::fieldset::FieldSet;
use keelson_machinery::meta::v1::{ObjectMeta, Status};
use keelson_machinery::object::Gvk;
use keelson_machinery::patch::{json::JsonPatch, merge, strategic};
use keelson_machinery::quantity::Quantity;
use keelson_machinery::reflect::{Leaf, Reflect};
use keelson_machinery::selector::{FieldSelector, LabelSelector};
use keelson_machinery::structural::{
    Compile, Definition, JsonSchema, OpenApi, OpenApiTexts, OpenApiVersion, Requirements, Subject, Validator, check,
    compile,
};
use keelson_machinery::time::{Duration, MicroTime, Time};
use keelson_machinery::{apply, decode, defaults, json, protobuf, yaml};

/// What is read can be written and read again, to the same; and the decoder and the checker of syntax agree.
pub fn json(data: &[u8]) {
    let mut meta = ObjectMeta::default();
    let outcome = json::read(data, &mut meta);
    let broken = matches!(outcome, Err(decode::DecodeError::Syntax { .. }));
    // Depth of known messages is bounded more tightly than that of the text.
    if !broken {
        assert!(json::validate(data).is_ok());
    }
    if outcome.is_ok() {
        stays(&meta, |text, again| json::read(text, again).map(drop));
    }
    let mut meta = ObjectMeta::default();
    if json::restore(data, &mut meta).is_ok() {
        stays(&meta, |text, again| json::restore(text, again).map(drop));
    }
    let _ = (
        json::type_meta(data),
        json::type_meta_of_all(data),
        json::no_fields(data),
    );
}

/// The text of an object reads back to an object with the same text.
fn stays(meta: &ObjectMeta, read: impl Fn(&[u8], &mut ObjectMeta) -> Result<(), decode::DecodeError>) {
    let text = text_of(meta);
    let mut again = ObjectMeta::default();
    read(&text, &mut again).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(text, text_of(&again));
}

fn text_of(message: &dyn Reflect) -> Vec<u8> {
    let mut out = Vec::new();
    json::write(message, &mut out);
    out
}

/// What YAML yields is JSON, which can be written as YAML and read again.
pub fn yaml(data: &[u8]) {
    let Ok(text) = yaml::to_json(data) else { return };
    assert!(json::validate(&text).is_ok());
    // A merge key is written without quotes, as in Kubernetes, so what stands under it is merged when it is read.
    if [br#""<<""#.as_slice(), br#""\u003c\u003c""#]
        .iter()
        .any(|key| text.windows(key.len()).any(|w| w == *key))
    {
        return;
    }
    if let Ok(shown) = yaml::from_json(&text) {
        assert!(yaml::to_json(&shown).is_ok(), "{}", String::from_utf8_lossy(&shown));
    }
}

/// What is read can be written and read again, to the same.
pub fn protobuf(data: &[u8]) {
    let _ = protobuf::decode_envelope(data);
    let mut status = Status::default();
    if protobuf::read_message(data, &mut status).is_err() {
        return;
    }
    let body = |status: &Status| {
        let mut out = Vec::new();
        protobuf::write_message(status, &mut out);
        out
    };
    let mut again = Status::default();
    assert!(protobuf::read_message(&body(&status), &mut again).is_ok());
    assert_eq!(body(&status), body(&again));
}

/// A document and a patch, with a line feed between them; each kind of patch yields JSON or an error.
pub fn patch(data: &[u8]) {
    let mut parts = data.splitn(2, |b| *b == b'\n');
    let (document, patch) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let desc = ObjectMeta::message_desc();
    let results = [
        merge::apply(document, patch, true).map(|(out, _)| out),
        strategic::apply(document, patch, desc, true).map(|(out, _)| out),
        JsonPatch::decode(patch, true).and_then(|(patch, _)| patch.apply(document)),
        strategic::diff(document, patch, desc),
    ];
    for out in results.into_iter().flatten() {
        assert!(json::validate(&out).is_ok(), "{}", String::from_utf8_lossy(&out));
    }
    if json::validate(patch).is_ok() && json::validate(document).is_ok() {
        strategic::shown(patch, document, desc);
    }
}

/// A quantity's canonical text is canonical, and rounding makes it no smaller.
pub fn quantity(data: &[u8]) {
    let Some(quantity) = std::str::from_utf8(data)
        .ok()
        .and_then(|text| Quantity::parse(text).ok())
    else {
        return;
    };
    let Ok(again) = Quantity::parse(quantity.as_str()) else {
        panic!("{quantity} can't be read again");
    };
    assert_eq!(again.as_str(), quantity.as_str());
    assert_eq!(again, quantity);
    let mut rounded = quantity.clone();
    rounded.round_up(0);
    assert!(quantity.is_negative() && rounded <= quantity || !quantity.is_negative() && rounded >= quantity);
    let _ = (quantity.value(), quantity.milli_value());
}

/// A selector's text reads back to a selector with the same text. The first text of a field selector may have its terms
/// in another order, that of the spellings they were read from.
pub fn selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(selector) = LabelSelector::parse(text) {
        let shown = selector.to_string();
        let again = LabelSelector::parse(&shown).map(|s| s.to_string());
        assert_eq!(again.ok(), Some(shown));
    }
    let read = |text: &str| FieldSelector::parse(text).map(|s| s.to_string());
    if let Ok(first) = read(text) {
        let Ok(shown) = read(&first) else {
            panic!("{first} can't be read again");
        };
        assert_eq!(read(&shown).ok(), Some(shown));
    }
}

/// A time that is read is written in a form that reads back to the same.
pub fn time(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let shown = |time: &dyn Leaf| {
        let mut out = Vec::new();
        time.write_json(&mut out);
        out
    };
    let stays = |first: &dyn Leaf, again: &mut dyn Leaf| {
        let text = shown(first);
        // Years of five digits, which a time zone can lead to, are written and not read, as in Kubernetes.
        if again.read_json(&text).is_ok() {
            assert_eq!(shown(again), text);
        }
    };
    if let Ok(time) = Time::parse(text) {
        stays(&time, &mut Time::default());
    }
    if let Ok(time) = MicroTime::parse(text) {
        stays(&time, &mut MicroTime::default());
    }
    let mut duration = Duration::default();
    let quoted = format!("\"{text}\"");
    if json::validate(quoted.as_bytes()).is_ok() && duration.read_json(quoted.as_bytes()).is_ok() {
        stays(&duration, &mut Duration::default());
    }
}

/// A set of fields that is read is written in a form that reads back to the same, and what is done with it keeps its
/// laws.
pub fn fields(data: &[u8]) {
    let Ok(set) = FieldSet::read(data) else { return };
    let mut text = Vec::new();
    set.write(&mut text);
    assert_eq!(
        FieldSet::read(&text).as_ref(),
        Ok(&set),
        "{}",
        String::from_utf8_lossy(&text)
    );
    assert_eq!(set.clone().union(set.clone()), set);
    assert!(set.clone().difference(&set).is_empty());
    assert!(set.is_subset(&set) && set.leaves().is_subset(&set));
}

/// A document that can be applied names fields that its object has, or says to be absent.
pub fn apply(data: &[u8]) {
    if json::validate(data).is_err() {
        return;
    }
    let mut meta = ObjectMeta::default();
    if let Ok(document) = apply::read_document(data, &mut meta)
        && document.unfit.is_none()
    {
        let mut target = ObjectMeta::default();
        apply::merge(&mut target, &meta, &document.fields);
        let again = text_of(&target);
        apply::merge(&mut target, &meta, &document.fields);
        assert_eq!(text_of(&target), again, "applied twice");
    }
}

/// Expressions that compile can be evaluated, within their budget, to a value or a fault.
pub fn expression(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let environment = Environment::new().variable("object", Type::Dyn);
    if let Ok(program) = environment.compile(text) {
        let _ = program.evaluate(&[("object", Value::Null)], 10_000);
    }
}

/// What a definition says of its objects is read, checked, told and made a table, whatever it says.
pub fn schema(data: &[u8]) {
    let Ok(schema) = JsonSchema::parse(data) else { return };
    let definition = Definition {
        preserve_unknown_fields: false,
        schemas: &[&schema],
    };
    for old in [None, Some(&definition)] {
        let errors = check(&Subject {
            schema: &schema,
            path: Path::new("openAPIV3Schema"),
            has_status: true,
            unchanged: old.is_some(),
            requirements: &Requirements::of(&definition, old),
        });
        let _ = errors.to_string();
    }
    let gvk = gvk();
    let told = OpenApi {
        gvk: &gvk,
        list_kind: "ThingList",
        plural: "things",
        schema: Some((&schema, data)),
        preserve_unknown_fields: false,
        selectable_fields: &[],
        texts: &OpenApiTexts::default(),
    };
    for version in [OpenApiVersion::V2, OpenApiVersion::V3] {
        assert!(json::validate(&told.definitions(version)).is_ok());
    }
    let _ = schema.field_at("['spec'].a", true).is_ok();
    against(
        &schema,
        br#"{"metadata":{"name":"a"},"spec":{"a":[1,"b",{"c":null}]},"status":{}}"#,
    );
}

fn gvk() -> Gvk {
    Gvk::new("example.com", "v1", "Thing")
}

/// A schema and, on the line after it, an object that is read and validated by it.
pub fn custom(data: &[u8]) {
    let Some(at) = data.iter().position(|b| *b == b'\n') else {
        return;
    };
    let (schema, object) = data.split_at(at);
    if let Ok(schema) = JsonSchema::parse(schema) {
        against(&schema, object);
    }
}

/// What is pruned and filled in stays as it is when that is done again; what has good values has them too when it did
/// not change.
fn against(schema: &JsonSchema, object: &[u8]) {
    let kind = Compile {
        gvk: gvk(),
        schema: Some(schema),
        preserve_unknown_fields: false,
    };
    let Ok(desc) = compile(&kind) else { return };
    let mut read = desc.new_object();
    if json::read(object, read.as_reflect_mut()).is_err() {
        return;
    }
    defaults::apply(read.as_reflect_mut());
    let text = text_of(read.as_reflect());
    let mut again = desc.new_object();
    let problems = json::read(&text, again.as_reflect_mut()).unwrap_or_else(|error| panic!("{error}"));
    assert!(problems.is_empty(), "{problems:?}");
    defaults::apply(again.as_reflect_mut());
    assert_eq!(text, text_of(again.as_reflect()));
    let validator = Validator::new(Arc::new(schema.clone()), &gvk());
    let (new, old) = (read.as_reflect(), again.as_reflect());
    let (mut errors, mut unchanged) = (ErrorList::new(), ErrorList::new());
    validator.values(new, None, &mut errors);
    validator.values(new, Some(old), &mut unchanged);
    assert!(!errors.is_empty() || unchanged.is_empty(), "{unchanged}");
    validator.status(new, old, &mut errors);
    validator.embedded(new, &mut errors);
    validator.unique(new, None, &mut errors);
    for old in [None, Some(old)] {
        let (mut errors, mut warnings) = (ErrorList::new(), Vec::new());
        validator.rules(new, old, &mut errors, &mut warnings);
    }
}
