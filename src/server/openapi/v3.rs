//! The documents of OpenAPI v3, one per group/version.

use serde_json::{Map, Value, json};

use super::Info;
use super::definitions::{self, Definitions, V3_REF};
use super::operations::{Body, Operation, PATCH_TYPES, PathItem};
use super::parameters::{Location, Parameter};
use super::paths::Section;

/// One document. `definitions` are those of the whole build; the document has those that its paths lead to.
pub(super) fn document(info: &Info, section: &Section, definitions: &Definitions) -> Value {
    let mut components = Map::new();
    let schemas = schemas(section, definitions);
    if !schemas.is_empty() {
        components.insert("schemas".into(), Value::Object(schemas));
    }
    components.insert("securitySchemes".into(), json!({"BearerToken": security_scheme(info)}));
    let paths: Map<String, Value> = section
        .paths
        .iter()
        .map(|item| (item.path.clone(), path_item(item)))
        .collect();
    json!({
        "openapi": "3.0.0",
        "info": {"title": info.title, "version": info.version},
        "paths": paths,
        "components": components,
    })
}

/// How a client says who it is.
pub(super) fn security_scheme(_: &Info) -> Value {
    json!({"type": "apiKey", "description": "Bearer token.", "name": "authorization", "in": "header"})
}

fn schemas(section: &Section, all: &Definitions) -> Map<String, Value> {
    let roots: Vec<String> = section.paths.iter().flat_map(PathItem::definitions).collect();
    let mut schemas: Definitions =
        definitions::reachable(all, roots.iter().map(String::as_str).filter(|r| all.contains_key(*r)))
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), all.get(name)?.clone())))
            .collect();
    let mut kinds = std::collections::BTreeSet::from([("", "v1")]);
    kinds.extend(section.group_version);
    definitions::stamp_common_kinds(&mut schemas, &kinds);
    schemas.into_iter().collect()
}

fn path_item(item: &PathItem) -> Value {
    let mut out: Map<String, Value> = item
        .operations
        .iter()
        .map(|o| (o.method.as_str().to_owned(), operation(o)))
        .collect();
    if !item.parameters.is_empty() {
        out.insert(
            "parameters".into(),
            item.parameters.iter().map(|p| parameter(p)).collect(),
        );
    }
    Value::Object(out)
}

fn operation(operation: &Operation) -> Value {
    let mut out = Map::new();
    out.insert("tags".into(), json!([operation.tag]));
    out.insert("description".into(), operation.description.clone().into());
    out.insert("operationId".into(), operation.id.clone().into());
    if !operation.parameters.is_empty() {
        out.insert(
            "parameters".into(),
            operation.parameters.iter().map(|p| parameter(p)).collect(),
        );
    }
    if let Some(body) = &operation.body {
        out.insert("requestBody".into(), request_body(body));
    }
    let responses: Map<String, Value> = operation
        .responses
        .iter()
        .map(|(code, name)| (code.to_string(), response(operation, *code, name)))
        .collect();
    out.insert("responses".into(), Value::Object(responses));
    if !operation.action.is_empty() {
        out.insert("x-kubernetes-action".into(), operation.action.into());
    }
    if let Some([group, version, kind]) = operation.gvk {
        let gvk = json!({"group": group, "version": version, "kind": kind});
        out.insert("x-kubernetes-group-version-kind".into(), gvk);
    }
    Value::Object(out)
}

fn parameter(parameter: &Parameter) -> Value {
    let mut out = Map::new();
    out.insert("name".into(), parameter.name.into());
    out.insert("in".into(), parameter.location.as_str().into());
    out.insert("description".into(), parameter.description.into());
    if parameter.location == Location::Path {
        out.insert("required".into(), true.into());
    }
    out.insert("schema".into(), json!({"type": parameter.ty, "uniqueItems": true}));
    Value::Object(out)
}

fn request_body(body: &Body) -> Value {
    let types = if *body == Body::Patch {
        PATCH_TYPES
    } else {
        super::operations::ANY_TYPE
    };
    let mut out = Map::new();
    out.insert("content".into(), content(types, &body.definition()));
    if body.required() {
        out.insert("required".into(), true.into());
    }
    Value::Object(out)
}

fn response(operation: &Operation, code: u16, definition: &str) -> Value {
    let mut out = Map::new();
    out.insert("description".into(), reason(code).into());
    if !definition.is_empty() {
        out.insert("content".into(), content(operation.produces, definition));
    }
    Value::Object(out)
}

fn content(types: &[&str], definition: &str) -> Value {
    let mut types: Vec<&str> = types.to_vec();
    types.sort_unstable();
    let schema = json!({"schema": {"$ref": format!("{V3_REF}{definition}")}});
    types
        .into_iter()
        .map(|t| (t.to_owned(), schema.clone()))
        .collect::<Map<String, Value>>()
        .into()
}

/// What a response is called; a response must have a description.
pub(super) fn reason(code: u16) -> &'static str {
    match code {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        401 => "Unauthorized",
        _ => "",
    }
}
