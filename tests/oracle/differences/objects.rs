//! Objects that are mutated: valid ones of every kind, several where a kind has forms with rules of their own, statuses
//! of theirs, and bodies of their subresources.

use keelson::api::SCHEME;
use keelson_machinery::reflect::MessageDesc;
use keelson_machinery::scheme::{KindDesc, TypeDesc};
use serde_json::Value;

use super::super::samples;
use super::super::server::version_path;

const FILE: &str = "oracle/differences/objects.json";

/// The objects of one kind.
pub struct Model {
    /// In names of requests.
    pub name: String,
    pub kind: &'static KindDesc,
    /// What is mutated.
    pub message: &'static MessageDesc,
    /// Where objects are made.
    pub collection: String,
    /// Paths whose fields are tried with another kind, such as those of templates of pods.
    pub leave: Vec<String>,
    /// Paths that alone are tried; empty: all.
    pub only: Vec<String>,
    /// How many messages deep fields are tried that the object does not have.
    pub depth: Option<usize>,
    pub objects: Vec<Value>,
    pub statuses: Vec<Value>,
    pub subresources: Vec<Subresource>,
}

/// Writes of a subresource.
pub struct Subresource {
    /// As the model of objects has it: of its body.
    pub model: Model,
    /// Which object's.
    pub of: usize,
    pub creates: bool,
    /// Whether its body is the object.
    pub is_own: bool,
    /// What is written: where it is made, the body; else what changes in the one that is read.
    pub body: Value,
    /// Whether it is the status that is mutated.
    pub is_status: bool,
}

impl Model {
    /// Whether a request is one to its objects.
    pub fn is_of(&self, request: &str) -> bool {
        let rest = request.strip_prefix(self.name.as_str());
        rest.is_some_and(|rest| rest.starts_with([' ', '#', '/']))
    }
}

/// All of them.
pub fn all() -> Vec<Model> {
    let text = std::fs::read_to_string(samples::data(FILE)).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
    rows.iter().map(model).collect()
}

fn texts(row: &Value, key: &str) -> Vec<String> {
    let list = row[key].as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn model(row: &Value) -> Model {
    let list = |key: &str| row[key].as_array().cloned().unwrap_or_default();
    let collection = row["path"].as_str().unwrap().to_owned();
    let short = collection.replace(&format!("/namespaces/{}/", samples::NAMESPACE), "/");
    let is_meant = |kind: &&KindDesc| short == format!("{}/{}", version_path(&kind.group, &kind.version), kind.plural);
    let kind = kinds()
        .find(is_meant)
        .unwrap_or_else(|| panic!("{collection} is no resource"));
    Model {
        name: row["name"].as_str().unwrap().to_owned(),
        kind,
        message: &kind.message,
        leave: texts(row, "leave"),
        only: texts(row, "only"),
        depth: row["depth"].as_u64().map(|depth| depth as usize),
        objects: list("objects"),
        statuses: list("statuses"),
        subresources: list("subresources").iter().map(|row| subresource(kind, row)).collect(),
        collection,
    }
}

fn kinds() -> impl Iterator<Item = &'static KindDesc> {
    let versions = SCHEME.groups.iter().flat_map(|group| group.versions);
    versions.flat_map(|version| version.kinds)
}

fn subresource(of: &'static KindDesc, row: &Value) -> Subresource {
    let name = row["name"].as_str().unwrap();
    let desc = of.subresources.iter().find(|s| s.name == *name).unwrap();
    let wanted = (&*desc.group, &*desc.version, &*desc.kind);
    let is_type = |ty: &&TypeDesc| (ty.group, ty.version, ty.kind) == wanted;
    let is_kind = |kind: &&KindDesc| (&*kind.group, &*kind.version, &*kind.kind) == wanted;
    let of_type = || SCHEME.types.iter().find(is_type).map(|ty| &*ty.message);
    let of_kind = || kinds().find(is_kind).map(|kind| &*kind.message);
    let is_own = desc.kind.is_empty() || desc.kind == of.kind;
    let message: &MessageDesc = match is_own {
        true => &of.message,
        false => of_type().or_else(of_kind).unwrap(),
    };
    Subresource {
        model: Model {
            name: name.to_owned(),
            kind: of,
            message,
            collection: String::new(),
            leave: texts(row, "leave"),
            only: texts(row, "only"),
            depth: row["depth"].as_u64().map(|depth| depth as usize),
            objects: Vec::new(),
            statuses: Vec::new(),
            subresources: Vec::new(),
        },
        of: row["of"].as_u64().unwrap_or_default() as usize,
        creates: desc.verbs.contains("create"),
        body: row["body"].clone(),
        is_own,
        is_status: row["part"] == "status",
    }
}
