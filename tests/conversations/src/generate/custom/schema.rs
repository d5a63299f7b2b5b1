//! Schemas that a definition may have.

use serde_json::{Map, Value, json};

use super::chance::Chance;
use super::rule;

const TYPES: [&str; 8] = [
    "object", "array", "string", "integer", "number", "boolean", "object", "array",
];
const FORMATS: [&str; 20] = [
    "date",
    "date-time",
    "datetime",
    "ipv4",
    "ipv6",
    "email",
    "uri",
    "byte",
    "duration",
    "int32",
    "int64",
    "float",
    "double",
    "password",
    "hostname",
    "uuid",
    "k8s-short-name",
    "unknown",
    "mac",
    "cidr",
];
const PATTERNS: [&str; 5] = ["^a", "b$", "^[a-z]+$", r"^\d+$", "x|y"];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// The most items of arrays that have a bound at all: rules cost by it.
const MAX_ITEMS: usize = 5;

/// A schema of values that nest so deep.
pub fn schema(chance: &mut Chance, depth: usize) -> Value {
    if chance.percent(6) {
        return int_or_string(chance);
    }
    let ty = match depth {
        0 => chance.pick(&TYPES[2..6]),
        _ => chance.pick(&TYPES),
    };
    let mut schema = Map::from_iter([("type".to_owned(), json!(ty))]);
    limits(chance, &mut schema, ty);
    let mut names = Vec::new();
    match ty {
        "object" => names = object(chance, &mut schema, depth),
        "array" => array(chance, &mut schema, depth),
        _ => {}
    }
    alternatives(chance, &mut schema, &names, ty);
    if chance.percent(12) {
        schema.insert("nullable".to_owned(), json!(true));
    }
    if chance.percent(25) {
        rule::attach(chance, &mut schema);
    }
    Value::Object(schema)
}

fn int_or_string(chance: &mut Chance) -> Value {
    let mut schema = json!({"x-kubernetes-int-or-string": true});
    if chance.percent(50) {
        schema["anyOf"] = json!([{"type": "integer"}, {"type": "string"}]);
    }
    if chance.percent(20) {
        schema["maxLength"] = json!(3);
    }
    if chance.percent(15) {
        schema["default"] = chance.one_of(&[json!(3), json!("10%")]);
    }
    schema
}

/// A number that bounds others.
fn number(chance: &mut Chance) -> Value {
    chance.one_of(&[
        json!(0),
        json!(1),
        json!(-1),
        json!(2),
        json!(3),
        json!(10),
        json!(1.5),
        json!(0.1),
        json!(1e6),
    ])
}

fn limits(chance: &mut Chance, schema: &mut Map<String, Value>, ty: &str) {
    let mut say = |chance: &mut Chance, percent: usize, name: &str, value: Value| {
        if chance.percent(percent) {
            schema.insert(name.to_owned(), value);
        }
    };
    let (low, high) = (json!(chance.within(0, 2)), json!(chance.within(2, MAX_ITEMS)));
    match ty {
        "integer" | "number" => {
            let (least, most, step) = (
                number(chance),
                number(chance),
                chance.one_of(&[json!(1), json!(2), json!(0.5)]),
            );
            say(chance, 15, "minimum", least);
            say(chance, 15, "maximum", most);
            say(chance, 8, "exclusiveMinimum", json!(true));
            say(chance, 10, "multipleOf", step);
        }
        "string" => {
            say(chance, 15, "minLength", low);
            say(chance, 40, "maxLength", json!(10));
            let pattern = json!(chance.pick(&PATTERNS));
            say(chance, 12, "pattern", pattern);
            say(chance, 10, "enum", json!(["a", "ab", "abc", ""]));
        }
        "array" => {
            say(chance, 10, "minItems", low);
            say(chance, 70, "maxItems", high);
        }
        "object" => {
            say(chance, 8, "minProperties", low);
            say(chance, 8, "maxProperties", high);
        }
        _ => {}
    }
    let format = json!(chance.pick(&FORMATS));
    say(chance, 12, "format", format);
}

/// The names of its properties.
fn object(chance: &mut Chance, schema: &mut Map<String, Value>, depth: usize) -> Vec<&'static str> {
    let below = depth.saturating_sub(1);
    let mut say = |name: &str, value: Value| schema.insert(name.to_owned(), value);
    if chance.percent(20) {
        say("additionalProperties", self::schema(chance, below));
        return Vec::new();
    }
    if chance.percent(8) {
        say("x-kubernetes-preserve-unknown-fields", json!(true));
    }
    let names = chance.some(&NAMES);
    let properties = names.iter().map(|name| ((*name).to_owned(), property(chance, below)));
    let properties: Map<String, Value> = properties.collect();
    say("properties", Value::Object(properties));
    if chance.percent(20) {
        say("required", json!(chance.some(&names)));
    } else if chance.percent(15) {
        say("default", json!({}));
    }
    if chance.percent(8) {
        say("x-kubernetes-map-type", json!("atomic"));
    }
    if chance.percent(6) {
        say("x-kubernetes-embedded-resource", json!(true));
        say("x-kubernetes-preserve-unknown-fields", json!(true));
    }
    names
}

/// A schema that may have a default.
fn property(chance: &mut Chance, depth: usize) -> Value {
    let mut schema = schema(chance, depth);
    let plain = [
        "minimum",
        "maximum",
        "multipleOf",
        "minLength",
        "pattern",
        "enum",
        "format",
        "not",
    ];
    let is_free = plain.iter().all(|name| schema.get(name).is_none())
        && ["anyOf", "allOf", "oneOf", "x-kubernetes-validations"]
            .iter()
            .all(|name| schema.get(name).is_none());
    if is_free && chance.percent(15) {
        let default = match schema["type"].as_str() {
            Some("string") => json!("b"),
            Some("integer") => json!(7),
            Some("number") => json!(1.5),
            Some("boolean") => json!(true),
            _ => Value::Null,
        };
        if !default.is_null() {
            schema["default"] = default;
        }
    }
    schema
}

fn array(chance: &mut Chance, schema: &mut Map<String, Value>, depth: usize) {
    let mut say = |name: &str, value: Value| schema.insert(name.to_owned(), value);
    if chance.percent(40) {
        let keys = chance.some(&["a", "b"]);
        let mut item = json!({"type": "object", "required": keys, "properties": {
            "a": {"type": chance.pick(&["string", "integer"])}, "b": {"type": "string"}}});
        item["properties"]["c"] = self::schema(chance, depth.saturating_sub(1));
        say("items", item);
        say("x-kubernetes-list-type", json!("map"));
        say("x-kubernetes-list-map-keys", json!(keys));
        return;
    }
    let is_set = chance.percent(30);
    let items = self::schema(chance, if is_set { 0 } else { depth.saturating_sub(1) });
    let is_scalar = !items["type"].is_null() && items.get("nullable").is_none();
    say("items", items);
    if is_set && is_scalar {
        say("x-kubernetes-list-type", json!("set"));
    } else if chance.percent(30) {
        say("x-kubernetes-list-type", json!("atomic"));
    }
}

fn alternatives(chance: &mut Chance, schema: &mut Map<String, Value>, names: &[&str], ty: &str) {
    for keyword in ["anyOf", "oneOf", "allOf"] {
        if chance.percent(6) {
            let all: Vec<Value> = (0..chance.within(1, 3))
                .map(|_| restriction(chance, names, ty))
                .collect();
            schema.insert(keyword.to_owned(), all.into());
        }
    }
    if chance.percent(4) {
        schema.insert("not".to_owned(), restriction(chance, names, ty));
    }
}

/// What stands in an alternative.
fn restriction(chance: &mut Chance, names: &[&str], ty: &str) -> Value {
    let mut schema = Map::new();
    limits(chance, &mut schema, ty);
    schema.remove("format");
    if !names.is_empty() && chance.percent(70) {
        schema.insert("required".to_owned(), json!(chance.some(names)));
    }
    Value::Object(schema)
}
