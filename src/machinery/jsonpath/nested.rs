//! Values at dotted paths in objects that are known as trees alone, such as the replicas of a custom resource: what
//! stands on the way has to be an object, and what is found of the wanted type.

use crate::field::text::float;
use crate::reflect::{self, OptionalSlot, Reflect, Slot, Value, member};

/// Why a value can't be read or written at a path, in the words of Kubernetes' accessors.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NestedError {
    /// Something else stands there or on the way.
    #[error("{0}")]
    Type(String),
    /// Something else than an object stands on the way, at this path.
    #[error("value cannot be set because {0} is not a map[string]interface{{}}")]
    Parent(String),
    /// A path without names.
    #[error("value cannot be set at no path")]
    NoPath,
}

/// The whole number at a path such as `.spec.replicas`; `None`: there is nothing.
///
/// # Errors
/// Something else stands there or on the way, in the words of Kubernetes' accessors.
pub fn int64(root: &dyn Reflect, path: &str) -> Result<Option<i64>, NestedError> {
    match value(root, path)? {
        None => Ok(None),
        Some(Value::Int64(number)) => Ok(Some(number)),
        Some(other) => Err(mismatch(&names(path), other, "int64")),
    }
}

/// The text at a path; `None`: there is nothing.
///
/// # Errors
/// As [`int64`].
pub fn text<'a>(root: &'a dyn Reflect, path: &str) -> Result<Option<&'a str>, NestedError> {
    match value(root, path)? {
        None => Ok(None),
        Some(Value::Str(text)) => Ok(Some(text)),
        Some(other) => Err(mismatch(&names(path), other, "string")),
    }
}

/// Writes a whole number to a path, making the objects on the way.
///
/// # Errors
/// Something else than an object stands on the way.
pub fn set_int64(root: &mut dyn Reflect, path: &str, number: i64) -> Result<(), NestedError> {
    let names = names(path);
    let Some((last, parents)) = names.split_last() else {
        return Err(NestedError::NoPath);
    };
    let mut within = Some(Slot::Message(root));
    for (depth, name) in parents.iter().enumerate() {
        let Some(slot) = within.and_then(|slot| child(slot, name)) else {
            // The object holds nothing of that name.
            return Ok(());
        };
        let below = match slot {
            Slot::Optional(OptionalSlot::Dynamic(slot)) if !slot.is_some() => slot.fill_object(),
            Slot::Optional(slot) if slot.is_some() => slot.open(),
            Slot::Optional(slot) => slot.fill(),
            slot => slot,
        };
        if !matches!(below, Slot::Message(_) | Slot::Map(_)) {
            let path = joined(names.get(..=depth).unwrap_or_default());
            return Err(NestedError::Parent(path));
        }
        within = Some(below);
    }
    match within.and_then(|slot| child(slot, last)) {
        Some(Slot::Optional(OptionalSlot::Dynamic(slot))) => slot.assign(Value::Int64(number)),
        Some(slot) => crate::reflect::copy::assign(slot, Value::Int64(number)),
        None => {}
    }
    Ok(())
}

fn child<'a>(slot: Slot<'a>, name: &str) -> Option<Slot<'a>> {
    match slot {
        Slot::Message(message) => match message.desc().position(name.as_bytes()) {
            Some(index) => message.get_mut(index),
            None => message.rest_mut().map(|rest| rest.entry(name)),
        },
        Slot::Map(map) => Some(map.entry(name)),
        _ => None,
    }
}

fn value<'a>(root: &'a dyn Reflect, path: &str) -> Result<Option<Value<'a>>, NestedError> {
    let names = names(path);
    let mut at = Value::Message(root);
    for (depth, name) in names.iter().enumerate() {
        let found = match at {
            Value::Message(message) => member(message, name).map(|(_, value)| value),
            Value::Map(map) => map.get(name),
            // What null has is nothing.
            Value::Null => return Ok(None),
            other => {
                let path = names.get(..=depth).unwrap_or_default();
                return Err(mismatch(path, other, "map[string]interface{}"));
            }
        };
        match found {
            None | Some(Value::Absent) => return Ok(None),
            Some(value) => at = value,
        }
    }
    Ok(Some(at))
}

fn names(path: &str) -> Vec<&str> {
    path.strip_prefix('.').unwrap_or(path).split('.').collect()
}

fn joined(names: &[&str]) -> String {
    format!(".{}", names.join("."))
}

fn mismatch(path: &[&str], found: Value<'_>, wanted: &str) -> NestedError {
    let (path, ty) = (joined(path), type_name(found));
    let found = printed(found);
    NestedError::Type(format!(
        "{path} accessor error: {found} is of the type {ty}, expected {wanted}"
    ))
}

/// The type that Go has for a value.
fn type_name(value: Value<'_>) -> &'static str {
    match value {
        Value::Absent | Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int32(_) | Value::Int64(_) => "int64",
        Value::Double(_) => "float64",
        Value::Str(_) | Value::Bytes(_) | Value::Leaf(_) => "string",
        Value::List(_) => "[]interface {}",
        Value::Map(_) | Value::Message(_) => "map[string]interface {}",
    }
}

/// A value as Go prints it: `x`, `[1 a]`, `map[a:b]`.
fn printed(value: Value<'_>) -> String {
    match value {
        Value::Absent | Value::Null => "<nil>".to_owned(),
        Value::Bool(v) => v.to_string(),
        Value::Int32(v) => v.to_string(),
        Value::Int64(v) => v.to_string(),
        Value::Double(v) => float(v),
        Value::Str(v) => v.to_owned(),
        Value::Bytes(_) | Value::Leaf(_) => super::scalar_text(value).unwrap_or_default().into_owned(),
        Value::List(list) => {
            let items: Vec<String> = (0..list.len()).map(|index| printed(list.get(index))).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Map(map) => {
            let mut members = Vec::with_capacity(map.len());
            map.for_each(&mut |key, value| members.push((key.to_owned(), printed(value))));
            members_text(members)
        }
        Value::Message(message) => {
            let present = reflect::fields(message).filter(|(_, _, value)| !matches!(value, Value::Absent));
            let mut members: Vec<_> = present
                .map(|(_, field, value)| (field.json.to_string(), printed(value)))
                .collect();
            if let Some(rest) = message.rest() {
                rest.for_each(&mut |key, value| members.push((key.to_owned(), printed(value))));
            }
            members_text(members)
        }
    }
}

fn members_text(mut members: Vec<(String, String)>) -> String {
    members.sort();
    let members: Vec<String> = members
        .into_iter()
        .map(|(key, value)| format!("{key}:{value}"))
        .collect();
    format!("map[{}]", members.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use crate::reflect::{Desc, FieldDesc, Flags, MessageDesc, Type, Unknown};

    fn table() -> Desc {
        let replicas = FieldDesc::shared("replicas", Type::Int64, Flags::NONE);
        let spec = MessageDesc::shared("", None, vec![replicas], Unknown::Dropped).unwrap();
        let fields = vec![
            FieldDesc::shared("spec", Type::Message(spec), Flags::NONE),
            FieldDesc::shared("any", Type::Any, Flags::NONE),
        ];
        MessageDesc::shared("", None, fields, Unknown::Kept).unwrap()
    }

    fn object(text: &str) -> Box<dyn Reflect> {
        let mut object = table().new_message();
        json::read(text.as_bytes(), &mut *object).unwrap();
        object
    }

    #[test]
    fn numbers_are_found_and_others_named() {
        for (text, path, want) in [
            (r#"{"spec":{"replicas":3}}"#, ".spec.replicas", Ok(Some(3))),
            (r#"{"spec":{}}"#, ".spec.replicas", Ok(None)),
            ("{}", ".spec.replicas", Ok(None)),
            (r#"{"any":{"a":{"b":2}}}"#, ".any.a.b", Ok(Some(2))),
            (r#"{"rest":{"a":2}}"#, ".rest.a", Ok(Some(2))),
            (
                r#"{"spec":{"replicas":"x"}}"#,
                ".spec.replicas",
                Err(".spec.replicas accessor error: x is of the type string, expected int64"),
            ),
            (
                r#"{"any":{"a":{"b":[1,"x",1.5],"a":null}}}"#,
                ".any.a",
                Err(
                    ".any.a accessor error: map[a:<nil> b:[1 x 1.5]] is of the type map[string]interface {}, expected int64",
                ),
            ),
            (
                r#"{"any":[1]}"#,
                ".any.a",
                Err(".any.a accessor error: [1] is of the type []interface {}, expected map[string]interface{}"),
            ),
        ] {
            assert_eq!(
                int64(&*object(text), path).map_err(|error| error.to_string()),
                want.map_err(str::to_owned),
                "{text} {path}"
            );
        }
        assert_eq!(super::text(&*object(r#"{"any":{"a":"b"}}"#), ".any.a"), Ok(Some("b")));
    }

    #[test]
    fn numbers_are_written_below_new_objects() {
        for (text, path, want) in [
            ("{}", ".spec.replicas", Ok(r#"{"spec":{"replicas":7}}"#)),
            (
                r#"{"spec":{"replicas":3}}"#,
                ".spec.replicas",
                Ok(r#"{"spec":{"replicas":7}}"#),
            ),
            ("{}", ".any.a.b", Ok(r#"{"any":{"a":{"b":7}}}"#)),
            ("{}", ".rest.a", Ok(r#"{"rest":{"a":7}}"#)),
            ("{}", ".spec.other.a", Ok(r#"{"spec":{}}"#)),
            (
                r#"{"any":[1]}"#,
                ".any.a",
                Err("value cannot be set because .any is not a map[string]interface{}"),
            ),
        ] {
            let mut object = object(text);
            let done = set_int64(&mut *object, path, 7);
            let mut written = Vec::new();
            json::write(&*object, &mut written);
            let done = done.map(|()| String::from_utf8(written).unwrap());
            let done = done.map_err(|error| error.to_string());
            assert_eq!(done, want.map(str::to_owned).map_err(str::to_owned), "{text} {path}");
        }
    }
}
