//! OpenAPI forms of a kind: the definitions of its objects and lists, from the schema that a definition has.
//!
//! Version 3 says what the schema says. Version 2 has no alternatives, no nulls and no defaults, and of what clients of
//! it could not cope with it says nothing: what may be null, and what holds unknown fields.

use serde_json::{Map, Value, json};

use super::check::is_structural;
use super::schema::{JsonSchema, SchemaType};
use crate::reflect::Name;
use crate::reflect::object::Gvk;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Keywords in the order in which documents have them; extensions follow.
const ORDER: [&str; 30] = [
    "description",
    "type",
    "nullable",
    "format",
    "title",
    "default",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "enum",
    "maxProperties",
    "minProperties",
    "required",
    "items",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "properties",
    "additionalProperties",
    "externalDocs",
    "example",
];

/// Extensions, in their order.
const EXTENSIONS: [&str; 9] = [
    EMBEDDED,
    "x-kubernetes-group-version-kind",
    INT_OR_STRING,
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    PRESERVE,
    "x-kubernetes-selectable-fields",
    "x-kubernetes-validations",
];

/// A version of OpenAPI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenApiVersion {
    V2,
    V3,
}

/// A kind whose definitions are to be said.
#[derive(Clone, Copy, Debug)]
pub struct OpenApi<'a> {
    pub gvk: &'a Gvk,
    pub list_kind: &'a str,
    pub plural: &'a str,
    /// The schema and the JSON that it was read from. One that is not structural says nothing.
    pub schema: Option<(&'a JsonSchema, &'a [u8])>,
    /// `spec.preserveUnknownFields` of the definition.
    pub preserve_unknown_fields: bool,
    /// `jsonPath` of the fields that lists may be selected by.
    pub selectable_fields: &'a [Name],
    /// What is said of the fields that every kind has.
    pub texts: &'a OpenApiTexts,
}

/// Descriptions of the fields that every kind has: those that built-in kinds have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenApiTexts {
    pub api_version: String,
    pub kind: String,
    pub metadata: String,
    /// Of the metadata of lists.
    pub list_metadata: String,
}

impl Default for OpenApiTexts {
    fn default() -> OpenApiTexts {
        OpenApiTexts {
            api_version: "Version of the schema that this object is written in: the group and the version.".to_owned(),
            kind: "Name of the kind of this object, in CamelCase.".to_owned(),
            metadata: "Name, namespace, labels and whatever else every object has.".to_owned(),
            list_metadata: "Revision of the list, and where to continue it if it is a part.".to_owned(),
        }
    }
}

impl OpenApiTexts {
    /// Those of objects within others, which are told in fewer words.
    fn embedded(&self) -> OpenApiTexts {
        let version = match self.api_version.split_once(". ") {
            Some((first, _)) => format!("{first}.{}", more(&self.api_version, &["More info: "])),
            None => self.api_version.clone(),
        };
        let rest = more(&self.kind, &["In CamelCase.", "More info: "]);
        OpenApiTexts {
            api_version: match version.strip_prefix("APIVersion") {
                Some(rest) => format!("apiVersion{rest}"),
                None => version,
            },
            kind: format!("kind is a string value representing the type of this object.{rest}"),
            ..self.clone()
        }
    }

    /// Of the items of lists.
    fn items(&self, plural: &str) -> String {
        let address = more(&self.metadata, &["More info: "]);
        let page = address.split('#').next().unwrap_or_default();
        format!("List of {plural}.{page}")
    }
}

/// The rest of a text from the first of these words that it has, after a space.
fn more(text: &str, words: &[&str]) -> String {
    let at = words.iter().find_map(|word| text.find(word));
    at.and_then(|at| text.get(at..))
        .map(|rest| format!(" {rest}"))
        .unwrap_or_default()
}

impl OpenApi<'_> {
    /// `{"<definition>": <schema>, …}`, of objects and of lists, as JSON text without white space between tokens.
    pub fn definitions(&self, version: OpenApiVersion) -> Vec<u8> {
        let definitions = json!({
            self.name(&self.gvk.kind): self.object(version),
            self.name(self.list_kind): self.list(version),
        });
        definitions.to_string().into_bytes()
    }

    /// `com.example.stable.v1.CronTab`
    fn name(&self, kind: &str) -> String {
        let mut parts: Vec<&str> = self.gvk.group.rsplit('.').collect();
        parts.extend([self.gvk.version.as_str(), kind]);
        parts.join(".")
    }

    fn object(&self, version: OpenApiVersion) -> Value {
        let mut out = match self.parsed() {
            Some(schema) if version == OpenApiVersion::V3 || !self.preserves(&schema) => {
                let writer = Writer {
                    version,
                    embedded: &self.texts.embedded(),
                };
                let mut out = writer.structural(schema);
                add_type_and_metadata(&mut out, version, self.texts);
                out
            }
            _ => Map::from_iter([("type".to_owned(), "object".into())]),
        };
        self.extend(&mut out, &self.gvk.kind);
        Value::Object(out)
    }

    fn list(&self, version: OpenApiVersion) -> Value {
        let item = json!({"$ref": format!("{}{}", prefix(version), self.name(&self.gvk.kind))});
        let items = json!({
            "description": self.texts.items(self.plural),
            "type": "array",
            "items": item,
        });
        let [(_, api_version), (_, kind), _] = type_and_metadata(version, self.texts);
        let mut out = Map::from_iter([
            (
                "description".to_owned(),
                format!("{} is a list of {}", self.list_kind, self.gvk.kind).into(),
            ),
            ("type".to_owned(), "object".into()),
            ("required".to_owned(), json!(["items"])),
            (
                "properties".to_owned(),
                json!({
                    "apiVersion": api_version,
                    "items": items,
                    "kind": kind,
                    "metadata": reference("ListMeta", &self.texts.list_metadata, version),
                }),
            ),
        ]);
        self.extend(&mut out, self.list_kind);
        Value::Object(out)
    }

    /// The schema as JSON, if it is one that can be said.
    fn parsed(&self) -> Option<Map<String, Value>> {
        let (schema, text) = self.schema?;
        let has_strange_types = schema.any(&|schema| schema.ty == SchemaType::Other);
        match serde_json::from_slice(text) {
            Ok(Value::Object(parsed)) if !has_strange_types && is_structural(schema) => Some(parsed),
            _ => None,
        }
    }

    fn preserves(&self, schema: &Map<String, Value>) -> bool {
        self.preserve_unknown_fields || is_set(schema, PRESERVE)
    }

    fn extend(&self, out: &mut Map<String, Value>, kind: &str) {
        let gvk = json!([{"group": self.gvk.group.as_str(), "kind": kind, "version": self.gvk.version.as_str()}]);
        insert(out, "x-kubernetes-group-version-kind", gvk);
        if !self.selectable_fields.is_empty() {
            let paths = self.selectable_fields.iter();
            let paths = paths.map(|path| json!({"fieldPath": path.strip_prefix('.').unwrap_or(path)}));
            insert(out, "x-kubernetes-selectable-fields", paths.collect());
        }
    }
}

fn prefix(version: OpenApiVersion) -> &'static str {
    match version {
        OpenApiVersion::V2 => "#/definitions/",
        OpenApiVersion::V3 => "#/components/schemas/",
    }
}

/// A property of a type of every kind. Version 3 has nothing beside a reference.
fn reference(name: &str, text: &str, version: OpenApiVersion) -> Value {
    let target = format!("{}{META}{name}", prefix(version));
    match version {
        OpenApiVersion::V2 => json!({"description": text, "$ref": target}),
        OpenApiVersion::V3 => json!({"description": text, "allOf": [{"$ref": target}]}),
    }
}

fn type_and_metadata(version: OpenApiVersion, texts: &OpenApiTexts) -> [(&'static str, Value); 3] {
    [
        (
            "apiVersion",
            json!({"description": texts.api_version, "type": "string"}),
        ),
        ("kind", json!({"description": texts.kind, "type": "string"})),
        ("metadata", reference("ObjectMeta", &texts.metadata, version)),
    ]
}

fn add_type_and_metadata(schema: &mut Map<String, Value>, version: OpenApiVersion, texts: &OpenApiTexts) {
    let own = match schema.get_mut("properties") {
        Some(Value::Object(properties)) => std::mem::take(properties),
        _ => Map::new(),
    };
    let mut properties: Vec<(String, Value)> = own.into_iter().collect();
    properties.retain(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
    properties.extend(type_and_metadata(version, texts).map(|(name, value)| (name.to_owned(), value)));
    properties.sort_by(|a, b| a.0.cmp(&b.0));
    insert(schema, "properties", Value::Object(properties.into_iter().collect()));
}

fn is_set(schema: &Map<String, Value>, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Value::Bool(true))
}

/// Adds a keyword in its place.
fn insert(schema: &mut Map<String, Value>, keyword: &str, value: Value) {
    schema.insert(keyword.to_owned(), value);
    let place = |name: &str| {
        let mut all = ORDER.iter().chain(&EXTENSIONS);
        all.position(|known| *known == name).unwrap_or(usize::MAX)
    };
    let mut members: Vec<(String, Value)> = std::mem::take(schema).into_iter().collect();
    members.sort_by_key(|(name, _)| place(name));
    schema.extend(members);
}

/// Writes schemas for a version.
#[derive(Clone, Copy)]
struct Writer<'a> {
    version: OpenApiVersion,
    /// Of objects within others.
    embedded: &'a OpenApiTexts,
}

impl Writer<'_> {
    /// A schema that says what values are made of.
    fn structural(self, mut schema: Map<String, Value>) -> Map<String, Value> {
        match self.version {
            OpenApiVersion::V2 => simplify(&mut schema),
            OpenApiVersion::V3 => unfold(&mut schema),
        }
        let mut out = Map::new();
        for keyword in ORDER.iter().chain(&EXTENSIONS) {
            let Some(value) = schema.remove(*keyword) else { continue };
            if let Some(value) = self.keyword(keyword, value) {
                out.insert((*keyword).to_owned(), value);
            }
        }
        let hidden = self.version == OpenApiVersion::V2 && is_set(&out, PRESERVE);
        if is_set(&out, EMBEDDED) && !hidden {
            add_type_and_metadata(&mut out, self.version, self.embedded);
            let mut required = match out.remove("required") {
                Some(Value::Array(names)) => names,
                _ => Vec::new(),
            };
            for name in ["kind", "apiVersion"] {
                if !required.iter().any(|known| known == name) {
                    required.push(name.into());
                }
            }
            insert(&mut out, "required", required.into());
        }
        out
    }

    /// The value of a keyword; `None`: it says nothing.
    fn keyword(self, keyword: &str, value: Value) -> Option<Value> {
        let parts = |schemas: Map<String, Value>| {
            let mut parts: Vec<(String, Value)> = schemas.into_iter().collect();
            parts.sort_by(|a, b| a.0.cmp(&b.0));
            let parts = parts.into_iter().map(|(name, schema)| (name, self.part(schema)));
            Value::Object(parts.collect())
        };
        match (keyword, value) {
            (_, Value::Null) => None,
            ("default", _) if self.version == OpenApiVersion::V2 => None,
            ("default" | "example" | "externalDocs", value) => Some(sorted(value)),
            ("items", value @ Value::Object(_)) => Some(self.part(value)),
            ("items", _) => None,
            ("additionalProperties", value @ Value::Object(_)) => Some(self.part(value)),
            ("additionalProperties", value) => Some(value),
            ("properties", Value::Object(schemas)) => (!schemas.is_empty()).then(|| parts(schemas)),
            (_, value) => nested_keyword(keyword, value),
        }
    }

    fn part(self, schema: Value) -> Value {
        match schema {
            Value::Object(schema) => Value::Object(self.structural(schema)),
            other => other,
        }
    }
}

/// A schema within an alternative, which says nothing of what values are made of.
fn nested(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else {
        return schema;
    };
    let mut out = Map::new();
    for keyword in ORDER
        .iter()
        .chain(&EXTENSIONS)
        .filter(|keyword| **keyword != "additionalProperties")
    {
        let Some(value) = schema.remove(*keyword) else { continue };
        if let Some(value) = nested_keyword(keyword, value) {
            out.insert((*keyword).to_owned(), value);
        }
    }
    Value::Object(out)
}

fn nested_keyword(keyword: &str, value: Value) -> Option<Value> {
    match (keyword, value) {
        (_, Value::Null | Value::Bool(false)) => None,
        // A type of a list or map that is there counts, also if it is empty.
        ("x-kubernetes-list-type" | "x-kubernetes-map-type", value) => Some(value),
        (_, Value::String(text)) if text.is_empty() => None,
        (_, Value::Array(list)) if list.is_empty() => None,
        ("maximum" | "minimum" | "multipleOf", Value::Number(number)) => Some(double(number)),
        ("enum", Value::Array(values)) => Some(values.into_iter().map(sorted).collect()),
        ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => Some(schemas.into_iter().map(nested).collect()),
        ("not" | "items", schema) => Some(nested(schema)),
        ("properties", Value::Object(schemas)) => {
            let mut schemas: Vec<(String, Value)> = schemas.into_iter().collect();
            schemas.sort_by(|a, b| a.0.cmp(&b.0));
            let schemas = schemas.into_iter().map(|(name, schema)| (name, nested(schema)));
            let schemas: Map<String, Value> = schemas.collect();
            (!schemas.is_empty()).then_some(Value::Object(schemas))
        }
        ("x-kubernetes-validations", Value::Array(rules)) => Some(rules.into_iter().map(rule).collect()),
        (_, value) => Some(value),
    }
}

/// A rule without what is empty.
fn rule(mut rule: Value) -> Value {
    if let Some(members) = rule.as_object_mut() {
        members.retain(|name, value| name == "rule" || !value.is_null() && value != "");
    }
    rule
}

/// A limit: held as a floating-point number, told as a whole one if it is one.
fn double(number: serde_json::Number) -> Value {
    match number.as_f64() {
        Some(n) if n.fract() == 0.0 && (0.0..1.8e19).contains(&n) => Value::from(n as u64),
        Some(n) if n.fract() == 0.0 && n < 0.0 && n > -9e18 => Value::from(n as i64),
        _ => Value::Number(number),
    }
}

/// A value with the keys of its objects in order, and with whole numbers where it can be.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members.into_iter().collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(members.into_iter().map(|(name, value)| (name, sorted(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Number(number) if number.is_f64() => double(number),
        other => other,
    }
}

/// Says of what may be a number or text that it is one of them, unless the schema does.
fn unfold(schema: &mut Map<String, Value>) {
    if !is_set(schema, INT_OR_STRING) {
        return;
    }
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let has_any = matches!(schema.get("anyOf"), Some(Value::Array(any)) if !any.is_empty());
    let first = schema
        .get("allOf")
        .and_then(|all| all.get(0))
        .and_then(|all| all.get("anyOf"));
    if schema.get("anyOf") == Some(&either) || first == Some(&either) {
        return;
    }
    if !has_any {
        schema.insert("anyOf".to_owned(), either);
        return;
    }
    let mut all = vec![json!({"anyOf": either})];
    if let Some(Value::Array(own)) = schema.remove("allOf") {
        all.extend(own);
    }
    schema.insert("allOf".to_owned(), all.into());
}

/// Drops what version 2 has no words for.
fn simplify(schema: &mut Map<String, Value>) {
    for keyword in ["allOf", "anyOf", "oneOf", "not"] {
        schema.remove(keyword);
    }
    let (nullable, preserve) = (is_set(schema, "nullable"), is_set(schema, PRESERVE));
    schema.remove("nullable");
    if nullable || preserve {
        schema.remove("items");
        schema.remove("properties");
    }
    let has_items = matches!(schema.get("items"), Some(Value::Object(_)));
    let ty = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    if nullable || ty == "array" && !has_items || ty == "object" && preserve {
        schema.remove("type");
    }
    let may_be_null = |schema: &Value| schema.get("nullable") == Some(&Value::Bool(true));
    if schema.get("additionalProperties").is_some_and(may_be_null) {
        schema.remove("required");
    }
    let Some(Value::Array(mut required)) = schema.remove("required") else {
        return;
    };
    required.retain(|name| {
        let own = name.as_str().and_then(|name| schema.get("properties")?.get(name));
        !own.is_some_and(may_be_null)
    });
    schema.insert("required".to_owned(), required.into());
}
