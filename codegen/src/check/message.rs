//! Messages: names, leaf types, inlined fields, unions.

use std::collections::BTreeMap;

use crate::model::{FieldType, Message, Model};
use crate::options::Union;
use crate::problem::Problem;

/// Rust types of the library that a definition may name in `rust`.
const LEAVES: [&str; 9] = [
    "::keelson_machinery::time::Time",
    "::keelson_machinery::time::MicroTime",
    "::keelson_machinery::time::Duration",
    "::keelson_machinery::quantity::Quantity",
    "::keelson_machinery::intstr::IntOrString",
    "::keelson_machinery::raw::RawJson",
    "::keelson_machinery::union::OrBool",
    "::keelson_machinery::union::OrArray",
    "::keelson_machinery::union::OrStringArray",
];

pub fn check(model: &Model, message: &Message, problems: &mut Vec<Problem>) {
    let mut wrong = |text: String| problems.push(Problem::new(&message.place, &message.name, text));
    if !message.name.starts_with(|c: char| c.is_ascii_uppercase()) || message.name.contains('_') {
        wrong("a message is named in CamelCase, as it is shown to users: write `Widget` or `WidgetSpec`".to_owned());
    }
    if message.is_leaf() || !message.ty.schema.is_empty() {
        leaf(model, message, &mut wrong);
    }
    for rule in message
        .ty
        .rules
        .iter()
        .chain(message.kind.iter().flat_map(|k| &k.rules))
    {
        if rule.rule.is_empty() {
            wrong("a rule without `rule`: write the CEL expression that must be true".to_owned());
        }
    }
    for union in &message.ty.unions {
        unions(model, message, union, &mut wrong);
    }
    let mut seen = BTreeMap::new();
    json_names(
        model,
        message,
        &mut seen,
        problems,
        &mut vec![message.full_name.clone()],
    );
}

fn unions(model: &Model, message: &Message, union: &Union, wrong: &mut dyn FnMut(String)) {
    let fields = union.fields.iter().map(|(json, _)| json).chain(&union.members);
    for json in fields.chain(Some(&union.discriminator).filter(|d| !d.is_empty())) {
        if model.find_field(message, json).is_none() {
            let text = format!("a union names {json:?}, which is no field: write the JSON name of a field");
            wrong(text);
        }
    }
    match (
        union.discriminator.is_empty(),
        union.fields.is_empty(),
        union.members.is_empty(),
    ) {
        (false, false, true) | (true, true, false) => {}
        // Kubernetes' own publish unions that have neither a discriminator nor members that must be.
        (true, false, true) if message.openapi.starts_with("io.k8s.") => {}
        (false, ..) => wrong("a union with a `discriminator` has `fields` and no `members`".to_owned()),
        (true, ..) => wrong("a union without `discriminator` has `members` and no `fields`".to_owned()),
    }
}

fn leaf(model: &Model, message: &Message, wrong: &mut dyn FnMut(String)) {
    let mut rust = message.ty.rust.as_str();
    if let Some((outer, argument)) = message.leaf_argument() {
        rust = outer;
        if model.named(&format!("{}.{argument}", message.package)).is_none() {
            wrong(format!(
                "{argument} is no message of this package: write `{outer}<Widget>` with the name of one"
            ));
        }
    }
    if rust.is_empty() {
        return wrong("`schema` belongs to a type written by hand: add `rust: \"crate::path::Type\"`".to_owned());
    }
    let known = LEAVES.contains(&rust);
    let path = syn::parse_str::<syn::Path>(rust);
    if path.is_err() || !(rust.starts_with("::") || rust.starts_with("crate::")) {
        wrong(format!(
            "{rust:?} is no path of a Rust type: write `crate::path::Type` or `::library::path::Type`"
        ));
    } else if rust.starts_with("::keelson_machinery::") && !known {
        wrong(format!(
            "the library has no type {rust}: write one of {}",
            LEAVES.join(", ")
        ));
    }
    match serde_json::from_str::<serde_json::Value>(&message.ty.schema) {
        Ok(serde_json::Value::Object(_)) => {}
        _ => wrong(
            "the JSON form of a type written by hand is unknown: write `schema: \"{\\\"type\\\":\\\"string\\\"}\"`"
                .to_owned(),
        ),
    }
    if message.kind.is_some() {
        wrong("a kind cannot be a type written by hand: take `rust` or (keelson.kind) out".to_owned());
    }
}

/// No two fields may have one key in the same JSON object, also not through inlining.
fn json_names(
    model: &Model,
    message: &Message,
    seen: &mut BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
    path: &mut Vec<String>,
) {
    /// Messages inlined in messages inlined in …
    const MAX_INLINE_DEPTH: usize = 8;
    for field in &message.fields {
        let subject = format!("{}.{}", message.name, field.name);
        if field.options.inline {
            let inner = field.ty.message().and_then(|id| model.message(id));
            if let Some(inner) = inner.filter(|i| !path.contains(&i.full_name) && path.len() < MAX_INLINE_DEPTH) {
                path.push(inner.full_name.clone());
                json_names(model, inner, seen, problems, path);
                path.pop();
            }
            continue;
        }
        let of_kind = message.kind.is_some() && matches!(field.json.as_str(), "apiVersion" | "kind");
        if of_kind {
            let text = format!("every kind has {:?} already: take the field out", field.json);
            problems.push(Problem::new(&field.place, &subject, text));
        }
        if let Some(other) = seen.insert(field.json.clone(), subject.clone()) {
            let text = format!(
                "the JSON name {:?} is already that of {other}: give it another `json_name`, or do not inline it",
                field.json
            );
            problems.push(Problem::new(&field.place, &subject, text));
        }
    }
}

/// No two messages may have the same Rust path or the same name in OpenAPI.
pub fn check_names(model: &Model, problems: &mut Vec<Problem>) {
    let mut paths: BTreeMap<String, &Message> = BTreeMap::new();
    let mut definitions: BTreeMap<&str, &Message> = BTreeMap::new();
    for message in &model.messages {
        let path = format!("{}::{}", message.module.path.join("::"), message.name);
        if let Some(other) = (!message.is_leaf())
            .then(|| paths.insert(path.clone(), message))
            .flatten()
        {
            let text = format!(
                "{} has the same Rust path {path}: rename one of the two",
                other.full_name
            );
            problems.push(Problem::new(&message.place, &message.name, text));
        }
        if let Some(other) = definitions.insert(&message.openapi, message) {
            let text = format!(
                "{} has the same name {:?} in OpenAPI: give one of the two another `openapi` in (keelson.type)",
                other.full_name, message.openapi
            );
            problems.push(Problem::new(&message.place, &message.name, text));
        }
    }
}

/// A message that holds itself as a plain field would be infinitely large.
pub fn check_recursion(model: &Model, problems: &mut Vec<Problem>) {
    for (id, message) in model.messages.iter().enumerate().filter(|(_, m)| !m.module.external) {
        for field in &message.fields {
            let FieldType::Message(inner) = field.ty else { continue };
            if !field.optional && reaches(model, inner, id, &mut Vec::new()) {
                let text = format!(
                    "{} would contain itself: write `optional`, or make it a list",
                    message.name
                );
                problems.push(Problem::new(
                    &field.place,
                    format!("{}.{}", message.name, field.name),
                    text,
                ));
            }
        }
    }
}

/// Whether `from` is or contains `to` through plain fields.
fn reaches(model: &Model, from: usize, to: usize, seen: &mut Vec<usize>) -> bool {
    if from == to {
        return true;
    }
    if seen.contains(&from) {
        return false;
    }
    seen.push(from);
    let fields = model.message(from).map(|m| m.fields.as_slice()).unwrap_or_default();
    fields
        .iter()
        .filter(|f| !f.optional)
        .any(|f| matches!(f.ty, FieldType::Message(inner) if reaches(model, inner, to, seen)))
}
