//! A valid object of every kind that is stored: those of the recorded conversations, and of the kinds that these leave
//! out those of `tests/data/oracle/samples.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use keelson::api::SCHEME;
use keelson_machinery::scheme::KindDesc;
use serde_json::{Value, json};

use super::server::{Ask, Server, version_path};

/// The namespace of all objects.
pub const NAMESPACE: &str = "team";
/// What stands in names for a text of the run.
const UNIQUE: &str = "{uniq}";
/// The same as hexadecimal digits.
const HASH: &str = "{hash}";

/// An object of a kind.
pub struct Sample {
    pub kind: &'static KindDesc,
    /// With `{uniq}` in names.
    text: String,
}

impl Sample {
    /// The object, under names that `mark` makes different from those of others.
    pub fn object(&self, mark: &str) -> Value {
        let other = &format!("{}{}", mark[..1].to_uppercase(), &mark[1..]);
        let text = self.text.replace(UNIQUE, mark).replace("{Uniq}", other);
        let text = text.replace(
            HASH,
            &format!(
                "{:x}",
                mark.bytes().fold(1u16, |hash, b| hash.rotate_left(3) ^ u16::from(b))
            ),
        );
        let mut object: Value = serde_json::from_str(&text).unwrap();
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        if !self.text.contains(UNIQUE) && !self.text.contains(HASH) {
            object["metadata"]["name"] = format!("{name}-{mark}").into();
        }
        object
    }

    /// Where objects of the kind are made.
    pub fn collection(&self) -> String {
        let kind = self.kind;
        let namespace = if kind.namespaced {
            format!("/namespaces/{NAMESPACE}")
        } else {
            String::new()
        };
        format!(
            "{}{namespace}/{}",
            version_path(&kind.group, &kind.version),
            kind.plural
        )
    }

    /// `apps/deployments`; of the core group `pods`.
    pub fn resource(&self) -> String {
        resource(self.kind)
    }
}

/// `apps/deployments`; of the core group `pods`.
pub fn resource(kind: &KindDesc) -> String {
    match kind.group.as_str() {
        "" => kind.plural.to_string(),
        group => format!("{group}/{}", kind.plural),
    }
}

/// Where the data of these tests are.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// One sample of every stored resource, in one of its versions.
pub fn all() -> Vec<Sample> {
    let mut texts = own();
    for (key, text) in recorded() {
        texts.entry(key).or_insert(text);
    }
    let mut found: BTreeMap<String, Sample> = BTreeMap::new();
    for kind in kinds().filter(|kind| !kind.unstored && kind.verbs.contains("create")) {
        let key = (version_path(&kind.group, &kind.version), kind.plural.to_string());
        if let Some(text) = texts.get(&key) {
            let text = text.clone();
            found.entry(resource(kind)).or_insert(Sample { kind, text });
        }
    }
    let missing: Vec<String> = kinds()
        .filter(|kind| !kind.unstored && kind.verbs.contains("create"))
        .map(resource)
        .filter(|name| !found.contains_key(name))
        .collect();
    assert!(
        missing.is_empty(),
        "no sample in tests/data/oracle/samples.json of {missing:?}"
    );
    found.into_values().collect()
}

fn kinds() -> impl Iterator<Item = &'static KindDesc> {
    let versions = SCHEME.groups.iter().flat_map(|group| group.versions);
    versions
        .flat_map(|version| version.kinds)
        .filter(|kind| !kind.plural.is_empty())
}

/// Version path and plural → object, of the file of these tests.
fn own() -> BTreeMap<(String, String), String> {
    let text = std::fs::read_to_string(data("oracle/samples.json")).unwrap();
    let all: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    let key = |path: String| path.rsplit_once('/').map(|(v, p)| (v.to_owned(), p.to_owned()));
    all.into_iter()
        .map(|(path, object)| (key(path).unwrap(), object.to_string()))
        .collect()
}

/// The same, of the recorded conversations: what their first request makes.
fn recorded() -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(data("conversations/kinds-defaults")).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().ends_with("-rich.json") {
            continue;
        }
        let case: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let first = case["steps"]
            .as_array()
            .unwrap()
            .iter()
            .find(|step| step["method"] == "POST");
        let Some(first) = first.filter(|step| step["expect"]["status"] == 201) else {
            continue;
        };
        let path = first["path"].as_str().unwrap().replace("/namespaces/{ns}", "");
        let (version, plural) = path.rsplit_once('/').unwrap();
        let text = first["body"].to_string().replace("{ns}", NAMESPACE);
        found.insert((version.to_owned(), plural.to_owned()), text);
    }
    found
}

/// Makes what objects need around them.
pub async fn prepare(server: &Server) {
    let namespace = Ask::new("POST", "/api/v1/namespaces").body(&json!({"metadata": {"name": NAMESPACE}}));
    let account = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    let account = Ask::new("POST", account).body(&json!({"metadata": {"name": "default"}}));
    for made in [namespace, account] {
        let (status, told) = server.ask(&made).await;
        // A server that was recorded before has them.
        assert!(matches!(status, 201 | 409), "{status} {told}");
    }
}

/// Takes an object away again.
pub async fn remove(server: &Server, sample: &Sample, object: &Value) {
    let path = format!(
        "{}/{}",
        sample.collection(),
        object["metadata"]["name"].as_str().unwrap()
    );
    server
        .must(Ask::new("DELETE", format!("{path}?gracePeriodSeconds=0")))
        .await;
}
