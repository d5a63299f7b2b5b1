//! The protobuf form of the OpenAPI v2 document, written from its JSON form.

use std::collections::BTreeMap;
use std::io;

use keelson_machinery::protobuf::write_tag_len;
use prost::Message;
use serde_json::Value;

use super::super::Info;
use super::super::v2::PROTOBUF;
use super::super::v3::security_scheme;
use super::{count, entries, flag, items, number, text, texts, yaml};
use crate::document::{Document, Joining, Piece};

/// Generated of `v2.proto`; a test of the module compares.
mod swagger {
    #![allow(clippy::all, reason = "generated code")]
    include!("keelson.swagger.rs");
}

use swagger as wire;

/// Numbers of the fields of a document that are put together from pieces.
const PATHS: u32 = 8;
const DEFINITIONS: u32 = 9;

/// A path as a piece of a document.
pub(in crate::openapi) fn path(name: &str, value: &Value) -> io::Result<Vec<u8>> {
    let (name, value) = (name.to_owned(), Some(path_item(value)));
    let path = vec![wire::NamedPathItem { name, value }];
    Ok(wire::Paths { path }.encode_to_vec())
}

/// A definition as a piece of a document.
pub(in crate::openapi) fn definition(name: &str, value: &Value) -> io::Result<Vec<u8>> {
    let schema = vec![named_schema(name.to_owned(), value)];
    Ok(wire::Definitions { schema }.encode_to_vec())
}

/// The document of these pieces. `parameters` are JSON, by their key.
pub(in crate::openapi) fn encode(
    info: &Info,
    paths: &[&Piece],
    definitions: &[&Piece],
    parameters: &BTreeMap<&'static str, &str>,
) -> io::Result<Document> {
    let named = |(name, text): (&&'static str, &&str)| {
        let value = serde_json::from_str(text)?;
        let (name, value) = ((*name).to_owned(), Some(parameter(&value)));
        Ok::<_, io::Error>(wire::NamedParameter { name, value })
    };
    let head = wire::Document {
        swagger: "2.0".to_owned(),
        info: Some(wire::Info {
            title: info.title.clone(),
            version: info.version.clone(),
        }),
        ..wire::Document::default()
    };
    let tail = wire::Document {
        parameters: Some(wire::SharedParameters {
            parameter: parameters.iter().map(named).collect::<io::Result<_>>()?,
        }),
        security: vec![security_requirement("BearerToken")],
        security_definitions: Some(wire::SecurityDefinitions {
            definition: vec![security_definition("BearerToken")],
        }),
        ..wire::Document::default()
    };
    let mut out = Joining::new();
    out.bytes(&head.encode_to_vec());
    for (number, pieces) in [(PATHS, paths), (DEFINITIONS, definitions)] {
        let mut head = Vec::new();
        write_tag_len(number, pieces.iter().map(|piece| piece.len()).sum(), &mut head);
        out.bytes(&head);
        pieces.iter().for_each(|piece| out.piece(piece));
    }
    out.bytes(&tail.encode_to_vec());
    Ok(out.finish(PROTOBUF))
}

fn security_requirement(name: &str) -> wire::SecurityRequirement {
    let (name, value) = (name.to_owned(), Some(wire::Strings::default()));
    wire::SecurityRequirement {
        scheme: vec![wire::NamedStrings { name, value }],
    }
}

fn security_definition(name: &str) -> wire::NamedSecurityDefinition {
    let item = Some(api_key(&security_scheme()));
    wire::NamedSecurityDefinition {
        name: name.to_owned(),
        value: Some(wire::SecurityDefinition { item }),
    }
}

fn any(value: &Value) -> wire::Any {
    wire::Any { yaml: yaml(value) }
}

fn extensions(value: &Value) -> Vec<wire::NamedAny> {
    let members = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.starts_with("x-"));
    members
        .map(|(name, v)| wire::NamedAny {
            name: name.clone(),
            value: Some(any(v)),
        })
        .collect()
}

fn path_item(value: &Value) -> wire::PathItem {
    let operation = |method: &str| value.get(method).map(operation);
    wire::PathItem {
        get: operation("get"),
        put: operation("put"),
        post: operation("post"),
        delete: operation("delete"),
        options: operation("options"),
        head: operation("head"),
        patch: operation("patch"),
        parameters: items(value, "parameters").map(parameter_item).collect(),
    }
}

fn operation(value: &Value) -> wire::Operation {
    wire::Operation {
        tags: texts(value, "tags"),
        description: text(value, "description"),
        operation_id: text(value, "operationId"),
        produces: texts(value, "produces"),
        consumes: texts(value, "consumes"),
        parameters: items(value, "parameters").map(parameter_item).collect(),
        responses: Some(wire::Responses {
            code: entries(value, "responses", response),
        }),
        schemes: texts(value, "schemes"),
        vendor_extension: extensions(value),
    }
}

fn response(name: String, value: &Value) -> wire::NamedResponse {
    let schema = value.get("schema").map(|s| wire::SchemaItem {
        item: Some(wire::schema_item::Item::Schema(schema(s))),
    });
    let response = wire::Response {
        description: text(value, "description"),
        schema,
    };
    let value = wire::ResponseValue {
        value: Some(wire::response_value::Value::Response(response)),
    };
    wire::NamedResponse {
        name,
        value: Some(value),
    }
}

fn parameter_item(value: &Value) -> wire::ParameterItem {
    use wire::parameter_item::Item;
    let item = match value.get("$ref").and_then(Value::as_str) {
        Some(target) => Item::Reference(wire::Reference {
            target: target.to_owned(),
            description: text(value, "description"),
        }),
        None => Item::Parameter(parameter(value)),
    };
    wire::ParameterItem { item: Some(item) }
}

fn parameter(value: &Value) -> wire::Parameter {
    use wire::non_body_parameter::Place;
    let (required, at, name) = (flag(value, "required"), text(value, "in"), text(value, "name"));
    let (description, ty, unique_items) = (
        text(value, "description"),
        text(value, "type"),
        flag(value, "uniqueItems"),
    );
    let place = match at.as_str() {
        "body" => {
            let schema = value.get("schema").map(schema);
            let body = wire::BodyParameter {
                description,
                name,
                r#in: at,
                required,
                schema,
            };
            return wire::Parameter {
                place: Some(wire::parameter::Place::Body(body)),
            };
        }
        "path" => Place::Path(wire::PathParameter {
            required,
            r#in: at,
            description,
            name,
            r#type: ty,
            unique_items,
        }),
        _ => Place::Query(wire::QueryParameter {
            required,
            r#in: at,
            description,
            name,
            r#type: ty,
            unique_items,
        }),
    };
    let other = wire::NonBodyParameter { place: Some(place) };
    wire::Parameter {
        place: Some(wire::parameter::Place::Other(other)),
    }
}

fn named_schema(name: String, value: &Value) -> wire::NamedSchema {
    wire::NamedSchema {
        name,
        value: Some(schema(value)),
    }
}

fn schema(value: &Value) -> wire::Schema {
    let properties = value.get("properties");
    wire::Schema {
        reference: text(value, "$ref"),
        format: text(value, "format"),
        title: text(value, "title"),
        description: text(value, "description"),
        multiple_of: number(value, "multipleOf"),
        maximum: number(value, "maximum"),
        exclusive_maximum: flag(value, "exclusiveMaximum"),
        minimum: number(value, "minimum"),
        exclusive_minimum: flag(value, "exclusiveMinimum"),
        max_length: count(value, "maxLength"),
        min_length: count(value, "minLength"),
        pattern: text(value, "pattern"),
        max_items: count(value, "maxItems"),
        min_items: count(value, "minItems"),
        unique_items: flag(value, "uniqueItems"),
        max_properties: count(value, "maxProperties"),
        min_properties: count(value, "minProperties"),
        required: texts(value, "required"),
        r#enum: items(value, "enum").map(any).collect(),
        additional_properties: value
            .get("additionalProperties")
            .map(|v| Box::new(additional_properties(v))),
        r#type: value.get("type").and_then(Value::as_str).map(|t| wire::TypeItem {
            value: vec![t.to_owned()],
        }),
        items: value.get("items").map(|i| wire::Items {
            schema: vec![schema(i)],
        }),
        all_of: items(value, "allOf").map(schema).collect(),
        properties: properties.map(|_| wire::Properties {
            schema: entries(value, "properties", named_schema),
        }),
        vendor_extension: extensions(value),
    }
}

fn additional_properties(value: &Value) -> wire::AdditionalProperties {
    use wire::additional_properties::Item;
    let item = match value {
        Value::Bool(allowed) => Item::Allowed(*allowed),
        other => Item::Schema(Box::new(schema(other))),
    };
    wire::AdditionalProperties { item: Some(item) }
}

fn api_key(value: &Value) -> wire::security_definition::Item {
    wire::security_definition::Item::ApiKey(wire::ApiKey {
        r#type: text(value, "type"),
        name: text(value, "name"),
        r#in: text(value, "in"),
        description: text(value, "description"),
    })
}
