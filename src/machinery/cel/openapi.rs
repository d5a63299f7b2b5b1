//! Types of OpenAPI schemas: what `object` is to an expression that is checked against the published schema of a kind.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::{Type, escape};

/// Definitions by name, which `$ref`s of each other lead to.
pub type Definitions = BTreeMap<String, Value>;

const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "int-or-string";

impl Type {
    /// The type of the objects of a definition, as kube-apiserver sees it: what has no type in the schema is no field,
    /// a definition within itself is an object without fields, and types are named by the path to them, which begins
    /// with `name`. `None`: expressions may do anything with such an object.
    pub fn of_definition(name: &str, definition: &str, definitions: &Definitions) -> Option<Type> {
        let mut reader = Reader {
            definitions,
            path: vec![definition],
        };
        reader.schema(name, definitions.get(definition)?, true)
    }
}

struct Reader<'d> {
    definitions: &'d Definitions,
    /// The definitions around what is read.
    path: Vec<&'d str>,
}

impl<'d> Reader<'d> {
    /// The type of a schema that may refer to a definition.
    fn referred(&mut self, name: &str, schema: &'d Value) -> Option<Type> {
        let Some(target) = reference(schema) else {
            return self.schema(name, schema, is_embedded(schema));
        };
        if self.path.contains(&target) {
            return Some(Type::object(name, []));
        }
        let found = self.definitions.get(target)?;
        self.path.push(target);
        let ty = self.schema(name, found, is_embedded(found));
        self.path.pop();
        ty
    }

    fn schema(&mut self, name: &str, schema: &'d Value, is_resource: bool) -> Option<Type> {
        if is_int_or_string(schema) {
            return Some(Type::Dyn);
        }
        match schema["type"].as_str()? {
            "array" => {
                let element = self.referred(&format!("{name}.@idx"), schema.get("items")?)?;
                Some(Type::list(element))
            }
            "object" => match schema.get("additionalProperties").filter(|values| values.is_object()) {
                Some(values) => {
                    let value = self.referred(&format!("{name}.@elem"), values)?;
                    Some(Type::map(Type::String, value))
                }
                None => Some(self.object(name, schema, is_resource)),
            },
            "string" => Some(match schema["format"].as_str() {
                Some("byte") => Type::Bytes,
                Some("duration") => Type::Duration,
                Some("date" | "date-time") => Type::Timestamp,
                _ => Type::String,
            }),
            "boolean" => Some(Type::Bool),
            "number" => Some(Type::Double),
            "integer" => Some(Type::Int),
            _ => None,
        }
    }

    fn object(&mut self, name: &str, schema: &'d Value, is_resource: bool) -> Type {
        let properties = schema["properties"].as_object();
        let mut fields: BTreeMap<Cow<'_, str>, Type> = BTreeMap::new();
        for (property, schema) in properties.into_iter().flatten() {
            let Some(identifier) = escape(property) else { continue };
            if let Some(ty) = self.referred(&format!("{name}.{identifier}"), schema) {
                fields.insert(identifier, ty);
            }
        }
        if is_resource && !has_metadata(&fields) {
            let named = ["generateName", "name"].map(|field| (field, Type::String));
            let metadata = Type::object(&format!("{name}.metadata"), named);
            fields.extend([
                (Cow::Borrowed("apiVersion"), Type::String),
                (Cow::Borrowed("kind"), Type::String),
                (Cow::Borrowed("metadata"), metadata),
            ]);
        }
        Type::object(name, fields.iter().map(|(name, ty)| (&**name, ty.clone())))
    }
}

/// Whether the fields that every object has are known already, with the names of objects among them.
fn has_metadata(fields: &BTreeMap<Cow<'_, str>, Type>) -> bool {
    let is_text = |field: &str| fields.get(field) == Some(&Type::String);
    let Some(Type::Object(metadata)) = fields.get("metadata") else {
        return false;
    };
    let names = ["name", "generateName"].map(|field| metadata.fields.get(field) == Some(&Type::String));
    is_text("apiVersion") && is_text("kind") && names == [true, true]
}

/// The definition that a schema refers to, itself or by the one part of an `allOf`.
fn reference(schema: &Value) -> Option<&str> {
    let own = schema["$ref"].as_str();
    let wrapped = || schema["allOf"].as_array()?.iter().find_map(reference);
    let target = own.or_else(wrapped)?;
    Some(target.rsplit_once('/').map_or(target, |(_, name)| name))
}

fn is_embedded(schema: &Value) -> bool {
    schema[EMBEDDED] == true
}

fn is_int_or_string(schema: &Value) -> bool {
    schema["format"] == INT_OR_STRING || schema["x-kubernetes-int-or-string"] == true
}

#[cfg(test)]
mod tests {
    use super::super::Environment;
    use super::*;

    fn object() -> Type {
        let definitions = serde_json::json!({
            "Meta": {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}},
            "Amount": {"oneOf": [{"type": "string"}, {"type": "number"}]},
            "Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}},
            "Thing": {"type": "object", "properties": {
                "spec": {"allOf": [{"$ref": "#/components/schemas/Node"}], "default": {}},
                "when": {"type": "string", "format": "date-time"},
                "some": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
                "amounts": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Amount"}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "either": {"format": "int-or-string", "oneOf": []},
                "namespace": {"type": "string"},
                "x-y": {"type": "number"},
                "embedded": {"type": "object", "x-kubernetes-embedded-resource": true},
            }},
        });
        let definitions = serde_json::from_value(definitions).unwrap();
        Type::of_definition("Thing1", "Thing", &definitions).unwrap()
    }

    #[test]
    fn fields_have_the_types_of_their_schemas() {
        let environment = Environment::new().variable("object", object());
        for (source, want) in [
            ("object.metadata.name", "string"),
            ("object.spec", "Thing1.spec"),
            ("object.spec.next", "Thing1.spec.next"),
            ("object.some[0]", "Thing1.some.@idx"),
            ("object.some[0].a", "int"),
            ("object.labels", "map(string, string)"),
            ("object.when", "google.protobuf.Timestamp"),
            ("object.either", "dyn"),
            ("object.namespace + object.__namespace__", "string"),
            ("object.x__dash__y", "double"),
            ("object.embedded.metadata.generateName", "string"),
            ("object.spec.next.next", "undefined field 'next'"),
            ("object.amounts", "undefined field 'amounts'"),
            ("object.metadata.labels", "undefined field 'labels'"),
            ("object.spec == {}", "applied to '(Thing1.spec, map(dyn, dyn))'"),
        ] {
            let got = match environment.compile(source) {
                Ok(program) => program.result_type().to_string(),
                Err(error) => error.to_string(),
            };
            assert!(
                got == want || want.contains('\'') && got.contains(want),
                "{source}: {got}"
            );
        }
    }

    #[test]
    fn what_has_no_type_may_be_anything() {
        let definitions = serde_json::from_value(serde_json::json!({"Any": {}})).unwrap();
        assert_eq!(Type::of_definition("Any1", "Any", &definitions), None);
    }
}
