//! The documents of OpenAPI v3, one per group/version.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use keelson_machinery::reflect::Name;
use keelson_registry::OpenApiForm;
use serde_json::{Map, Value, json};

use super::definitions::{self, Definitions, DefinitionsError, GroupVersion, Lookup, V3_REF};
use super::operations::{Answer, Body, Operation, PathItem};
use super::parameters::{Location, Parameter};
use super::sections::{self, Part, Section};
use super::v2::{self, Members};
use super::{Info, Kept, Made, Model, key, object, protobuf};
use crate::discovery::Served;
use crate::document::{Document, Newest, Piece, Writer};

/// Groups of the other servers of Kubernetes, and of reviews that none of them serves: the API extensions server does
/// not know them.
const OF_OTHERS: [&str; 4] = [
    "admission.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "imagepolicy.k8s.io",
];

const JSON: &str = "application/json";
pub(super) const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";

/// The documents, each of which is made when it is asked for and kept until its version changes.
#[derive(Default)]
pub(super) struct Single {
    json: Kept<Made>,
    protobuf: Kept<Made>,
    index: Newest<String>,
    /// The generation of the catalog for which the others hold nothing that is no more.
    swept: AtomicU64,
}

impl Single {
    /// One document as JSON; `None`: there is none of that name.
    pub(super) fn json(&self, model: &Model, name: &str) -> io::Result<Option<Arc<Made>>> {
        let served = model.catalog.served();
        let Some(part) = sections::part(&served, model.info.issuer, name) else {
            return Ok(None);
        };
        let made = self.json_of(model, &served, &part, &model.definitions.lookup())?;
        self.sweep(model, &served);
        Ok(Some(made))
    }

    /// Lets go of documents of what has changed or gone.
    fn sweep(&self, model: &Model, served: &Served) {
        let swept = self.swept.swap(served.generation, Ordering::Relaxed);
        if swept != served.generation {
            let parts = model.parts(served);
            self.json.retain(parts.iter().map(Part::key));
            self.protobuf.retain(parts.iter().map(Part::key));
        }
    }

    fn json_of(&self, model: &Model, served: &Served, part: &Part<'_>, lookup: &Lookup<'_>) -> io::Result<Arc<Made>> {
        self.json.get(part.key(), || {
            let section = part.section(served, OpenApiForm::V3)?;
            let definitions = section.definitions(lookup)?;
            let mut out = Writer::new();
            write(model, &section, &definitions, &mut out)?;
            Ok(model.made(out.finish()?.alone(JSON)))
        })
    }

    /// One document in protobuf; its tag is that of the JSON form.
    pub(super) fn protobuf(&self, model: &Model, name: &str) -> io::Result<Option<Arc<Made>>> {
        let served = model.catalog.served();
        let Some(part) = sections::part(&served, model.info.issuer, name) else {
            return Ok(None);
        };
        let lookup = model.definitions.lookup();
        let json = self.json_of(model, &served, &part, &lookup)?;
        let made = self.protobuf.get(part.key(), || {
            let section = part.section(&served, OpenApiForm::V3)?;
            let bytes = protobuf::v3(model, &section, &section.definitions(&lookup)?)?;
            let document = Piece::new(&bytes)?.alone(PROTOBUF).encoding_of(json.document.hash());
            Ok::<_, io::Error>(Made { document, at: json.at })
        })?;
        self.sweep(model, &served);
        Ok(Some(made))
    }

    /// The list of all documents.
    pub(super) fn index(&self, model: &Model) -> io::Result<Arc<String>> {
        let served = model.catalog.served();
        self.index.get(served.generation, || {
            let (parts, lookup) = (model.parts(&served), model.definitions.lookup());
            let mut text = String::from("{\"paths\":{");
            for (n, part) in parts.iter().enumerate() {
                let made = self.json_of(model, &served, part, &lookup)?;
                let comma = if n == 0 { "" } else { "," };
                let (name, url) = (&part.name, url(&part.name, &made.document));
                text.push_str(&format!("{comma}\"{name}\":{{\"serverRelativeURL\":\"{url}\"}}"));
            }
            text.push_str("}}");
            self.sweep(model, &served);
            Ok(text)
        })
    }
}

/// Where a document stands for as long as it does not change.
pub(super) fn url(name: &str, document: &Document) -> String {
    format!("/openapi/v3/{name}?hash={}", document.hash())
}

impl Section {
    /// The definitions that the paths lead to.
    pub(super) fn definitions(&self, lookup: &Lookup<'_>) -> Result<Definitions, DefinitionsError> {
        let roots: BTreeSet<String> = self.paths.iter().flat_map(PathItem::definitions).collect();
        lookup.closure(roots.iter().map(String::as_str), &self.own)
    }

    /// The group/versions that its common kinds belong to.
    pub(super) fn kinds<'a>(&'a self, model: &'a Model) -> BTreeSet<GroupVersion<'a>> {
        if self.is_custom {
            let known = model.known.iter().copied();
            return known.filter(|(group, _)| !OF_OTHERS.contains(group)).collect();
        }
        let own = self.group_version.as_ref();
        let own = own.map(|(group, version)| (group.as_str(), version.as_str()));
        own.into_iter().chain([("", "v1")]).collect()
    }
}

/// What the document says of the whole; the API extensions server has its own.
pub(super) fn info_of(model: &Model, section: &Section) -> Info {
    match section.is_custom {
        true => Info {
            title: "Kubernetes CRD Swagger".to_owned(),
            version: "v0.1.0".to_owned(),
            ..model.info.clone()
        },
        false => model.info.clone(),
    }
}

/// Writes one document.
fn write(model: &Model, section: &Section, definitions: &Definitions, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"{\"openapi\":\"3.0.0\",\"info\":")?;
    serde_json::to_writer(&mut *out, &v2::info_of(&info_of(model, section)))?;
    out.write_all(b",\"paths\":")?;
    object(out, |member| paths(section, member))?;
    out.write_all(b",\"components\":{")?;
    if !definitions.is_empty() {
        out.write_all(b"\"schemas\":{")?;
        schemas(&section.kinds(model), definitions, out)?;
        out.write_all(if section.is_custom { b"}" } else { b"}," })?;
    }
    if !section.is_custom {
        out.write_all(b"\"securitySchemes\":")?;
        serde_json::to_writer(&mut *out, &json!({"BearerToken": security_scheme()}))?;
    }
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

/// The members of the object of schemas. Their texts are copied as they are, but for those of common kinds.
fn schemas(kinds: &BTreeSet<GroupVersion<'_>>, definitions: &Definitions, out: &mut dyn Write) -> io::Result<()> {
    let mut first = true;
    for (name, schema) in definitions {
        key(out, &mut first, name)?;
        match definitions::common_kind(name) {
            Some(_) => serde_json::to_writer(&mut *out, &definitions::parsed(name, schema, kinds)?)?,
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
        out.insert("requestBody".into(), request_body(body, operation.consumes));
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

fn request_body(body: &Body, types: &[&str]) -> Value {
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
