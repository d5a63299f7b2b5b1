//! OpenAPI v3 schemas of all messages, in the form in which kube-apiserver serves them.

use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Map, Value, json};

use super::Descriptions;
use crate::model::{Field, FieldType, Message, Model};
use crate::options::{self, ListType, MapType};
use crate::problem::Error;

/// The compressed JSON object definition → schema.
pub fn definitions(model: &Model, descriptions: &Descriptions) -> Result<Vec<u8>, Error> {
    let text = Value::Object(schemas(model, descriptions)).to_string();
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    written.map_err(|e| Error::Environment(format!("compressing the definitions: {e}")))
}

/// Definition → schema, sorted by name.
pub fn schemas(model: &Model, descriptions: &Descriptions) -> Map<String, Value> {
    let mut messages: Vec<&Message> = model.messages.iter().collect();
    messages.sort_by_key(|m| &m.openapi);
    messages
        .into_iter()
        .map(|m| (m.openapi.clone(), schema(model, m, descriptions)))
        .collect()
}

fn schema(model: &Model, message: &Message, descriptions: &Descriptions) -> Value {
    let texts = descriptions.get(&message.openapi);
    let mut out = Map::new();
    describe(&mut out, &message.comment, texts.map(|t| t.0.as_str()));
    if message.is_leaf() {
        if let Ok(Value::Object(form)) = serde_json::from_str(&message.ty.schema) {
            out.extend(form);
        }
        return Value::Object(out);
    }
    out.insert("type".to_owned(), "object".into());
    let mut properties = Map::new();
    let mut required = Vec::new();
    collect(model, message, descriptions, &mut properties, &mut required);
    if message.kind.is_some() {
        type_meta(&mut properties, texts.map(|t| &t.1));
    }
    if !required.is_empty() {
        out.insert("required".to_owned(), required.into());
    }
    if !properties.is_empty() {
        let mut sorted: Vec<(String, Value)> = properties.into_iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        out.insert("properties".to_owned(), Value::Object(sorted.into_iter().collect()));
    }
    extensions(message, &mut out);
    Value::Object(out)
}

fn describe(out: &mut Map<String, Value>, comment: &str, given: Option<&str>) {
    let text = if comment.is_empty() {
        given.unwrap_or_default()
    } else {
        comment
    };
    if !text.is_empty() {
        out.insert("description".to_owned(), text.into());
    }
}

/// `apiVersion` and `kind` of every kind; clients show the texts in `explain`.
fn type_meta(properties: &mut Map<String, Value>, given: Option<&BTreeMap<String, String>>) {
    let version = "Version of the schema that this object is written in: the group and the version, or the version \
                   alone in the legacy group.";
    let kind = "Name of the kind of this object, in CamelCase.";
    for (name, own) in [("apiVersion", version), ("kind", kind)] {
        let text = given.and_then(|texts| texts.get(name)).map_or(own, String::as_str);
        properties.insert(name.to_owned(), json!({"description": text, "type": "string"}));
    }
}

/// The properties of a message and of all messages that stand inline in it.
fn collect(
    model: &Model,
    message: &Message,
    descriptions: &Descriptions,
    properties: &mut Map<String, Value>,
    required: &mut Vec<String>,
) {
    let texts = descriptions.get(&message.openapi).map(|t| &t.1);
    for field in message.fields.iter().filter(|f| !f.options.unpublished) {
        if field.options.inline {
            if let Some(inner) = field.ty.message().and_then(|id| model.message(id)) {
                collect(model, inner, descriptions, properties, required);
            }
            continue;
        }
        let text = texts.and_then(|t| t.get(&field.json)).map(String::as_str);
        properties.insert(field.json.clone(), property(model, field, text));
        if field.options.required {
            required.push(field.json.clone());
        }
    }
}

fn extensions(message: &Message, out: &mut Map<String, Value>) {
    let gv = &message.group_version;
    // The kinds of meta.k8s.io belong to every group; whoever serves a document says which.
    if message.kind.is_some() && gv.group != "meta.k8s.io" {
        let gvk = json!([{"group": gv.group, "kind": message.name, "version": gv.version}]);
        out.insert("x-kubernetes-group-version-kind".to_owned(), gvk);
    }
    if let Some(text) = map_type(message.ty.map_type) {
        out.insert("x-kubernetes-map-type".to_owned(), text.into());
    }
    let unions: Vec<Value> = message.ty.unions.iter().map(union).collect();
    if !unions.is_empty() {
        out.insert("x-kubernetes-unions".to_owned(), unions.into());
    }
    let kind_rules = message.kind.iter().flat_map(|k| &k.rules);
    validations(out, message.ty.rules.iter().chain(kind_rules));
}

fn union(union: &options::Union) -> Value {
    let mut out = Map::new();
    if !union.discriminator.is_empty() {
        out.insert("discriminator".to_owned(), union.discriminator.clone().into());
    }
    let fields = union
        .fields
        .iter()
        .map(|(k, v)| (k.clone(), v.clone().into()))
        .chain(union.members.iter().map(|m| (m.clone(), capitalised(m).into())))
        .collect();
    out.insert("fields-to-discriminateBy".to_owned(), Value::Object(fields));
    Value::Object(out)
}

/// The name of a Go field, as far as the JSON name tells it.
fn capitalised(json: &str) -> String {
    let mut letters = json.chars();
    letters
        .next()
        .map(|first| first.to_ascii_uppercase())
        .into_iter()
        .chain(letters)
        .collect()
}

fn map_type(map_type: MapType) -> Option<&'static str> {
    match map_type {
        MapType::Unset => None,
        MapType::Atomic => Some("atomic"),
        MapType::Granular => Some("granular"),
    }
}

fn validations<'a>(out: &mut Map<String, Value>, rules: impl Iterator<Item = &'a options::Rule>) {
    let rules: Vec<Value> = rules
        .map(|rule| {
            let mut one = Map::new();
            let texts = [
                ("rule", &rule.rule),
                ("message", &rule.message),
                ("messageExpression", &rule.message_expression),
                ("reason", &rule.reason),
                ("fieldPath", &rule.field_path),
            ];
            for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
                one.insert(name.to_owned(), text.as_str().into());
            }
            if rule.optional_old_self {
                one.insert("optionalOldSelf".to_owned(), true.into());
            }
            Value::Object(one)
        })
        .collect();
    if !rules.is_empty() {
        out.insert("x-kubernetes-validations".to_owned(), rules.into());
    }
}

/// The schema of one property.
fn property(model: &Model, field: &Field, text: Option<&str>) -> Value {
    let mut out = Map::new();
    describe(&mut out, &field.comment, text);
    let default = default(model, field).map(|value| ("default".to_owned(), value));
    // The order of keys is that of kube-apiserver.
    match &field.ty {
        FieldType::Message(id) => {
            let extended = has_siblings(model, field, &out);
            out.extend(default);
            reference(model, *id, extended, &mut out);
        }
        ty => {
            type_of(model, ty, &mut out);
            out.extend(default);
        }
    }
    rules(field, &mut out);
    field_extensions(field, &mut out);
    Value::Object(out)
}

/// Whether anything stands beside the `$ref`: then it must be wrapped in `allOf`.
fn has_siblings(model: &Model, field: &Field, out: &Map<String, Value>) -> bool {
    let mut rest = Map::new();
    rules(field, &mut rest);
    field_extensions(field, &mut rest);
    !out.is_empty() || !rest.is_empty() || default(model, field).is_some()
}

fn reference(model: &Model, id: usize, wrapped: bool, out: &mut Map<String, Value>) {
    let name = model.message(id).map(|m| m.openapi.as_str()).unwrap_or_default();
    let path = format!("#/components/schemas/{name}");
    if wrapped {
        out.insert("allOf".to_owned(), json!([{"$ref": path}]));
    } else {
        out.insert("$ref".to_owned(), path.into());
    }
}

/// Type, format, items of anything but a reference.
fn type_of(model: &Model, ty: &FieldType, out: &mut Map<String, Value>) {
    let (name, format) = match ty {
        FieldType::Bool => ("boolean", ""),
        FieldType::Int32 => ("integer", "int32"),
        FieldType::Int64 => ("integer", "int64"),
        FieldType::Double => ("number", "double"),
        FieldType::String => ("string", ""),
        FieldType::Bytes => ("string", "byte"),
        FieldType::Message(id) => return reference(model, *id, false, out),
        FieldType::List(_) => ("array", ""),
        FieldType::Map(_) => ("object", ""),
    };
    out.insert("type".to_owned(), name.into());
    if !format.is_empty() {
        out.insert("format".to_owned(), format.into());
    }
    match ty {
        FieldType::List(element) => {
            out.insert("items".to_owned(), element_schema(model, element));
        }
        FieldType::Map(value) => {
            out.insert("additionalProperties".to_owned(), element_schema(model, value));
        }
        _ => {}
    }
}

/// Elements are plain values: their zero is their default.
fn element_schema(model: &Model, ty: &FieldType) -> Value {
    let mut out = Map::new();
    let default = zero(model, ty).map(|value| ("default".to_owned(), value));
    match ty {
        FieldType::Message(id) => {
            let extended = default.is_some();
            out.extend(default);
            reference(model, *id, extended, &mut out);
        }
        ty => {
            type_of(model, ty, &mut out);
            out.extend(default);
        }
    }
    Value::Object(out)
}

/// The zero value as OpenAPI shows it; `None` for what has no such value (leaves, lists, maps, bytes).
fn zero(model: &Model, ty: &FieldType) -> Option<Value> {
    Some(match ty {
        FieldType::Bool => false.into(),
        FieldType::Int32 | FieldType::Int64 | FieldType::Double => 0.into(),
        FieldType::String => "".into(),
        FieldType::Message(id) if model.message(*id).is_some_and(|m| !m.is_leaf()) => json!({}),
        _ => return None,
    })
}

/// The published default: the declared one, or the zero of what is always written.
fn default(model: &Model, field: &Field) -> Option<Value> {
    let o = &field.options;
    if !o.default.is_empty() {
        return serde_json::from_str(&o.default).ok();
    }
    let written = match &field.ty {
        FieldType::Message(_) => true,
        _ => o.always,
    };
    (written && !field.optional).then(|| zero(model, &field.ty)).flatten()
}

fn rules(field: &Field, out: &mut Map<String, Value>) {
    let o = &field.options;
    if !o.format.is_empty() {
        out.insert("format".to_owned(), o.format.clone().into());
    }
    if !o.pattern.is_empty() {
        out.insert("pattern".to_owned(), o.pattern.clone().into());
    }
    for (name, value) in [
        ("minimum", o.minimum),
        ("maximum", o.maximum),
        ("multipleOf", o.multiple_of),
    ] {
        if let Some(value) = value {
            out.insert(name.to_owned(), number(value));
        }
    }
    for (name, set) in [
        ("exclusiveMinimum", o.exclusive_minimum),
        ("exclusiveMaximum", o.exclusive_maximum),
    ] {
        if set {
            out.insert(name.to_owned(), true.into());
        }
    }
    let counts = [
        ("minLength", o.min_length),
        ("maxLength", o.max_length),
        ("minItems", o.min_items),
        ("maxItems", o.max_items),
        ("minProperties", o.min_properties),
        ("maxProperties", o.max_properties),
    ];
    for (name, value) in counts {
        if let Some(value) = value {
            out.insert(name.to_owned(), value.into());
        }
    }
    let sorted = |values: &[String]| {
        let mut values = values.to_vec();
        values.sort();
        Value::from(values)
    };
    if !o.enum_values.is_empty() {
        out.insert("enum".to_owned(), sorted(&o.enum_values));
    }
    if o.nullable {
        out.insert("nullable".to_owned(), true.into());
    }
    for inner in ["items", "additionalProperties"] {
        if let (Some(Value::Object(inner)), false) = (out.get_mut(inner), o.item_enum.is_empty()) {
            inner.insert("enum".to_owned(), sorted(&o.item_enum));
        }
    }
}

/// Whole numbers without a fraction.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value {
        whole.into()
    } else {
        value.into()
    }
}

fn field_extensions(field: &Field, out: &mut Map<String, Value>) {
    let o = &field.options;
    let list_type = match o.list_type {
        ListType::Unset => None,
        ListType::Atomic => Some("atomic"),
        ListType::Set => Some("set"),
        ListType::Map => Some("map"),
    };
    if !o.map_keys.is_empty() {
        out.insert("x-kubernetes-list-map-keys".to_owned(), o.map_keys.clone().into());
    }
    if let Some(text) = list_type {
        out.insert("x-kubernetes-list-type".to_owned(), text.into());
    }
    if let Some(text) = map_type(o.map_type) {
        out.insert("x-kubernetes-map-type".to_owned(), text.into());
    }
    if !o.merge_key.is_empty() {
        out.insert("x-kubernetes-patch-merge-key".to_owned(), o.merge_key.clone().into());
    }
    if !o.patch_strategy.is_empty() {
        out.insert(
            "x-kubernetes-patch-strategy".to_owned(),
            o.patch_strategy.join(",").into(),
        );
    }
    validations(out, o.rules.iter());
}
