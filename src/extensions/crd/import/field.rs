//! Schemas of fields: which type they are of, and what is said of them.

use std::fmt::{self, Display};

use serde_json::Value;

use super::message::{Messages, Place};
use super::text::{list, option, quoted, rules};

const QUANTITY: (&str, &str) = (
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "meta/v1/quantity.proto",
);
const INT_OR_STRING: (&str, &str) = (
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "meta/v1/intstr.proto",
);
const ANY_OBJECT: (&str, &str) = ("io.k8s.apimachinery.pkg.runtime.RawExtension", "meta/v1/runtime.proto");
const TIME: (&str, &str) = ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "meta/v1/meta.proto");

/// Formats of texts that definition files know.
const FORMATS: [&str; 17] = [
    "cidr",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "k8s-long-name",
    "k8s-short-name",
    "mac",
    "password",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "hexcolor",
];

/// The type of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    Scalar(&'static str),
    /// A type of the library.
    Leaf(&'static str),
    Message(String),
    List(Box<Shape>),
    Map(Box<Shape>),
}

impl Shape {
    /// Whether a field of it says whether it is there.
    pub fn is_optional(&self) -> bool {
        !matches!(self, Shape::List(_) | Shape::Map(_) | Shape::Scalar("bytes"))
    }
}

impl Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Scalar(name) | Shape::Leaf(name) => f.write_str(name),
            Shape::Message(name) => f.write_str(name),
            Shape::List(element) => write!(f, "repeated {element}"),
            Shape::Map(value) => write!(f, "map<string, {value}>"),
        }
    }
}

impl Messages<'_> {
    /// The type of a schema; messages in it are called `name`. `None`: there is no such type.
    pub fn shape(&mut self, name: &str, schema: &Value, place: &Place) -> Option<Shape> {
        if schema["x-kubernetes-int-or-string"] == true {
            let is_quantity = schema["pattern"]
                .as_str()
                .is_some_and(|pattern| pattern.contains("KMGTPE"));
            return Some(self.leaf(if is_quantity { QUANTITY } else { INT_OR_STRING }));
        }
        let is_any = schema["x-kubernetes-preserve-unknown-fields"] == true;
        if is_any || schema["x-kubernetes-embedded-resource"] == true {
            self.note(place, "only objects are taken, and nothing in them is looked at");
            return Some(self.leaf(ANY_OBJECT));
        }
        match schema["type"].as_str() {
            Some("string") => Some(match schema["format"].as_str() {
                Some("date-time") => self.leaf(TIME),
                Some("byte") => Shape::Scalar("bytes"),
                _ => Shape::Scalar("string"),
            }),
            Some("integer") if schema["format"] == "int32" => Some(Shape::Scalar("int32")),
            Some("integer") => Some(Shape::Scalar("int64")),
            Some("number") => Some(Shape::Scalar("double")),
            Some("boolean") => Some(Shape::Scalar("bool")),
            Some("array") => self.list_shape(name, &schema["items"], place),
            Some("object") => self.object_shape(name, schema, place),
            _ => {
                self.note(place, "a value without a type");
                None
            }
        }
    }

    fn leaf(&mut self, (name, file): (&'static str, &'static str)) -> Shape {
        self.import(file);
        Shape::Leaf(name)
    }

    fn list_shape(&mut self, name: &str, items: &Value, place: &Place) -> Option<Shape> {
        let place = place.below("[]");
        let element = self.shape(name, items, &place)?;
        if matches!(element, Shape::List(_) | Shape::Map(_)) {
            self.note(&place, "lists of lists and of maps");
            return None;
        }
        self.note_element(items, &element, &place);
        Some(Shape::List(Box::new(element)))
    }

    fn object_shape(&mut self, name: &str, schema: &Value, place: &Place) -> Option<Shape> {
        let values = &schema["additionalProperties"];
        if !values.is_object() {
            if *values == true {
                self.note(place, "values of any type");
                return Some(self.leaf(ANY_OBJECT));
            }
            return Some(Shape::Message(self.object(name, schema, place)));
        }
        let place = place.below("[]");
        let value = match self.shape(name, values, &place)? {
            Shape::List(element) => Shape::Message(self.list(&format!("{name}List"), &element.to_string())),
            Shape::Map(_) => {
                self.note(&place, "maps of maps");
                return None;
            }
            value => value,
        };
        self.note_element(values, &value, &place);
        Some(Shape::Map(Box::new(value)))
    }

    /// What is said of the elements of a list or map and has no word.
    fn note_element(&mut self, schema: &Value, shape: &Shape, place: &Place) {
        self.note_keywords(schema, place);
        let bounds = [
            "pattern",
            "minLength",
            "maxLength",
            "minimum",
            "maximum",
            "multipleOf",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "nullable",
            "default",
        ];
        let found: Vec<&str> = bounds.into_iter().filter(|name| !schema[*name].is_null()).collect();
        let has_rules = !matches!(shape, Shape::Message(_)) && !rules(schema).is_empty();
        if !found.is_empty() || has_rules {
            let rules = has_rules.then_some("rules");
            let all: Vec<&str> = found.into_iter().chain(rules).collect();
            self.note(place, &all.join(", "));
        }
    }
}

/// Options of `(keelson.field)`.
pub fn field_options(
    messages: &mut Messages<'_>,
    schema: &Value,
    (shape, required): (&Shape, bool),
    place: &Place,
) -> Vec<String> {
    let mut options = Vec::new();
    if required && shape.is_optional() {
        options.push(option("required", "true"));
    }
    if schema["nullable"] == true {
        options.push(option("nullable", "true"));
    }
    options.extend(default(messages, schema, shape, place));
    options.extend(values(messages, schema, shape, place));
    options.extend(bounds(schema, shape));
    options.extend(merging(schema, shape));
    if !matches!(shape, Shape::Message(_)) {
        options.extend(rules(schema));
    }
    options
}

fn default(messages: &mut Messages<'_>, schema: &Value, shape: &Shape, place: &Place) -> Option<String> {
    let default = schema.get("default")?;
    if matches!(shape, Shape::Leaf(_) | Shape::Scalar("bytes")) || default.is_null() {
        messages.note(place, "the default");
        return None;
    }
    Some(option("default", quoted(&default.to_string())))
}

/// Enums and formats.
fn values(messages: &mut Messages<'_>, schema: &Value, shape: &Shape, place: &Place) -> Vec<String> {
    let (name, of) = match shape {
        Shape::List(element) | Shape::Map(element) => {
            let items = if schema["items"].is_object() {
                &schema["items"]
            } else {
                &schema["additionalProperties"]
            };
            (("item_enum", "item_format"), (items, element.as_ref()))
        }
        shape => (("enum", "format"), (schema, shape)),
    };
    let (schema, shape) = of;
    let mut options = Vec::new();
    match (shape, schema.get("enum")) {
        (_, None) => {}
        (Shape::Scalar("string"), Some(values)) => options.extend(list(name.0, values)),
        (_, Some(_)) => messages.note(place, "the enum"),
    }
    let format = schema["format"].as_str().unwrap_or_default();
    if *shape == Shape::Scalar("string") && FORMATS.contains(&format) {
        options.push(option(name.1, quoted(format)));
    }
    options
}

fn bounds(schema: &Value, shape: &Shape) -> Vec<String> {
    let names: &[(&str, &str)] = match shape {
        Shape::Scalar("string") => &[
            ("min_length", "minLength"),
            ("max_length", "maxLength"),
            ("pattern", "pattern"),
        ],
        Shape::Scalar("int32" | "int64" | "double") => &[
            ("minimum", "minimum"),
            ("maximum", "maximum"),
            ("exclusive_minimum", "exclusiveMinimum"),
            ("exclusive_maximum", "exclusiveMaximum"),
            ("multiple_of", "multipleOf"),
        ],
        Shape::List(_) => &[("min_items", "minItems"), ("max_items", "maxItems")],
        Shape::Map(_) | Shape::Message(_) => {
            &[("min_properties", "minProperties"), ("max_properties", "maxProperties")]
        }
        _ => &[],
    };
    let given = names.iter().filter_map(|(name, json)| match schema.get(*json)? {
        Value::String(text) => Some(option(name, quoted(text))),
        Value::Bool(false) | Value::Null => None,
        value => Some(option(name, value)),
    });
    given.collect()
}

/// How lists and maps are merged.
fn merging(schema: &Value, shape: &Shape) -> Vec<String> {
    let mut options = Vec::new();
    let list_type = match schema["x-kubernetes-list-type"].as_str() {
        Some("atomic") => Some("ATOMIC"),
        Some("set") => Some("SET"),
        Some("map") => Some("MAP"),
        _ => None,
    };
    if let (Shape::List(_), Some(list_type)) = (shape, list_type) {
        options.push(option("list_type", list_type));
        options.extend(list("map_keys", &schema["x-kubernetes-list-map-keys"]));
    }
    if let (Shape::Map(_), Some("atomic")) = (shape, schema["x-kubernetes-map-type"].as_str()) {
        options.push(option("map_type", "ATOMIC"));
    }
    options
}
