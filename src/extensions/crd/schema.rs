//! Schemas of definition files as structural schemas: references are written out, and keywords left away that
//! definitions may not say.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// OpenAPI v3 schemas by name.
pub type Definitions = BTreeMap<String, Value>;

const REFERENCE: &str = "#/components/schemas/";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
/// Types that are any object.
const ANY_OBJECT: [&str; 2] = [
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
];
/// What a quantity looks like.
const QUANTITY_PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The schema of a definition. `lost`: what it does not say, a line each.
pub fn structural(definitions: &Definitions, name: &str, lost: &mut Vec<String>) -> Value {
    let mut writer = Writer {
        definitions,
        within: vec![name.to_owned()],
        path: String::new(),
        lost,
    };
    let schema = definitions.get(name).cloned().unwrap_or_else(|| json!({}));
    let mut out = writer.schema(&schema);
    out.remove("nullable");
    if let Some(Value::Object(properties)) = out.get_mut("properties") {
        properties.remove("apiVersion");
        properties.remove("kind");
    }
    out.insert("type".to_owned(), "object".into());
    Value::Object(out)
}

struct Writer<'a> {
    definitions: &'a Definitions,
    /// The definitions that are being written out.
    within: Vec<String>,
    /// Of the field.
    path: String,
    lost: &'a mut Vec<String>,
}

impl Writer<'_> {
    fn schema(&mut self, schema: &Value) -> Map<String, Value> {
        let Value::Object(schema) = schema else {
            return any_value();
        };
        let mut out = match target(schema) {
            Some(name) => self.referred(name),
            None => Map::new(),
        };
        for (key, value) in schema {
            match key.as_str() {
                "$ref"
                | "allOf"
                | "x-kubernetes-group-version-kind"
                | "x-kubernetes-patch-strategy"
                | "x-kubernetes-patch-merge-key" => {}
                "oneOf" => self.note("alternatives"),
                "x-kubernetes-unions" => self.note("unions"),
                "properties" => {
                    let properties = value.as_object().into_iter().flatten();
                    let properties = properties
                        .map(|(name, schema)| (name.clone(), Value::Object(self.below(&format!(".{name}"), schema))));
                    let properties: Map<String, Value> = properties.collect();
                    out.insert(key.clone(), Value::Object(properties));
                }
                "items" | "additionalProperties" => {
                    let mut element = self.below("[]", value);
                    // The zero of an element is no default of a definition's.
                    element.remove("default");
                    out.insert(key.clone(), Value::Object(element));
                }
                _ => drop(out.insert(key.clone(), value.clone())),
            }
        }
        if out.is_empty() || (out.len() == 1 && out.contains_key("description")) {
            out.extend(any_value());
        }
        // Nothing may be said of what every object has.
        if self.path == ".metadata" {
            out.retain(|key, _| key == "type");
        }
        self.fit_list(&mut out);
        fit_default(&mut out);
        out
    }

    fn below(&mut self, step: &str, schema: &Value) -> Map<String, Value> {
        let length = self.path.len();
        self.path.push_str(step);
        let out = self.schema(schema);
        self.path.truncate(length);
        out
    }

    fn referred(&mut self, name: &str) -> Map<String, Value> {
        let fixed = match name {
            OBJECT_META if self.path == ".metadata" => json!({"type": "object"}),
            QUANTITY => json!({
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "pattern": QUANTITY_PATTERN,
                "x-kubernetes-int-or-string": true,
            }),
            INT_OR_STRING => json!({
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "x-kubernetes-int-or-string": true,
            }),
            name if ANY_OBJECT.contains(&name) => json!({"type": "object", PRESERVE: true}),
            name if self.within.iter().any(|known| known == name) => {
                self.note("what repeats itself");
                json!({"type": "object", PRESERVE: true})
            }
            name => match self.definitions.get(name) {
                Some(schema) => {
                    self.within.push(name.to_owned());
                    let out = self.schema(&schema.clone());
                    self.within.pop();
                    Value::Object(out)
                }
                None => json!({PRESERVE: true}),
            },
        };
        match fixed {
            Value::Object(out) => out,
            _ => any_value(),
        }
    }

    /// Only a list has a type of list, and its keys have to be there.
    fn fit_list(&mut self, out: &mut Map<String, Value>) {
        if out.get("type").is_none_or(|ty| ty != "array") {
            // Bytes are a list to the definition, and a text in JSON.
            out.remove("x-kubernetes-list-type");
            out.remove("x-kubernetes-list-map-keys");
            return;
        }
        let keys: Vec<String> = texts(out.get("x-kubernetes-list-map-keys"));
        let items = out.get("items");
        let required = texts(items.and_then(|items| items.get("required")));
        let has = |key: &String| {
            let property = items
                .and_then(|items| items.get("properties"))
                .and_then(|all| all.get(key));
            let has_default = property.is_some_and(|property| property.get("default").is_some());
            property.is_some() && (required.contains(key) || has_default)
        };
        if !keys.iter().all(has) {
            self.note("keys of the list, which need not be there");
            out.remove("x-kubernetes-list-map-keys");
            out.insert("x-kubernetes-list-type".to_owned(), "atomic".into());
        }
    }

    fn note(&mut self, what: &str) {
        let line = format!("{}: {what}", self.path);
        if !self.lost.contains(&line) {
            self.lost.push(line);
        }
    }
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

fn any_value() -> Map<String, Value> {
    Map::from_iter([(PRESERVE.to_owned(), true.into())])
}

/// The definition that a schema refers to.
fn target(schema: &Map<String, Value>) -> Option<&str> {
    let direct = schema.get("$ref");
    let wrapped = || schema.get("allOf")?.as_array()?.first()?.get("$ref");
    let target = direct.or_else(wrapped)?.as_str()?;
    Some(target.strip_prefix(REFERENCE).unwrap_or(target))
}

/// Empty objects are no defaults where something in them has to be there; nothing that is empty is one.
fn fit_default(out: &mut Map<String, Value>) {
    let empty = match out.get("default") {
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Number(number)) => number.as_f64() == Some(0.0),
        Some(Value::Bool(set)) => !set,
        _ => false,
    };
    if empty {
        out.remove("default");
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}
