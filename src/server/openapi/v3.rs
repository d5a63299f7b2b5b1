//! The documents of OpenAPI v3, one per group/version.

use std::collections::BTreeSet;
use std::io::{self, Write};

use keelson_machinery::reflect::Name;
use serde_json::{Map, Value, json};

use super::definitions::{self, GroupVersion, V3_REF};
use super::operations::{Answer, Body, Operation, PATCH_TYPES, PathItem};
use super::parameters::{Location, Parameter};
use super::paths::Section;
use super::v2::{self, Members};
use super::{Documents, key, object};

/// Writes one document. It has the definitions that its paths lead to.
pub(super) fn write(documents: &Documents, section: &Section, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"{\"openapi\":\"3.0.0\",\"info\":")?;
    serde_json::to_writer(&mut *out, &v2::info(&documents.info))?;
    out.write_all(b",\"paths\":")?;
    object(out, |member| paths(section, member))?;
    out.write_all(b",\"components\":{")?;
    let names = schema_names(documents, section);
    if !names.is_empty() {
        out.write_all(b"\"schemas\":{")?;
        schemas(documents, section, &names, out)?;
        out.write_all(b"},")?;
    }
    out.write_all(b"\"securitySchemes\":")?;
    serde_json::to_writer(&mut *out, &json!({"BearerToken": security_scheme()}))?;
    out.write_all(b"}}")
}

/// How a client says who it is.
pub(super) fn security_scheme() -> Value {
    json!({"type": "apiKey", "description": "Bearer token.", "name": "authorization", "in": "header"})
}

pub(super) fn paths(section: &Section, member: Members<'_>) -> io::Result<()> {
    let mut items = section.paths.iter();
    items.try_for_each(|item| member(&item.path, &path_item(item)))
}

/// Names of the definitions that the section's paths lead to.
pub(super) fn schema_names<'a>(documents: &'a Documents, section: &Section) -> BTreeSet<&'a str> {
    let roots: BTreeSet<String> = section.paths.iter().flat_map(PathItem::definitions).collect();
    let roots = roots
        .iter()
        .filter_map(|root| documents.definitions.get_key_value(root));
    definitions::reachable(&documents.definitions, roots.map(|(name, _)| name.as_str()))
}

/// The group/versions that a section's common kinds belong to.
pub(super) fn kinds(section: &Section) -> BTreeSet<GroupVersion<'static>> {
    section.group_version.into_iter().chain([("", "v1")]).collect()
}

/// The members of the object of schemas. Their texts are copied as they are, but for those of common kinds.
fn schemas(documents: &Documents, section: &Section, names: &BTreeSet<&str>, out: &mut dyn Write) -> io::Result<()> {
    let mut first = true;
    for name in names {
        let Some(schema) = documents.definitions.get(*name) else {
            continue;
        };
        key(out, &mut first, name)?;
        match definitions::common_kind(name) {
            Some(_) => serde_json::to_writer(&mut *out, &definitions::parsed(name, schema, &kinds(section))?)?,
            None => out.write_all(schema.get().as_bytes())?,
        }
    }
    Ok(())
}

fn path_item(item: &PathItem) -> Value {
    let mut out: Map<String, Value> = item
        .operations
        .iter()
        .map(|o| (o.method.as_str().to_owned(), operation(o)))
        .collect();
    if !item.parameters.is_empty() {
        out.insert("parameters".into(), item.parameters.iter().map(parameter).collect());
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
            operation.parameters.iter().map(parameter).collect(),
        );
    }
    if let Some(body) = &operation.body {
        out.insert("requestBody".into(), request_body(body));
    }
    let responses: Map<String, Value> = operation
        .responses
        .iter()
        .map(|(code, answer)| (code.to_string(), response(operation, *code, answer)))
        .collect();
    out.insert("responses".into(), Value::Object(responses));
    if !operation.action.is_empty() {
        out.insert("x-kubernetes-action".into(), operation.action.into());
    }
    if let Some([group, version, kind]) = operation.gvk.as_ref().map(|gvk| gvk.each_ref().map(Name::as_str)) {
        let gvk = json!({"group": group, "version": version, "kind": kind});
        out.insert("x-kubernetes-group-version-kind".into(), gvk);
    }
    Value::Object(out)
}

fn parameter(parameter: &Parameter) -> Value {
    let mut out = Map::new();
    out.insert("name".into(), parameter.name.as_str().into());
    out.insert("in".into(), parameter.location.as_str().into());
    if !parameter.description.is_empty() {
        out.insert("description".into(), parameter.description.into());
    }
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
    let schema = json!({"$ref": format!("{V3_REF}{}", body.definition())});
    out.insert("content".into(), content(types, &schema));
    if body.required() {
        out.insert("required".into(), true.into());
    }
    Value::Object(out)
}

fn response(operation: &Operation, code: u16, answer: &Answer) -> Value {
    let mut out = Map::new();
    out.insert("description".into(), reason(code).into());
    let schema = match answer {
        Answer::Empty => return Value::Object(out),
        Answer::Text => json!({"type": "string"}),
        Answer::Object(definition) => json!({"$ref": format!("{V3_REF}{definition}")}),
    };
    out.insert("content".into(), content(operation.produces, &schema));
    Value::Object(out)
}

fn content(types: &[&str], schema: &Value) -> Value {
    let mut types: Vec<&str> = types.to_vec();
    types.sort_unstable();
    types
        .into_iter()
        .map(|t| (t.to_owned(), json!({"schema": schema})))
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
