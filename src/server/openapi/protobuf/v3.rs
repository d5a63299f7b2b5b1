//! The protobuf form of the OpenAPI v3 documents, written from their JSON form.

use std::io;

use prost::Message;
use serde_json::Value;

use super::super::Model;
use super::super::definitions::{Definitions, parsed};
use super::super::sections::Section;
use super::super::v3::{self, security_scheme};
use super::{append, count, entries, flag, items, number, text, texts, yaml};

/// Generated of `v3.proto`; a test of the module compares.
mod openapi3 {
    #![allow(clippy::all, reason = "generated code")]
    include!("keelson.openapi3.rs");
}

use openapi3 as wire;

/// One document.
pub(in crate::openapi) fn encode(model: &Model, section: &Section, definitions: &Definitions) -> io::Result<Vec<u8>> {
    let mut paths = Vec::new();
    v3::paths(section, &mut |name, value| {
        let (name, value) = (name.to_owned(), Some(path_item(value)));
        let path = vec![wire::NamedPathItem { name, value }];
        append(&mut paths, &wire::Paths { path })
    })?;
    let info = v3::info_of(model, section);
    let document = wire::Document {
        openapi: "3.0.0".to_owned(),
        info: Some(wire::Info {
            title: info.title,
            version: info.version,
        }),
        paths,
        components: components(model, section, definitions)?,
    };
    Ok(document.encode_to_vec())
}

fn components(model: &Model, section: &Section, definitions: &Definitions) -> io::Result<Vec<u8>> {
    let (mut out, kinds) = (Vec::new(), section.kinds(model));
    for (name, schema) in definitions {
        let schema = parsed(name, schema, &kinds)?;
        let schemas = wire::Schemas {
            schema: vec![named_schema(name.clone(), &schema)],
        };
        let piece = wire::Components {
            schemas: Some(schemas),
            security_schemes: None,
        };
        append(&mut out, &piece)?;
    }
    if section.is_custom {
        return Ok(out);
    }
    let security = wire::Components {
        schemas: None,
        security_schemes: Some(security_schemes()),
    };
    append(&mut out, &security)?;
    Ok(out)
}

fn security_schemes() -> wire::SecuritySchemes {
    use wire::security_scheme_item::Item;
    let value = security_scheme();
    let scheme = wire::SecurityScheme {
        r#type: text(&value, "type"),
        description: text(&value, "description"),
        name: text(&value, "name"),
        r#in: text(&value, "in"),
    };
    let value = wire::SecuritySchemeItem {
        item: Some(Item::Scheme(scheme)),
    };
    wire::SecuritySchemes {
        scheme: vec![wire::NamedSecurityScheme {
            name: "BearerToken".to_owned(),
            value: Some(value),
        }],
    }
}

fn any(value: &Value) -> wire::Any {
    wire::Any { yaml: yaml(value) }
}

fn extensions(value: &Value) -> Vec<wire::NamedAny> {
    let members = value.as_object().into_iter().flatten();
    members
        .filter(|(name, _)| name.starts_with("x-"))
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
        parameters: items(value, "parameters").map(parameter).collect(),
    }
}

fn operation(value: &Value) -> wire::Operation {
    wire::Operation {
        tags: texts(value, "tags"),
        description: text(value, "description"),
        operation_id: text(value, "operationId"),
        parameters: items(value, "parameters").map(parameter).collect(),
        request_body: value.get("requestBody").map(request_body),
        responses: Some(wire::Responses {
            code: entries(value, "responses", response),
        }),
        vendor_extension: extensions(value),
    }
}

fn parameter(value: &Value) -> wire::ParameterItem {
    let parameter = wire::Parameter {
        name: text(value, "name"),
        r#in: text(value, "in"),
        description: text(value, "description"),
        required: flag(value, "required"),
        schema: value.get("schema").map(schema),
    };
    wire::ParameterItem {
        item: Some(wire::parameter_item::Item::Parameter(parameter)),
    }
}

fn request_body(value: &Value) -> wire::RequestBodyItem {
    let body = wire::RequestBody {
        content: value.get("content").map(|_| content(value)),
        required: flag(value, "required"),
    };
    wire::RequestBodyItem {
        item: Some(wire::request_body_item::Item::RequestBody(body)),
    }
}

fn response(name: String, value: &Value) -> wire::NamedResponse {
    let response = wire::Response {
        description: text(value, "description"),
        content: value.get("content").map(|_| content(value)),
    };
    let item = Some(wire::response_item::Item::Response(response));
    wire::NamedResponse {
        name,
        value: Some(wire::ResponseItem { item }),
    }
}

fn content(value: &Value) -> wire::MediaTypes {
    let media_type = entries(value, "content", |name, v| {
        let media_type = wire::MediaType {
            schema: v.get("schema").map(schema),
        };
        wire::NamedMediaType {
            name,
            value: Some(media_type),
        }
    });
    wire::MediaTypes { media_type }
}

fn named_schema(name: String, value: &Value) -> wire::NamedSchema {
    wire::NamedSchema {
        name,
        value: Some(schema(value)),
    }
}

fn schema(value: &Value) -> wire::SchemaItem {
    use wire::schema_item::Item;
    let item = match value.get("$ref").and_then(Value::as_str) {
        Some(target) => Item::Reference(wire::Reference {
            target: target.to_owned(),
        }),
        None => Item::Schema(Box::new(own_schema(value))),
    };
    wire::SchemaItem { item: Some(item) }
}

fn own_schema(value: &Value) -> wire::Schema {
    wire::Schema {
        nullable: flag(value, "nullable"),
        title: text(value, "title"),
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
        r#type: text(value, "type"),
        all_of: items(value, "allOf").map(schema).collect(),
        one_of: items(value, "oneOf").map(schema).collect(),
        any_of: items(value, "anyOf").map(schema).collect(),
        items: value.get("items").map(|item| wire::Items {
            schema: vec![schema(item)],
        }),
        properties: value.get("properties").map(|_| wire::Properties {
            schema: entries(value, "properties", named_schema),
        }),
        additional_properties: value
            .get("additionalProperties")
            .map(|v| Box::new(additional_properties(v))),
        default: value.get("default").map(default),
        description: text(value, "description"),
        format: text(value, "format"),
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

fn default(value: &Value) -> wire::Default {
    use wire::default::Value as Of;
    let value = match value {
        Value::Bool(flag) => Some(Of::Boolean(*flag)),
        Value::Number(number) => number.as_f64().map(Of::Number),
        Value::String(text) => Some(Of::Text(text.clone())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    wire::Default { value }
}
