//! Valid objects of each kind.

use std::collections::BTreeMap;
use std::path::Path;

use keelson_machinery::reflect::{FieldDesc, Flags};
use keelson_machinery::scheme::KindDesc;
use serde_json::{Value, json};

use super::bodies::first_of;
use super::spots::Pair;

/// The namespace of the samples.
pub const NAMESPACE: &str = "team";

/// Of kinds that the oracle has none of.
fn own() -> Vec<(&'static str, Value)> {
    let resource = json!({
        "verb": "get", "resource": "pods", "namespace": "default",
        "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]},
        "fieldSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]},
    });
    let review = json!({"spec": {"user": "u", "groups": ["g"], "extra": {"k": ["v"]}, "resourceAttributes": resource}});
    let schema = json!({
        "type": "object", "required": ["spec"],
        "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "minimum": 1, "default": 1, "enum": [1, 2]},
            "names": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}},
        }, "x-kubernetes-validations": [{"rule": "self.size > 0", "message": "m"}]}},
    });
    let column = json!({"name": "Size", "type": "integer", "jsonPath": ".spec.size"});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
                "shortNames": ["w"], "categories": ["all"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}}, "additionalPrinterColumns": [column],
                "selectableFields": [{"jsonPath": ".spec.size"}]}],
        },
    });
    vec![
        ("/apis/authorization.k8s.io/v1/subjectaccessreviews", review),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition),
    ]
}

/// Valid objects of kinds, by the paths of their collections.
pub struct Samples(BTreeMap<String, Vec<Value>>);

impl Samples {
    /// Those of the oracle, with their statuses.
    pub fn read() -> Samples {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/oracle");
        let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
        let rows: Vec<Value> = serde_json::from_slice(&read("differences/objects.json")).unwrap();
        let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for row in rows {
            let of = |key: &str| row[key].as_array().cloned().unwrap_or_default();
            let path = row["path"].as_str().unwrap().replace("/namespaces/team/", "/");
            let (mut objects, statuses) = (of("objects"), of("statuses"));
            for (object, status) in objects.iter_mut().zip(statuses) {
                let status = if status["status"].is_object() {
                    &status["status"]
                } else {
                    &status
                };
                object["status"] = status.clone();
            }
            all.entry(path).or_default().extend(objects);
        }
        let others: BTreeMap<String, Value> = serde_json::from_slice(&read("samples.json")).unwrap();
        for (path, object) in others {
            all.entry(path).or_default().push(object);
        }
        for (path, object) in own() {
            all.entry(path.to_owned()).or_default().push(object);
        }
        Samples(all)
    }

    pub fn has(&self, kind: &KindDesc) -> bool {
        self.0.contains_key(&path_of(kind))
    }

    /// The object of the pair's kind that has most of what leads to its places, under a name of its own.
    pub fn best(&self, pair: &Pair, mark: usize) -> Value {
        let [one, other] = &pair.spots;
        let ways = [&one.path, &other.path].map(|path| [pair.above.as_slice(), path.as_slice()].concat());
        let of_kind = self.0.get(&path_of(pair.kind));
        let known = |object: &&Value| ways.iter().map(|way| known_steps(object, way)).sum::<usize>();
        let mut object = of_kind
            .and_then(|all| all.iter().rev().max_by_key(known))
            .cloned()
            .unwrap_or_else(|| {
                let version = match pair.kind.group.as_str() {
                    "" => pair.kind.version.to_string(),
                    group => format!("{group}/{}", pair.kind.version),
                };
                json!({"apiVersion": version, "kind": pair.kind.kind.as_str(), "metadata": {"name": "grown"}})
            });
        if pair.kind.unstored {
            object["metadata"] = json!({});
            return object;
        }
        let name = object["metadata"]["name"]
            .as_str()
            .unwrap_or("grown")
            .replace("{uniq}", "grown");
        // Some names have to be what they are: addresses, versions of groups, signers.
        let is_free = !name.contains(['.', ':']);
        object["metadata"]["name"] = if is_free { format!("{name}-{mark}") } else { name }.into();
        object
    }
}

fn path_of(kind: &KindDesc) -> String {
    match kind.group.as_str() {
        "" => format!("/api/{}/{}", kind.version, kind.plural),
        group => format!("/apis/{group}/{}/{}", kind.version, kind.plural),
    }
}

/// How many steps of a way an object has.
fn known_steps(object: &Value, way: &[&'static FieldDesc]) -> usize {
    let mut at = Some(object);
    let taken = way.iter().take_while(|field| {
        if !field.flags.has(Flags::INLINE) {
            at = at.and_then(|value| value.get(field.json.as_str()));
            at = at.and_then(|value| first_of(&field.ty, value));
        }
        at.is_some()
    });
    taken.count()
}
