//! Default values, checked against their fields.

use regex::Regex;
use serde_json::Value;

use crate::model::{Field, FieldType, Model};
use crate::problem::Checked;

/// What is wrong with this JSON text as a value of the field.
pub fn check(model: &Model, field: &Field, text: &str) -> Checked<()> {
    let value: Value = serde_json::from_str(text)
        .map_err(|_| format!("the default {text} is no JSON text: write {}", example(&field.ty)))?;
    fits(model, &field.ty, &value)
        .map_err(|what| format!("the default {text} {what}: write {}", example(&field.ty)))?;
    if let Some(what) = beyond(field, &value) {
        return Err(format!(
            "the default {text} {what}: every object without the field would be refused"
        ));
    }
    let allowed = &field.options.enum_values;
    match value.as_str() {
        Some(text) if !allowed.is_empty() && !allowed.iter().any(|a| a == text) => Err(format!(
            "the default {text:?} is none of `enum`: write one of {}",
            allowed.join(", ")
        )),
        _ => Ok(()),
    }
}

/// Which rule of its own field a value breaks.
fn beyond(field: &Field, value: &Value) -> Option<String> {
    let o = &field.options;
    if let Some(number) = value.as_f64() {
        let low = o
            .minimum
            .filter(|least| number < *least || (o.exclusive_minimum && number == *least));
        let high = o
            .maximum
            .filter(|most| number > *most || (o.exclusive_maximum && number == *most));
        let part = o.multiple_of.filter(|of| *of != 0.0 && number % of != 0.0);
        let low = low.map(|least| format!("is below `minimum: {least}`"));
        let high = high.map(|most| format!("is above `maximum: {most}`"));
        return low.or(high).or(part.map(|of| format!("is no multiple of {of}")));
    }
    let (size, least, most) = match value {
        Value::String(text) => (text.chars().count(), o.min_length, o.max_length),
        Value::Array(items) => (items.len(), o.min_items, o.max_items),
        Value::Object(entries) => (entries.len(), o.min_properties, o.max_properties),
        _ => return None,
    };
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    if let Some(least) = least.filter(|least| size < *least) {
        return Some(format!("has {size}, fewer than {least}"));
    }
    if let Some(most) = most.filter(|most| size > *most) {
        return Some(format!("has {size}, more than {most}"));
    }
    let text = value.as_str().filter(|_| !o.pattern.is_empty())?;
    let pattern = Regex::new(&o.pattern).ok()?;
    (!pattern.is_match(text)).then(|| format!("does not fit the pattern {:?}", o.pattern))
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

fn fits(model: &Model, ty: &FieldType, value: &Value) -> Checked<()> {
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
