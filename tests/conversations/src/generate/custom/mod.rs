//! Custom resources: definitions with schemas of all kinds, and requests for objects of them.

mod chance;
pub(super) mod formats;
mod requests;
mod rule;
pub(super) mod rules;
mod schema;
mod value;

use serde_json::{Value, json};

use chance::Chance;
use requests::Talk;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Requests of one conversation.
const REQUESTS: usize = 24;
/// Definitions of one conversation that are only tried.
const TRIED: usize = 20;

/// A case about the objects of one definition.
pub(super) fn objects(seed: u64, number: u64, name: &str) -> Value {
    let mut chance = Chance::of(seed, number);
    let schema = root(&mut chance);
    let has_status = chance.percent(70);
    let definition = definition("v1", &schema, has_status);
    let mut talk = Talk::about(schema, has_status);
    talk.step(json!({"method": "POST", "path": DEFINITIONS, "body": definition,
        "only": ["kind", "reason", "details.causes", "spec"]}));
    talk.step(json!({"path": "/apis/{uniq}.example.com/v1/things", "compare": "none",
        "until": {"status": 200}, "within": 6}));
    talk.begin(&mut chance);
    for number in 0..REQUESTS {
        if number == REQUESTS / 2 && chance.percent(60) {
            let schema = root(&mut chance);
            talk.change_schema(schema);
        }
        talk.request(&mut chance);
    }
    case(name, talk.into_steps())
}

/// A case about definitions, most of which are bad ones; nothing is made.
pub(super) fn definitions(seed: u64, number: u64, name: &str) -> Value {
    let mut chance = Chance::of(seed, number);
    let mut steps = Vec::new();
    for number in 0..TRIED {
        let mut schema = root(&mut chance);
        for _ in 0..chance.within(0, 2) {
            requests::harm(&mut chance, &mut schema);
        }
        let definition = definition("v1", &schema, chance.percent(30));
        steps.push(
            json!({"id": format!("{number:02}"), "method": "POST", "path": format!("{DEFINITIONS}?dryRun=All"),
            "body": definition, "sortBy": {"details.causes": ["field", "reason", "message"]}}),
        );
    }
    case(name, steps)
}

/// Steps with numbers as their ids.
fn numbered(mut steps: Vec<Value>) -> Vec<Value> {
    for (number, step) in steps.iter_mut().enumerate() {
        step["id"] = json!(format!("{number:02}"));
    }
    steps
}

fn case(name: &str, steps: Vec<Value>) -> Value {
    json!({"name": name, "about": "generated", "steps": steps,
        "cleanup": [{"path": format!("{DEFINITIONS}/things.{{uniq}}.example.com")}]})
}

/// The schema of a kind.
fn root(chance: &mut Chance) -> Value {
    let (mut spec, mut status) = (schema::schema(chance, 3), schema::schema(chance, 2));
    for part in [&mut spec, &mut status] {
        // Replicas and selectors stand in objects.
        if part["type"] == "object" && part["properties"].is_object() {
            part["properties"]["replicas"] = json!({"type": "integer"});
        }
    }
    let mut root = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    if chance.percent(10) {
        root["x-kubernetes-validations"] = json!([{"rule": chance.pick(&[
            "self.metadata.name.size() < 3", "has(self.spec) || self.kind == 'Thing'",
            "self.metadata.name == oldSelf.metadata.name", "has(self.spec) == has(oldSelf.spec)"])}]);
    }
    root
}

fn definition(version: &str, schema: &Value, has_status: bool) -> Value {
    let mut own = json!({"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [
            {"name": "A", "type": "string", "jsonPath": ".spec.a"},
            {"name": "B", "type": "integer", "jsonPath": ".spec.b", "priority": 1},
            {"name": "All", "type": "string", "jsonPath": ".status"},
            {"name": "Item", "type": "number", "jsonPath": ".spec.c[0]"}]});
    if has_status {
        own["subresources"] = json!({"status": {}, "scale": {
            "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}});
    }
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.{uniq}.example.com"},
        "spec": {"group": "{uniq}.example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [own]}})
}
