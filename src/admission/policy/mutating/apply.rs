//! Apply configurations that expressions make: their fields become those of the object.

use keelson_machinery::cel::Value;
use keelson_machinery::copy;
use keelson_machinery::managedfields::apply::{DocumentError, merge, read_document};
use keelson_machinery::object::{Gvk, Kind};
use keelson_machinery::reflect::{FieldDesc, Flags, ListType, MessageDesc, Type};
use keelson_machinery::scheme::KindRef;
use keelson_registry::admission::Attributes;
use serde_json::Value as Json;

use super::mutation::Failed;
use super::values::{misnamed, to_json};
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
    let text = configuration.to_string();
    let document = read_document(text.as_bytes(), applied.as_reflect_mut());
    let document = document.map_err(|error| match error {
        DocumentError::Schema(why) => wrong(format!("failed to convert patch object to typed object: {why}")),
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
fn configuration(value: &Value<'_>, gvk: &Gvk) -> Result<Json, String> {
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
    let mut json = to_json(value).map_err(|why| format!("invalid return type: {why}"))?;
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
