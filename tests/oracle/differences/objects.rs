//! Objects that are mutated: valid ones of every kind, several where a kind has forms with rules of their own, and
//! statuses of theirs.

use keelson::api::SCHEME;
use keelson_machinery::scheme::KindDesc;
use serde_json::Value;

use super::super::samples;
use super::super::server::version_path;

const FILE: &str = "oracle/differences/objects.json";

/// The objects of one kind.
pub struct Model {
    /// In names of requests.
    pub name: String,
    pub kind: &'static KindDesc,
    /// Where objects are made.
    pub collection: String,
    /// Paths whose fields are tried with another kind, such as those of templates of pods.
    pub leave: Vec<String>,
    /// How many messages deep fields are tried that the object does not have.
    pub depth: Option<usize>,
    pub objects: Vec<Value>,
    pub statuses: Vec<Value>,
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

fn model(row: &Value) -> Model {
    let list = |key: &str| row[key].as_array().cloned().unwrap_or_default();
    let collection = row["path"].as_str().unwrap().to_owned();
    let short = collection.replace(&format!("/namespaces/{}/", samples::NAMESPACE), "/");
    let is_meant = |kind: &&KindDesc| short == format!("{}/{}", version_path(&kind.group, &kind.version), kind.plural);
    let versions = SCHEME.groups.iter().flat_map(|group| group.versions);
    let kind = versions.flat_map(|version| version.kinds).find(is_meant);
    Model {
        name: row["name"].as_str().unwrap().to_owned(),
        kind: kind.unwrap_or_else(|| panic!("{collection} is no resource")),
        leave: list("leave")
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        depth: row["depth"].as_u64().map(|depth| depth as usize),
        objects: list("objects"),
        statuses: list("statuses"),
        collection,
    }
}
