//! Default values, checked against their fields.

use serde_json::Value;

use crate::model::{Field, FieldType, Model};

/// What is wrong with this JSON text as a value of the field.
pub fn check(model: &Model, field: &Field, text: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(text)
        .map_err(|_| format!("the default {text} is no JSON text: write {}", example(&field.ty)))?;
    fits(model, &field.ty, &value)
        .map_err(|what| format!("the default {text} {what}: write {}", example(&field.ty)))?;
    let allowed = &field.options.enum_values;
    match value.as_str() {
        Some(text) if !allowed.is_empty() && !allowed.iter().any(|a| a == text) => Err(format!(
            "the default {text:?} is none of `enum`: write one of {}",
            allowed.join(", ")
        )),
        _ => Ok(()),
    }
}

fn example(ty: &FieldType) -> &'static str {
    match ty {
        FieldType::Bool => "`default: \"true\"`",
        FieldType::Int32 | FieldType::Int64 => "`default: \"3\"`",
        FieldType::Double => "`default: \"1.5\"`",
        FieldType::String | FieldType::Bytes => "`default: \"\\\"text\\\"\"`",
        FieldType::Message(_) | FieldType::Map(_) => "`default: \"{}\"`",
        FieldType::List(_) => "`default: \"[]\"`",
    }
}

fn fits(model: &Model, ty: &FieldType, value: &Value) -> Result<(), String> {
    let is = |ok: bool, what: &str| if ok { Ok(()) } else { Err(format!("is not {what}")) };
    match ty {
        FieldType::Bool => is(value.is_boolean(), "true or false"),
        FieldType::Int32 => is(
            value.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
            "a whole number of 32 bits",
        ),
        FieldType::Int64 => is(value.as_i64().is_some(), "a whole number of 64 bits"),
        FieldType::Double => is(value.is_number(), "a number"),
        FieldType::String | FieldType::Bytes => is(value.is_string(), "a text in quotes"),
        FieldType::List(element) => match value.as_array() {
            Some(list) => list.iter().try_for_each(|v| fits(model, element, v)),
            None => is(false, "a list"),
        },
        FieldType::Map(inner) => match value.as_object() {
            Some(map) => map.values().try_for_each(|v| fits(model, inner, v)),
            None => is(false, "an object"),
        },
        FieldType::Message(id) => match (model.message(*id), value.as_object()) {
            (Some(message), _) if message.is_leaf() => Ok(()),
            (Some(message), Some(map)) => map
                .iter()
                .try_for_each(|(key, v)| match model.find_field(message, key) {
                    Some(field) => fits(model, &field.ty, v),
                    None => Err(format!("has {key:?}, which is no field of {}", message.name)),
                }),
            _ => is(false, "an object"),
        },
    }
}
