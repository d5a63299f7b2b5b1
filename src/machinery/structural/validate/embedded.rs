//! Embedded resources: objects within an object have a type and, if any, good metadata.

use crate::field::{ErrorList, FieldError, Path};
use crate::meta::v1::ObjectMeta;
use crate::reflect::{Reflect, Value};
use crate::scheme::NameRule;
use crate::structural::schema::{JsonSchema, Keywords};
use crate::structural::spot::Spot;
use crate::structural::view::{Object, View, item};
use crate::validation::meta::validate_object_meta;
use crate::validation::names::dns_1035_label;

/// Checks the embedded resources in a value, and the value itself if it is one; the path of the value is `root`.
pub(in crate::structural) fn check(
    (schema, is_resource): (&JsonSchema, bool),
    value: &View<'_>,
    root: &Path,
    errors: &mut ErrorList,
) {
    if let (true, View::Object(object)) = (is_resource || schema.has(Keywords::EMBEDDED), value) {
        resource(object, root, errors);
    }
    below(schema, value, &Spot::Here, root, errors);
}

fn walk(schema: &JsonSchema, value: &View<'_>, spot: &Spot<'_>, root: &Path, errors: &mut ErrorList) {
    if let (true, View::Object(object)) = (schema.has(Keywords::EMBEDDED), value) {
        resource(object, &spot.path(root), errors);
    }
    below(schema, value, spot, root, errors);
}

fn below(schema: &JsonSchema, value: &View<'_>, spot: &Spot<'_>, root: &Path, errors: &mut ErrorList) {
    if !schema.has(Keywords::EMBEDDED_BELOW) || errors.is_full() {
        return;
    }
    match value {
        View::Object(object) => {
            object.for_each(&mut |name, value| match (schema.property(name), schema.additional()) {
                (Some(schema), _) => walk(schema, &value, &Spot::Property(spot, name), root, errors),
                (None, Some(schema)) => walk(schema, &value, &Spot::Key(spot, name), root, errors),
                (None, None) => {}
            });
        }
        View::List(list) => {
            let Some(items) = schema.item() else { return };
            for index in 0..list.len() {
                if let Some(value) = item(*list, index) {
                    walk(items, &value, &Spot::Index(spot, index), root, errors);
                }
            }
        }
        _ => {}
    }
}

fn resource(object: &Object<'_>, path: &Path, errors: &mut ErrorList) {
    for name in ["apiVersion", "kind"] {
        if !object.has(name) {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
    for (name, check) in [("apiVersion", api_version as Check), ("kind", kind)] {
        let path = path.child(name);
        let wrong = match object.get(name) {
            None => continue,
            Some(View::Text(text)) if text.is_empty() => Some("must not be empty".to_owned()),
            Some(View::Text(text)) => check(&text),
            Some(_) => Some("must be a string".to_owned()),
        };
        if let (Some(wrong), Some(value)) = (wrong, object.get(name)) {
            errors.push(FieldError::invalid(&path, value.shown(), wrong));
        }
    }
    if let Some(meta) = metadata(object) {
        let mut meta = meta.clone();
        if meta.name.is_empty() {
            // Embedded objects need none.
            "fakename".clone_into(&mut meta.name);
        }
        let namespaced = !meta.namespace.is_empty();
        let found = validate_object_meta(&meta, namespaced, NameRule::PathSegment, &path.child("metadata"));
        errors.extend(found);
    }
}

/// What is wrong with a text.
type Check = fn(&str) -> Option<String>;

fn api_version(text: &str) -> Option<String> {
    let wrong = text.matches('/').count() > 1;
    wrong.then(|| format!("unexpected GroupVersion string: {text}"))
}

fn kind(text: &str) -> Option<String> {
    let wrong = dns_1035_label(&text.to_lowercase());
    let expected = "may have mixed case, but should otherwise match";
    (!wrong.is_empty()).then(|| format!("{expected}: {}", wrong.join(",")))
}

fn metadata<'a>(object: &Object<'a>) -> Option<&'a ObjectMeta> {
    let Object::Message(message) = object else { return None };
    let (index, _) = message.desc().field("metadata")?;
    match Reflect::get(*message, index) {
        Value::Message(meta) => meta.as_any().downcast_ref(),
        _ => None,
    }
}
