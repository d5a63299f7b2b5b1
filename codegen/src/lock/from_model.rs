//! The record that the definitions of today would have.

use std::collections::BTreeMap;

use super::Records;
use super::types::{Line, StoredType};
use crate::model::{Field, FieldType, Message, MessageId, Model};

/// The records of all own messages that a stored object may hold, by the folders of their definitions. `was_stored`
/// says of a folder and a kind whether objects of it were stored once.
pub fn records(model: &Model, shown_root: &str, was_stored: impl Fn(&str, &str) -> bool) -> Records {
    let mut records = Records::new();
    let mut seen = vec![false; model.messages.len()];
    let mut left = Vec::new();
    for (id, message) in model.messages.iter().enumerate() {
        let (Some(folder), Some(kind)) = (folder(message, shown_root), message.resource()) else {
            continue;
        };
        if !kind.unstored && (is_stored(model, message) || was_stored(&folder, &message.name)) {
            let kinds = &mut records.entry(folder).or_default().kinds;
            kinds.insert(message.name.clone(), message.full_name.clone());
            left.push(id);
        }
    }
    while let Some(id) = left.pop() {
        let Some(message) = model.message(id).filter(|_| !std::mem::replace(&mut seen[id], true)) else {
            continue;
        };
        let Some(folder) = folder(message, shown_root).filter(|_| !message.is_leaf()) else {
            continue;
        };
        let mut fields = BTreeMap::new();
        add_fields(model, message, &mut fields, &mut left);
        let messages = &mut records.entry(folder).or_default().messages;
        messages.insert(message.full_name.clone(), fields);
    }
    records
}

/// Whether new objects are stored in this version: a kind of one version need not say so.
fn is_stored(model: &Model, message: &Message) -> bool {
    let Some(kind) = message.resource() else { return false };
    let mut others = model.messages.iter().filter(|other| {
        let is_other_version = other.group_version.group == message.group_version.group
            && other.group_version.version != message.group_version.version;
        is_other_version && other.resource().is_some_and(|other| other.plural == kind.plural)
    });
    kind.storage || (kind.same_as.is_empty() && others.next().is_none())
}

/// The folder of an own message, `example.com/v1`; `None`: it is one of the library.
pub fn folder(message: &Message, shown_root: &str) -> Option<String> {
    if message.module.external {
        return None;
    }
    let file = message.place.file.strip_prefix(shown_root)?.trim_start_matches('/');
    Some(file.rsplit_once('/')?.0.to_owned())
}

fn add_fields(model: &Model, message: &Message, fields: &mut BTreeMap<u32, Line>, left: &mut Vec<MessageId>) {
    for field in &message.fields {
        left.extend(field.ty.message());
        fields.insert(field.number, line(model, field));
    }
}

/// What the record says of a field.
pub fn line(model: &Model, field: &Field) -> Line {
    Line {
        name: field.json.clone(),
        ty: stored_type(model, &field.ty),
        optional: field.optional,
        is_gone: false,
        rules: rules(field),
    }
}

fn stored_type(model: &Model, ty: &FieldType) -> StoredType {
    match ty {
        FieldType::Bool => StoredType::Scalar("bool"),
        FieldType::Int32 => StoredType::Scalar("int32"),
        FieldType::Int64 => StoredType::Scalar("int64"),
        FieldType::Double => StoredType::Scalar("double"),
        FieldType::String => StoredType::Scalar("string"),
        FieldType::Bytes => StoredType::Scalar("bytes"),
        FieldType::Message(id) => {
            let message = model.message(*id);
            StoredType::Message(message.map(|message| message.full_name.clone()).unwrap_or_default())
        }
        FieldType::List(element) => StoredType::List(Box::new(stored_type(model, element))),
        FieldType::Map(value) => StoredType::Map(Box::new(stored_type(model, value))),
    }
}

/// The rules whose change matters to what was stored before.
fn rules(field: &Field) -> BTreeMap<String, String> {
    let options = &field.options;
    let number = |value: Option<f64>| value.map(|value| value.to_string());
    let count = |value: Option<u32>| value.map(|value| value.to_string());
    let text = |value: &str| (!value.is_empty()).then(|| value.to_owned());
    let all = [
        ("required", options.required.then(|| "true".to_owned())),
        ("default", text(field.default())),
        ("enum", text(&options.enum_values.join("|"))),
        ("item_enum", text(&options.item_enum.join("|"))),
        ("minimum", number(options.minimum)),
        ("maximum", number(options.maximum)),
        ("multiple_of", number(options.multiple_of)),
        ("min_length", count(options.min_length)),
        ("max_length", count(options.max_length)),
        ("min_items", count(options.min_items)),
        ("max_items", count(options.max_items)),
        ("min_properties", count(options.min_properties)),
        ("max_properties", count(options.max_properties)),
        ("pattern", text(&options.pattern)),
        ("format", text(&options.format)),
    ];
    let said = all
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    said.collect()
}
