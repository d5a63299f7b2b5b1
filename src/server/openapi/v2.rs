//! The document of OpenAPI v2 (Swagger): every group in one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use keelson_machinery::reflect::Name;
use serde_json::{Map, Value, json};

use super::definitions::{self, V2_REF};
use super::operations::{Answer, Body, Operation, PathItem};
use super::parameters::{Location, Parameter};
use super::v3::{reason, security_scheme};
use super::{Documents, Info, object};

/// Takes the members of an object one by one: their names and values.
pub(super) type Members<'a> = &'a mut dyn FnMut(&str, &Value) -> io::Result<()>;

/// Writes the document of all sections.
pub(super) fn write(documents: &Documents, out: &mut dyn Write) -> io::Result<()> {
    let mut shared = Shared::default();
    out.write_all(b"{\"swagger\":\"2.0\",\"info\":")?;
    serde_json::to_writer(&mut *out, &info(&documents.info))?;
    out.write_all(b",\"paths\":")?;
    object(out, |member| paths(documents, &mut shared, member))?;
    out.write_all(b",\"definitions\":")?;
    object(out, |member| schemas(documents, member))?;
    out.write_all(b",\"parameters\":")?;
    object(out, |member| {
        shared.0.iter().try_for_each(|(name, value)| member(name, value))
    })?;
    out.write_all(b",\"securityDefinitions\":")?;
    serde_json::to_writer(&mut *out, &security_definitions())?;
    out.write_all(b",\"security\":[{\"BearerToken\":[]}]}")
}

pub(super) fn info(info: &Info) -> Value {
    json!({"title": info.title, "version": info.version})
}

pub(super) fn security_definitions() -> Value {
    json!({"BearerToken": security_scheme()})
}

/// The paths of all sections in order; puts the parameters that they share into `shared`.
pub(super) fn paths(documents: &Documents, shared: &mut Shared, member: Members<'_>) -> io::Result<()> {
    let mut items: Vec<&PathItem> = documents.sections.iter().flat_map(|s| &s.paths).collect();
    items.sort_by(|a, b| a.path.cmp(&b.path));
    items
        .into_iter()
        .try_for_each(|item| member(&item.path, &path_item(item, shared)))
}

/// The definitions that the paths lead to.
pub(super) fn schemas(documents: &Documents, member: Members<'_>) -> io::Result<()> {
    let items = documents.sections.iter().flat_map(|s| &s.paths);
    let roots: BTreeSet<String> = items.flat_map(PathItem::definitions).collect();
    let names = definitions::reachable(&documents.definitions, roots.iter().map(String::as_str));
    for name in names {
        if let Some(schema) = documents.definitions.get(name) {
            let schema = definitions::parsed(name, schema, &documents.known)?;
            member(name, &definitions::to_v2(&schema))?;
        }
    }
    Ok(())
}

/// Parameters that stand in the table of the document, by their key there.
#[derive(Default)]
pub(super) struct Shared(pub(super) BTreeMap<&'static str, Value>);

impl Shared {
    /// `parameter` in place, or a reference to it in the table.
    fn put(&mut self, key: &'static str, parameter: Value) -> Value {
        if key.is_empty() {
            return parameter;
        }
        self.0.insert(key, parameter);
        json!({"$ref": format!("#/parameters/{key}")})
    }
}

fn path_item(item: &PathItem, shared: &mut Shared) -> Value {
    let mut out: Map<String, Value> = item
        .operations
        .iter()
        .map(|o| (o.method.as_str().to_owned(), operation(o, shared)))
        .collect();
    if !item.parameters.is_empty() {
        out.insert(
            "parameters".into(),
            item.parameters
                .iter()
                .map(|p| shared.put(p.shared, parameter(p)))
                .collect(),
        );
    }
    Value::Object(out)
}

fn operation(operation: &Operation, shared: &mut Shared) -> Value {
    let mut out = Map::new();
    out.insert("description".into(), operation.description.clone().into());
    if !operation.consumes.is_empty() {
        out.insert("consumes".into(), json!(operation.consumes));
    }
    out.insert("produces".into(), json!(operation.produces));
    out.insert("schemes".into(), json!(["https"]));
    out.insert("tags".into(), json!([operation.tag]));
    out.insert("operationId".into(), operation.id.clone().into());
    let parameters = operation_parameters(operation, shared);
    if !parameters.is_empty() {
        out.insert("parameters".into(), parameters.into());
    }
    let responses: Map<String, Value> = operation
        .responses
        .iter()
        .map(|(code, answer)| (code.to_string(), response(*code, answer)))
        .collect();
    out.insert("responses".into(), Value::Object(responses));
    if !operation.action.is_empty() {
        out.insert("x-kubernetes-action".into(), operation.action.into());
    }
    if let Some([group, version, kind]) = operation.gvk.as_ref().map(|gvk| gvk.each_ref().map(Name::as_str)) {
        let gvk = json!({"group": group, "kind": kind, "version": version});
        out.insert("x-kubernetes-group-version-kind".into(), gvk);
    }
    Value::Object(out)
}

/// By name; the body is a parameter like the others.
fn operation_parameters(operation: &Operation, shared: &mut Shared) -> Vec<Value> {
    let mut named: Vec<(&str, Value)> = operation
        .parameters
        .iter()
        .map(|p| (p.name.as_str(), shared.put(p.shared, parameter(p))))
        .collect();
    if let Some(body) = &operation.body {
        named.push(("body", shared.put(body.shared(), body_parameter(body))));
    }
    named.sort_by_key(|(name, _)| *name);
    named.into_iter().map(|(_, value)| value).collect()
}

fn parameter(parameter: &Parameter) -> Value {
    let mut out = Map::new();
    out.insert("uniqueItems".into(), true.into());
    out.insert("type".into(), parameter.ty.into());
    if !parameter.description.is_empty() {
        out.insert("description".into(), parameter.description.into());
    }
    out.insert("name".into(), parameter.name.as_str().into());
    out.insert("in".into(), parameter.location.as_str().into());
    if parameter.location == Location::Path {
        out.insert("required".into(), true.into());
    }
    Value::Object(out)
}

fn body_parameter(body: &Body) -> Value {
    let mut out = Map::new();
    out.insert("name".into(), "body".into());
    out.insert("in".into(), "body".into());
    if body.required() {
        out.insert("required".into(), true.into());
    }
    out.insert(
        "schema".into(),
        json!({"$ref": format!("{V2_REF}{}", body.definition())}),
    );
    Value::Object(out)
}

fn response(code: u16, answer: &Answer) -> Value {
    let mut out = Map::new();
    out.insert("description".into(), reason(code).into());
    let schema = match answer {
        Answer::Empty => return Value::Object(out),
        Answer::Text => json!({"type": "string"}),
        Answer::Object(definition) => json!({"$ref": format!("{V2_REF}{definition}")}),
    };
    out.insert("schema".into(), schema);
    Value::Object(out)
}
