//! The document of OpenAPI v2 (Swagger): every group in one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Info;
use super::definitions::{self, Definitions, V2_REF};
use super::operations::{Body, Operation, PathItem};
use super::parameters::{Location, Parameter};
use super::paths::Section;
use super::v3::{reason, security_scheme};

/// The document of all `sections`.
pub(super) fn document(info: &Info, sections: &[Section], definitions: &Definitions) -> Value {
    let mut shared = Shared::default();
    let mut paths: BTreeMap<&str, Value> = BTreeMap::new();
    for item in sections.iter().flat_map(|s| &s.paths) {
        paths.insert(&item.path, path_item(item, &mut shared));
    }
    let paths: Map<String, Value> = paths.into_iter().map(|(path, item)| (path.to_owned(), item)).collect();
    let parameters: Map<String, Value> = shared.0.into_iter().map(|(name, p)| (name.to_owned(), p)).collect();
    json!({
        "swagger": "2.0",
        "info": {"title": info.title, "version": info.version},
        "paths": paths,
        "definitions": schemas(sections, definitions),
        "parameters": parameters,
        "securityDefinitions": {"BearerToken": security_scheme(info)},
        "security": [{"BearerToken": []}],
    })
}

/// Parameters that stand in the table of the document, by their key there.
#[derive(Default)]
struct Shared(BTreeMap<&'static str, Value>);

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

fn schemas(sections: &[Section], all: &Definitions) -> Map<String, Value> {
    let roots: Vec<String> = sections
        .iter()
        .flat_map(|s| &s.paths)
        .flat_map(PathItem::definitions)
        .collect();
    let mut schemas: Definitions =
        definitions::reachable(all, roots.iter().map(String::as_str).filter(|r| all.contains_key(*r)))
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), definitions::to_v2(all.get(name)?))))
            .collect();
    let mut kinds: BTreeSet<(&str, &str)> = sections.iter().filter_map(|s| s.group_version).collect();
    kinds.insert(("", "v1"));
    definitions::stamp_common_kinds(&mut schemas, &kinds);
    schemas.into_iter().collect()
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
    out.insert("consumes".into(), json!(operation.consumes));
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
        .map(|(code, name)| (code.to_string(), response(*code, name)))
        .collect();
    out.insert("responses".into(), Value::Object(responses));
    if !operation.action.is_empty() {
        out.insert("x-kubernetes-action".into(), operation.action.into());
    }
    if let Some([group, version, kind]) = operation.gvk {
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
        .map(|p| (p.name, shared.put(p.shared, parameter(p))))
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
    out.insert("description".into(), parameter.description.into());
    out.insert("name".into(), parameter.name.into());
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

fn response(code: u16, definition: &str) -> Value {
    let mut out = Map::new();
    out.insert("description".into(), reason(code).into());
    if !definition.is_empty() {
        out.insert("schema".into(), json!({"$ref": format!("{V2_REF}{definition}")}));
    }
    Value::Object(out)
}
