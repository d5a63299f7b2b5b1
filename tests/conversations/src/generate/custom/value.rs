//! Values that fit a schema, or nearly.

use serde_json::{Map, Value, json};

use super::chance::Chance;

const TEXTS: [&str; 20] = [
    "",
    "a",
    "ab",
    "abc",
    "x-y",
    "2020-01-01",
    "2014-12-15T19:30:20Z",
    "1.2.3.4",
    "::1",
    "a@b.c",
    "http://a/b",
    "YQ==",
    "5m",
    "é",
    "A",
    "foo.bar",
    "50%",
    "5",
    "10.0.0.0/8",
    "b",
];

fn number(chance: &mut Chance) -> Value {
    chance.one_of(&[
        json!(0),
        json!(1),
        json!(-1),
        json!(2),
        json!(3),
        json!(7),
        json!(100),
        json!(2147483648_i64),
        json!(1.5),
        json!(2.5),
        json!(1.0),
        json!(-2.5),
        json!(1e6),
        json!(9007199254740993_i64),
    ])
}

/// Any value.
fn wild(chance: &mut Chance) -> Value {
    match chance.below(7) {
        0 | 1 => json!(chance.pick(&TEXTS)),
        2 => number(chance),
        3 => json!(true),
        4 => Value::Null,
        5 => json!([]),
        _ => json!({"zz": 1}),
    }
}

/// A value for a schema; at each place it is another one so many times in a hundred.
pub fn value(chance: &mut Chance, schema: &Value, wildness: usize) -> Value {
    if chance.percent(wildness) {
        return wild(chance);
    }
    if schema["nullable"] == true && chance.percent(10) {
        return Value::Null;
    }
    if let Some(all) = schema["enum"].as_array().filter(|_| chance.percent(80)) {
        return chance.one_of(all);
    }
    match schema["type"].as_str() {
        Some("string") => json!(chance.pick(&TEXTS)),
        Some("integer") => json!(chance.one_of(&[0, 1, 2, 3, 4, 5, 7, 10, 100])),
        Some("number") => number(chance),
        Some("boolean") => json!(chance.percent(50)),
        Some("array") => array(chance, schema, wildness),
        Some("object") => Value::Object(object(chance, schema, wildness)),
        _ => chance.one_of(&[json!("5"), json!(5), json!("10%"), json!(7)]),
    }
}

fn array(chance: &mut Chance, schema: &Value, wildness: usize) -> Value {
    let count = chance.within(0, 4);
    let mut items: Vec<Value> = Vec::new();
    let keys: Vec<&str> = schema["x-kubernetes-list-map-keys"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let is_set = schema["x-kubernetes-list-type"] == "set";
    for _ in 0..count {
        let item = value(chance, &schema["items"], wildness);
        let same = |other: &Value| match keys.is_empty() {
            true => is_set && *other == item,
            false => keys.iter().all(|key| other[*key] == item[*key]),
        };
        // Now and then an item stands there twice.
        if !items.iter().any(same) || chance.percent(2 * wildness) {
            items.push(item);
        }
    }
    items.into()
}

fn object(chance: &mut Chance, schema: &Value, wildness: usize) -> Map<String, Value> {
    let mut object = Map::new();
    if schema["x-kubernetes-embedded-resource"] == true {
        object.insert(
            "apiVersion".to_owned(),
            json!(chance.pick(&["v1", "v1", "a/b", "a/b/c"])),
        );
        object.insert("kind".to_owned(), json!(chance.pick(&["Pod", "Pod", "pod", "P_d"])));
        if chance.percent(40) {
            let all = [
                json!({"name": "x"}),
                json!({"name": "a/b"}),
                json!({"labels": {"a b": "c"}}),
            ];
            object.insert("metadata".to_owned(), chance.one_of(&all));
        }
    }
    let required = schema["required"].as_array();
    for (name, own) in schema["properties"].as_object().into_iter().flatten() {
        let needed = required.is_some_and(|all| all.iter().any(|one| one == name));
        if chance.percent(if needed { 100 - wildness } else { 70 }) {
            object.insert(name.clone(), value(chance, own, wildness));
        }
    }
    if schema["additionalProperties"].is_object() {
        for _ in 0..chance.within(0, 3) {
            let name = chance.pick(&["k1", "k2", "a", "b.c"]);
            object.insert(
                name.to_owned(),
                value(chance, &schema["additionalProperties"], wildness),
            );
        }
    }
    if chance.percent(wildness) {
        object.insert("zz".to_owned(), wild(chance));
    }
    object
}

/// A path into a value of a schema, as JSON patches have them.
pub fn pointer(chance: &mut Chance, schema: &Value) -> (String, Value) {
    let (mut path, mut at) = (String::new(), schema);
    for _ in 0..chance.within(1, 4) {
        if let Some(properties) = at["properties"].as_object().filter(|all| !all.is_empty()) {
            let names: Vec<&String> = properties.keys().collect();
            let name = chance.one_of(&names);
            path += &format!("/{name}");
            at = &at["properties"][name];
        } else if at["additionalProperties"].is_object() {
            path += chance.pick(&["/k1", "/k2", "/b.c"]);
            at = &at["additionalProperties"];
        } else if at["items"].is_object() {
            path += chance.pick(&["/0", "/1", "/-"]);
            at = &at["items"];
        }
    }
    (path, at.clone())
}
