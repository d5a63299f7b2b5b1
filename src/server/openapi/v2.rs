//! The document of OpenAPI v2 (Swagger): every group in one.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::sync::Arc;

use keelson_machinery::reflect::Name;
use keelson_registry::OpenApiForm;
use serde_json::{Map, Value, json};

use super::definitions::{self, Definitions, Lookup, V2_REF};
use super::operations::{Answer, Body, Operation, PathItem};
use super::parameters::{Location, Parameter};
use super::sections::{Part, Section};
use super::v3::{reason, security_scheme};
use super::{Encoding, Info, Kept, Made, Model, key, protobuf};
use crate::document::{Document, Joining, Newest, Piece, Writer};

/// Takes the members of an object one by one: their names and values.
pub(super) type Members<'a> = &'a mut dyn FnMut(&str, &Value) -> io::Result<()>;

const JSON: &str = "application/json";
pub(super) const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The document in one encoding, joined from what belongs to each part of the catalog.
pub(super) struct Joined {
    encoding: Encoding,
    parts: Kept<Pieces>,
    /// The definitions of the build that all parts together lead to, under a hash of their names.
    of_the_build: Newest<Piece>,
    document: Newest<Made>,
}

/// What belongs to one part.
struct Pieces {
    /// Its first path. No path of another part stands between its own.
    first: String,
    paths: Piece,
    /// Parameters that it shares with others, by their key, as JSON.
    parameters: BTreeMap<&'static str, String>,
    /// Names of the definitions of the build that it leads to.
    names: BTreeSet<String>,
    /// Definitions of kinds that are made at run time.
    own: Piece,
}

impl Joined {
    pub(super) fn new(encoding: Encoding) -> Joined {
        Joined {
            encoding,
            parts: Kept::default(),
            of_the_build: Newest::default(),
            document: Newest::default(),
        }
    }

    pub(super) fn document(&self, model: &Model) -> io::Result<Arc<Made>> {
        let served = model.catalog.served();
        self.document.get(served.generation, || {
            let (parts, lookup) = (model.parts(&served), model.definitions.lookup());
            let pieces = parts.iter().map(|part| {
                self.parts.get(part.key(), || {
                    self.pieces(model, &part.section(&served, OpenApiForm::V2)?, &lookup)
                })
            });
            let mut pieces = pieces.collect::<io::Result<Vec<_>>>()?;
            pieces.sort_by(|a, b| a.first.cmp(&b.first));
            self.parts.retain(parts.iter().map(Part::key));
            let names: BTreeSet<&str> = pieces.iter().flat_map(|part| &part.names).map(String::as_str).collect();
            let of_the_build = self
                .of_the_build
                .get(hash(&names), || self.definitions_of_the_build(model, &names, &lookup))?;
            self.join(model, &pieces, &of_the_build)
        })
    }

    fn pieces(&self, model: &Model, section: &Section, lookup: &Lookup<'_>) -> io::Result<Pieces> {
        let (mut paths, mut own, mut shared) = (self.members(), self.members(), Shared::default());
        for item in &section.paths {
            let value = path_item(item, &mut shared);
            paths.add(&item.path, &value, || protobuf::v2_path(&item.path, &value))?;
        }
        let (mut names, kinds) = (BTreeSet::new(), section.kinds(model));
        for (name, schema) in section.definitions(lookup)? {
            if section.own.contains_key(&name) {
                let schema = definitions::parsed(&name, &schema, &kinds)?;
                own.add(&name, &schema, || protobuf::v2_definition(&name, &schema))?;
            } else {
                names.insert(name);
            }
        }
        Ok(Pieces {
            first: section.paths.first().map(|item| item.path.clone()).unwrap_or_default(),
            paths: paths.out.finish()?,
            parameters: shared.0.iter().map(|(key, value)| (*key, value.to_string())).collect(),
            names,
            own: own.out.finish()?,
        })
    }

    fn definitions_of_the_build(
        &self,
        model: &Model,
        names: &BTreeSet<&str>,
        lookup: &Lookup<'_>,
    ) -> io::Result<Piece> {
        let mut out = self.members();
        for (name, schema) in lookup.closure(names.iter().copied(), &Definitions::new())? {
            let schema = definitions::to_v2(&definitions::parsed(&name, &schema, &model.known)?);
            out.add(&name, &schema, || protobuf::v2_definition(&name, &schema))?;
        }
        out.out.finish()
    }

    fn join(&self, model: &Model, parts: &[Arc<Pieces>], of_the_build: &Piece) -> io::Result<Made> {
        let mut parameters = BTreeMap::new();
        for (key, text) in parts.iter().flat_map(|part| &part.parameters) {
            parameters.entry(*key).or_insert(text.as_str());
        }
        let paths: Vec<&Piece> = parts.iter().map(|part| &part.paths).collect();
        let own = parts.iter().map(|part| &part.own);
        let definitions: Vec<&Piece> = std::iter::once(of_the_build).chain(own).collect();
        let document = match self.encoding {
            Encoding::Json => join_json(&model.info, &paths, &definitions, &parameters)?,
            Encoding::Protobuf => protobuf::v2(&model.info, &paths, &definitions, &parameters)?,
        };
        Ok(model.made(document))
    }

    fn members(&self) -> Written {
        Written {
            encoding: self.encoding,
            out: Writer::new(),
            first: true,
        }
    }
}

/// Members of an object in one encoding: of JSON without the brackets.
struct Written {
    encoding: Encoding,
    out: Writer,
    first: bool,
}

impl Written {
    fn add(&mut self, name: &str, value: &Value, protobuf: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<()> {
        match self.encoding {
            Encoding::Json => {
                key(&mut self.out, &mut self.first, name)?;
                Ok(serde_json::to_writer(&mut self.out, value)?)
            }
            Encoding::Protobuf => self.out.write_all(&protobuf()?),
        }
    }
}

fn hash(names: &BTreeSet<&str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    names.hash(&mut hasher);
    hasher.finish()
}

fn join_json(
    info: &Info,
    paths: &[&Piece],
    definitions: &[&Piece],
    parameters: &BTreeMap<&'static str, &str>,
) -> io::Result<Document> {
    let mut out = Joining::new();
    out.bytes(format!("{{\"swagger\":\"2.0\",\"info\":{},\"paths\":{{", info_of(info)).as_bytes());
    members(&mut out, paths);
    out.bytes(b"},\"definitions\":{");
    members(&mut out, definitions);
    let mut tail = b"},\"parameters\":{".to_vec();
    let mut first = true;
    for (name, value) in parameters {
        key(&mut tail, &mut first, name)?;
        tail.extend_from_slice(value.as_bytes());
    }
    write!(
        tail,
        "}},\"securityDefinitions\":{},\"security\":[{{\"BearerToken\":[]}}]}}",
        security_definitions()
    )?;
    out.bytes(&tail);
    Ok(out.finish(JSON))
}

fn members(out: &mut Joining, pieces: &[&Piece]) {
    let mut first = true;
    for piece in pieces.iter().filter(|piece| piece.len() > 0) {
        if !std::mem::take(&mut first) {
            out.bytes(b",");
        }
        out.piece(piece);
    }
}

pub(super) fn info_of(info: &Info) -> Value {
    json!({"title": info.title, "version": info.version})
}

fn security_definitions() -> Value {
    json!({"BearerToken": security_scheme()})
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
