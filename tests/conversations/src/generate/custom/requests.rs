//! Requests for the objects of a generated definition.

use serde_json::{Map, Value, json};

use super::chance::Chance;
use super::value::{pointer, value};
use super::{DEFINITIONS, rule};

const COLLECTION: &str = "/apis/{uniq}.example.com/v1/namespaces/{ns}/things";
const VALIDATION: [&str; 4] = [
    "",
    "fieldValidation=Strict",
    "fieldValidation=Warn",
    "fieldValidation=Ignore",
];
const APPLY: &str = "application/apply-patch+yaml";
/// How many values in a hundred are wrong ones.
const WILDNESS: [usize; 4] = [0, 0, 3, 12];

/// The steps of a conversation as far as they go.
pub struct Talk {
    schema: Value,
    has_status: bool,
    steps: Vec<Value>,
}

impl Talk {
    pub fn about(schema: Value, has_status: bool) -> Talk {
        Talk {
            schema,
            has_status,
            steps: Vec::new(),
        }
    }

    pub fn into_steps(self) -> Vec<Value> {
        self.steps
    }

    /// Adds a request; the order of causes is chance.
    pub fn step(&mut self, mut step: Value) {
        step["id"] = json!(format!("{:02}", self.steps.len()));
        if step.get("compare").is_none() {
            step["sortBy"] = json!({"details.causes": ["field", "reason", "message"]});
        }
        self.steps.push(step);
    }

    /// Another schema from now on; the real server needs a moment for it.
    pub fn change_schema(&mut self, schema: Value) {
        let path = "/spec/versions/0/schema/openAPIV3Schema";
        self.step(
            json!({"method": "PATCH", "path": format!("{DEFINITIONS}/things.{{uniq}}.example.com"),
            "headers": {"Content-Type": "application/json-patch+json"},
            "body": [{"op": "replace", "path": path, "value": schema}],
            "only": ["kind", "reason", "details.causes"]}),
        );
        self.step(json!({"sleep": 1.5}));
        self.schema = schema;
    }

    /// Makes the objects that all requests are about.
    pub fn begin(&mut self, chance: &mut Chance) {
        for name in ["a", "b"] {
            let object = self.object(chance, name, 0);
            self.step(json!({"method": "POST", "path": COLLECTION, "body": object}));
        }
        let bare = json!({"apiVersion": "{uniq}.example.com/v1", "kind": "Thing", "metadata": {"name": "c"}});
        self.step(json!({"method": "POST", "path": COLLECTION, "body": bare}));
    }

    /// Any request.
    pub fn request(&mut self, chance: &mut Chance) {
        let name = chance.pick(&["a", "b", "c", "d"]);
        let wildness = chance.one_of(&WILDNESS);
        let status = self.has_status && chance.percent(25);
        let below = if status { "/status" } else { "" };
        match chance.below(13) {
            0 | 1 => self.create(chance, wildness),
            2 | 3 => self.replace(chance, (name, below), wildness),
            4 | 5 => self.merge(chance, (name, below), wildness),
            6 | 7 => self.json_patch(chance, (name, below), wildness),
            8 | 9 => self.apply(chance, (name, below), wildness),
            10 => self.meddle(chance, (name, below)),
            _ => self.read(chance, name),
        }
    }

    fn object(&self, chance: &mut Chance, name: &str, wildness: usize) -> Value {
        let mut object = json!({"apiVersion": "{uniq}.example.com/v1", "kind": "Thing", "metadata": {"name": name}});
        for part in ["spec", "status"] {
            if chance.percent(90) {
                object[part] = value(chance, &self.schema["properties"][part], wildness);
            }
        }
        if chance.percent(wildness) {
            object["extra"] = json!({"x": [1, null]});
        }
        object
    }

    fn create(&mut self, chance: &mut Chance, wildness: usize) {
        let name = chance.pick(&["d", "e", "f", "a"]);
        let object = self.object(chance, name, wildness);
        let path = with_query(COLLECTION, chance.pick(&VALIDATION));
        self.step(json!({"method": "POST", "path": path, "body": object}));
    }

    fn replace(&mut self, chance: &mut Chance, (name, below): (&str, &str), wildness: usize) {
        let mut object = self.object(chance, name, wildness);
        if chance.percent(90) {
            let version = format!("version{}", self.steps.len());
            self.step(json!({"path": format!("{COLLECTION}/{name}"),
                "capture": {version.clone(): "metadata.resourceVersion"}}));
            object["metadata"]["resourceVersion"] = json!(format!("{{{version}}}"));
        }
        let path = with_query(&format!("{COLLECTION}/{name}{below}"), chance.pick(&VALIDATION));
        self.step(json!({"method": "PUT", "path": path, "body": object}));
    }

    fn merge(&mut self, chance: &mut Chance, (name, below): (&str, &str), wildness: usize) {
        let mut object = self.object(chance, name, wildness);
        let mut patch = Map::new();
        for part in ["spec", "status", "extra"] {
            let own = object[part].take();
            if !own.is_null() || chance.percent(5) {
                patch.insert(part.to_owned(), without_some(chance, own));
            }
        }
        self.patch(
            chance,
            (name, below),
            ("application/merge-patch+json", Value::Object(patch)),
            "",
        );
    }

    fn json_patch(&mut self, chance: &mut Chance, at: (&str, &str), wildness: usize) {
        let mut operations = Vec::new();
        for _ in 0..chance.within(1, 3) {
            let (path, schema) = pointer(chance, &self.schema);
            let own = value(chance, &schema, wildness);
            operations.push(match chance.below(8) {
                0 => json!({"op": "remove", "path": path}),
                1 => json!({"op": "replace", "path": path, "value": own}),
                2 => json!({"op": "test", "path": path, "value": own}),
                3 => json!({"op": "copy", "from": "/spec", "path": path}),
                _ => json!({"op": "add", "path": path, "value": own}),
            });
        }
        self.patch(chance, at, ("application/json-patch+json", operations.into()), "");
    }

    /// Says who owns what, most of it wrong.
    fn meddle(&mut self, chance: &mut Chance, at: (&str, &str)) {
        let version = json!("{uniq}.example.com/v1");
        let mut entry = json!({"manager": "one", "operation": "Apply", "apiVersion": version, "fieldsType": "FieldsV1",
            "time": "2024-01-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:a": {}}}});
        let wrong = [
            ("operation", json!("Update")),
            ("operation", json!("Foo")),
            ("apiVersion", json!("v1")),
            ("apiVersion", json!("")),
            ("fieldsType", json!("FieldsV2")),
            ("fieldsV1", Value::Null),
            ("fieldsV1", json!({})),
            ("fieldsV1", json!({"f:spec": 1})),
            ("fieldsV1", json!({"spec": {}})),
            ("fieldsV1", json!("x")),
            ("fieldsV1", json!({"f:spec": {"k:{\"a\":1}": {}, "i:0": {}, "v:1": {}}})),
            ("time", json!("x")),
            ("time", Value::Null),
            ("subresource", json!("status")),
            ("manager", json!(1)),
        ];
        for _ in 0..chance.within(0, 2) {
            let (field, said) = chance.one_of(&wrong);
            entry[field] = said;
        }
        let entries = chance.one_of(&[
            json!([entry]),
            json!([entry, entry]),
            json!([]),
            json!([{}]),
            Value::Null,
            json!("x"),
            json!({}),
        ]);
        let mut patch = json!({"metadata": {"managedFields": entries}});
        if chance.percent(40) {
            patch["spec"] = value(chance, &self.schema["properties"]["spec"], 0);
        }
        let ty = chance.pick(&["application/merge-patch+json", "application/merge-patch+json", APPLY]);
        if ty == APPLY {
            patch["apiVersion"] = version;
            patch["kind"] = json!("Thing");
        }
        let query = if ty == APPLY { "fieldManager=one" } else { "" };
        self.patch(chance, at, (ty, patch), query);
    }

    fn apply(&mut self, chance: &mut Chance, (name, below): (&str, &str), wildness: usize) {
        let mut object = self.object(chance, name, wildness);
        if chance.percent(20) {
            // What is null in a document is said, and not left out.
            object = without_some(chance, object);
            object["apiVersion"] = json!("{uniq}.example.com/v1");
            object["kind"] = json!("Thing");
            object["metadata"] = json!({"name": name});
        }
        let owner = chance.pick(&["fieldManager=one", "fieldManager=two", "fieldManager=one&force=true"]);
        self.patch(chance, (name, below), (APPLY, object), owner);
    }

    fn patch(&mut self, chance: &mut Chance, (name, below): (&str, &str), (ty, body): (&str, Value), query: &str) {
        let validation = chance.pick(&VALIDATION);
        let query = match (query, validation) {
            ("", one) | (one, "") => one.to_owned(),
            (one, other) => format!("{one}&{other}"),
        };
        let path = with_query(&format!("{COLLECTION}/{name}{below}"), &query);
        self.step(json!({"method": "PATCH", "path": path, "headers": {"Content-Type": ty}, "body": body}));
    }

    fn read(&mut self, chance: &mut Chance, name: &str) {
        const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
        match chance.below(5) {
            0 => self.step(json!({"path": COLLECTION})),
            1 => self.step(json!({"path": COLLECTION, "headers": {"Accept": TABLE}})),
            2 if self.has_status => self.step(json!({"path": format!("{COLLECTION}/{name}/scale")})),
            3 if self.has_status => {
                let count = chance.one_of(&[json!(0), json!(3), json!(-1), Value::Null]);
                let patch = ("application/merge-patch+json", json!({"spec": {"replicas": count}}));
                self.patch(chance, (name, "/scale"), patch, "");
            }
            _ => self.step(json!({"path": format!("{COLLECTION}/{name}")})),
        }
    }
}

fn with_query(path: &str, query: &str) -> String {
    match query {
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

/// Some members become null, as a merge patch removes them.
fn without_some(chance: &mut Chance, value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let keep = |(name, member)| match chance.percent(10) {
                true => (name, Value::Null),
                false => (name, without_some(chance, member)),
            };
            Value::Object(members.into_iter().map(keep).collect())
        }
        other => other,
    }
}

/// Says something in a schema that may be wrong.
pub fn harm(chance: &mut Chance, schema: &mut Value) {
    let mut at = schema;
    for _ in 0..chance.within(0, 4) {
        let parts = ["properties", "items", "additionalProperties", "not"];
        let Some(part) = parts.iter().find(|part| at[**part].is_object()) else {
            break;
        };
        at = &mut at[*part];
        if *part == "properties" {
            let names: Vec<String> = at
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect();
            if names.is_empty() {
                return;
            }
            at = &mut at[chance.one_of(&names)];
        }
    }
    let Some(at) = at.as_object_mut() else { return };
    let all = if chance.percent(20) { rules() } else { harms() };
    let (keyword, said) = chance.one_of(&all);
    match keyword {
        "x-kubernetes-validations" if said.is_null() => rule::attach(chance, at),
        keyword if said.is_null() => drop(at.remove(keyword)),
        keyword => drop(at.insert(keyword.to_owned(), said)),
    }
}

/// Keywords and what is said by them; null: they are taken away.
fn harms() -> Vec<(&'static str, Value)> {
    let resource = json!({"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}},
        "kind": {"type": "integer"}, "apiVersion": {"type": "string"}});
    vec![
        ("type", json!("null")),
        ("type", json!("int")),
        ("type", Value::Null),
        ("uniqueItems", json!(true)),
        ("additionalProperties", json!(true)),
        ("additionalProperties", json!(false)),
        ("additionalProperties", json!({"type": "string"})),
        ("properties", resource),
        ("$ref", json!("x")),
        ("id", json!("x")),
        ("patternProperties", json!({"x": {"type": "string"}})),
        ("definitions", json!({"x": {"type": "foo"}})),
        ("dependencies", json!({"x": ["y"]})),
        ("items", json!([{"type": "string"}])),
        ("items", json!({"type": "string"})),
        ("x-kubernetes-preserve-unknown-fields", json!(true)),
        ("x-kubernetes-preserve-unknown-fields", json!(false)),
        ("x-kubernetes-int-or-string", json!(true)),
        ("x-kubernetes-embedded-resource", json!(true)),
        ("x-kubernetes-map-type", json!("atomic")),
        ("x-kubernetes-map-type", json!("x")),
        ("x-kubernetes-list-type", json!("set")),
        ("x-kubernetes-list-type", json!("map")),
        ("x-kubernetes-list-type", json!("x")),
        ("x-kubernetes-list-map-keys", json!(["a", "a"])),
        ("x-kubernetes-list-map-keys", json!(["zz"])),
        ("x-kubernetes-list-map-keys", Value::Null),
        ("nullable", json!(true)),
        ("pattern", json!("(")),
        ("pattern", json!("(?=x)")),
        ("default", json!({"zz": 1})),
        ("default", json!(["a", "a"])),
        ("default", json!("x")),
        ("maxItems", json!(100000)),
        ("maxItems", Value::Null),
        ("maxLength", Value::Null),
        ("required", json!(["a", "a"])),
        ("enum", json!([])),
        ("enum", json!(["a", "a"])),
        ("not", json!({"type": "string"})),
        ("anyOf", json!([{"properties": {"q": {"minLength": 1}}}])),
        ("anyOf", json!([{"type": "integer"}, {"type": "string"}])),
        ("allOf", json!([{"nullable": true, "default": 1}])),
        ("oneOf", json!([{"additionalProperties": {"minLength": 1}}])),
    ]
}

/// Rules that may be wrong; null: a good one.
fn rules() -> Vec<(&'static str, Value)> {
    vec![
        ("x-kubernetes-validations", Value::Null),
        ("x-kubernetes-validations", json!([{"rule": "self.nope"}])),
        ("x-kubernetes-validations", json!([{"rule": "self +"}, {"rule": ""}])),
        (
            "x-kubernetes-validations",
            json!([{"rule": "'abc'"}, {"rule": "true", "reason": "Nope"}]),
        ),
        (
            "x-kubernetes-validations",
            json!([{"rule": "true", "fieldPath": ".zz"}]),
        ),
        ("x-kubernetes-validations", json!([{"rule": "true", "message": "a\nb"}])),
        (
            "x-kubernetes-validations",
            json!([{"rule": "true", "messageExpression": "1"}]),
        ),
        (
            "x-kubernetes-validations",
            json!([{"rule": "self.all(x, self.all(y, x == y))"}]),
        ),
        (
            "x-kubernetes-validations",
            json!([{"rule": "self == oldSelf", "optionalOldSelf": true}]),
        ),
        ("x-kubernetes-validations", json!([{"rule": "self.matches('(')"}])),
        (
            "x-kubernetes-validations",
            json!([{"rule": "duration('x') == duration('1h')"}]),
        ),
    ]
}
