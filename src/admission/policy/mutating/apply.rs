//! Apply configurations that expressions make: their fields become those of the object.

use keelson_machinery::cel::{Map, Value};
use keelson_machinery::copy;
use keelson_machinery::decode::DecodeError;
use keelson_machinery::managedfields::apply::{DocumentError, merge, read_document};
use keelson_machinery::object::{Gvk, Kind};
use keelson_machinery::reflect::{FieldDesc, Flags, ListType, MessageDesc, Type};
use keelson_machinery::scheme::KindRef;
use keelson_registry::admission::Attributes;
use serde_json::Value as Json;

use super::mutation::Failed;
use super::values::{Made, misnamed, to_native};
use crate::versions::{Changed, fresh, kind_of, with_defaults};

/// The type of a whole object.
const OBJECT: &str = "Object";

/// What the object becomes.
pub(super) fn applied(
    attributes: &Attributes<'_>,
    target: &KindRef,
    before: &dyn Kind,
    value: &Value<'_>,
) -> Result<Changed, Failed> {
    let gvk = kind_of(target, attributes.subresource);
    let configuration = configuration(value, &gvk).map_err(Failed::Policy)?;
    let wrong = |why: String| Failed::Policy(format!("error applying patch: {why}"));
    let missing = || wrong("type converter must not be nil".to_owned());
    let mut applied = fresh(attributes, target).ok_or_else(missing)?;
    let mut unfit = Vec::new();
    if let Value::Map(map) = value {
        unfit_of_message(before.desc(), map, "", &mut unfit);
    }
    if !unfit.is_empty() {
        let why = unfit.join("\n");
        return Err(wrong(format!("failed to convert patch object to typed object: {why}")));
    }
    let text = configuration.to_string();
    let document = read_document(text.as_bytes(), applied.as_reflect_mut());
    let document = document.map_err(|error| match error {
        DocumentError::Schema(why) => wrong(format!("failed to convert patch object to typed object: {why}")),
        DocumentError::TooLarge => wrong(format!(
            "failed to convert patch object to typed object: {}",
            DecodeError::TooLarge
        )),
        DocumentError::Duplicate => wrong("failed to convert patch object to typed object".to_owned()),
    })?;
    if let Some(why) = document.unfit {
        return Err(wrong(format!("failed to convert typed object to object: {why}")));
    }
    let mut whole = Vec::new();
    owned_as_a_whole(before.desc(), &configuration, "", &mut whole);
    if !whole.is_empty() {
        let places = whole.join(", ");
        return Err(wrong(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {places}"
        )));
    }
    let mut new = fresh(attributes, target).ok_or_else(missing)?;
    copy::copy_message(new.as_reflect_mut(), before.as_reflect());
    merge(new.as_reflect_mut(), applied.as_reflect(), &document.fields);
    Ok(with_defaults(attributes, target, before, new))
}

/// The configuration as JSON, with the kind of the object.
fn configuration(value: &Value<'_>, gvk: &Gvk) -> Made<Json> {
    let mut errors = Vec::new();
    match value {
        Value::Map(map) if map.message().is_some() => misnamed(value, OBJECT, &mut errors),
        other => {
            let found = other.type_name();
            return Err(format!(
                "unsupported return type from ApplyConfiguration expression: {found}"
            ));
        }
    }
    if !errors.is_empty() {
        return Err(format!("type mismatch: {}", errors.join("\n")));
    }
    let mut json = to_native(value).map_err(|why| format!("invalid return type: {why}"))?;
    if let Json::Object(members) = &mut json {
        members.insert("apiVersion".to_owned(), gvk.api_version().into());
        members.insert("kind".to_owned(), gvk.kind.as_str().into());
    }
    Ok(json)
}

/// Places of a configuration that have one owner for all that they hold.
fn owned_as_a_whole(desc: &MessageDesc, json: &Json, path: &str, found: &mut Vec<String>) {
    let Json::Object(members) = json else { return };
    for (name, value) in members {
        if let Some((_, field)) = desc.field(name) {
            of_field(field, value, &format!("{path}.{name}"), found);
        }
    }
}

fn of_field(field: &FieldDesc, json: &Json, path: &str, found: &mut Vec<String>) {
    let atomic = field.flags.has(Flags::ATOMIC);
    match (&field.ty, json) {
        (Type::Message(desc), Json::Object(_)) => {
            found.extend(atomic.then(|| path.to_owned()));
            owned_as_a_whole(desc, json, path, found);
        }
        (Type::Map(_), Json::Object(_)) => found.extend(atomic.then(|| path.to_owned())),
        (Type::List(element), Json::Array(items)) => {
            let apart = matches!(field.list, ListType::Set | ListType::Map);
            found.extend((atomic || !apart).then(|| path.to_owned()));
            for (n, item) in items.iter().enumerate() {
                of_field(element, item, &format!("{path}[{n}]"), found);
            }
        }
        _ => {}
    }
}

/// What is said of values that no field takes: nulls, which are numbers of a type of their own in Go, and bytes.
fn unfit_of_message(desc: &MessageDesc, map: &Map<'_>, path: &str, found: &mut Vec<String>) {
    for name in map.keys() {
        let field = name.as_str().and_then(|name| Some((name, desc.field(name)?.1)));
        if let (Some((name, field)), Some(value)) = (field, map.get(&name)) {
            unfit(&field.ty, &value, &format!("{path}.{name}"), found);
        }
    }
}

fn unfit(ty: &Type, value: &Value<'_>, path: &str, found: &mut Vec<String>) {
    let mut tell = |value: String| {
        let expected = expected(ty);
        found.push(format!(
            "{path}: expected {expected}, got &value.valueUnstructured{{Value:{value}}}"
        ));
    };
    match (ty, value) {
        (Type::Any | Type::Untyped, _) => {}
        (_, Value::Null) => tell("0".to_owned()),
        (_, Value::Bytes(bytes)) => {
            let shown: Vec<String> = bytes.iter().map(|byte| format!("{byte:#x}")).collect();
            tell(format!("[]uint8{{{}}}", shown.join(", ")));
        }
        (Type::Message(desc), Value::Map(map)) => unfit_of_message(desc, map, path, found),
        (Type::Map(element), Value::Map(map)) => {
            for name in map.keys() {
                if let (Some(name), Some(value)) = (name.as_str(), map.get(&name)) {
                    unfit(&element.ty, &value, &format!("{path}.{name}"), found);
                }
            }
        }
        (Type::List(element), Value::List(list)) => {
            for (n, item) in list.iter().enumerate() {
                unfit(&element.ty, &item, &format!("{path}[{n}]"), found);
            }
        }
        _ => {}
    }
}

/// What server-side apply calls values of a type.
fn expected(ty: &Type) -> &'static str {
    match ty {
        Type::Message(_) | Type::Map(_) => "map",
        Type::List(_) => "list",
        Type::Bool => "boolean",
        Type::Int32 | Type::Int64 | Type::Double => "numeric (int or float)",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use keelson_api::core::v1::Pod;
    use keelson_machinery::cel::{CALL_LIMIT, Environment};
    use keelson_machinery::reflect::Reflect;

    use super::*;

    #[test]
    fn nulls_and_bytes_fit_nowhere() {
        let unfit = |source: &str| {
            let program = Environment::new().with_patches().compile(source).unwrap();
            let value = program.evaluate(&[], CALL_LIMIT).unwrap().value;
            let mut found = Vec::new();
            if let Value::Map(map) = &value {
                unfit_of_message(Pod::default().desc(), map, "", &mut found);
            }
            found.join(" ")
        };
        let got = |value: &str| format!("got &value.valueUnstructured{{Value:{value}}}");
        for (source, want) in [
            (
                "Object{metadata: Object.metadata{name: 'a', unknown: null}}",
                String::new(),
            ),
            (
                "Object{metadata: Object.metadata{labels: {'a': b'ab'}}}",
                format!(".metadata.labels.a: expected string, {}", got("[]uint8{0x61, 0x62}")),
            ),
            (
                "Object{spec: Object.spec{containers: [Object.spec.containers{tty: null}]}}",
                format!(".spec.containers[0].tty: expected boolean, {}", got("0")),
            ),
            (
                "Object{spec: Object.spec{nodeSelector: null}}",
                format!(".spec.nodeSelector: expected map, {}", got("0")),
            ),
            (
                "Object{spec: Object.spec{terminationGracePeriodSeconds: null}}",
                format!(
                    ".spec.terminationGracePeriodSeconds: expected numeric (int or float), {}",
                    got("0")
                ),
            ),
        ] {
            assert_eq!(unfit(source), want, "{source}");
        }
    }
}
