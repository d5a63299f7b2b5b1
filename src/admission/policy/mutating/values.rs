//! Values of expressions as JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keelson_machinery::cel::{Map, Value};
use serde_json::{Map as JsonMap, Number, Value as Json};

/// The largest whole number that JSON shows as a number.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// What is made of a value of an expression. The error is the text of a policy's failure, which nobody tells apart.
pub(super) type Made<T> = Result<T, String>;

/// A value as JSON, as protocol buffers show it: large numbers are texts.
///
/// # Errors
/// There is no JSON for it.
pub(super) fn to_json(value: &Value<'_>) -> Made<Json> {
    json_of(value, MAX_SAFE)
}

/// A value as JSON in which all whole numbers are numbers.
///
/// # Errors
/// There is no JSON for it.
pub(super) fn to_native(value: &Value<'_>) -> Made<Json> {
    json_of(value, u64::MAX)
}

fn json_of(value: &Value<'_>, largest: u64) -> Made<Json> {
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(b) => Json::Bool(*b),
        Value::Int(n) if n.unsigned_abs() <= largest => Json::from(*n),
        Value::Int(n) => Json::String(n.to_string()),
        Value::Uint(n) if *n <= largest => Json::from(*n),
        Value::Uint(n) => Json::String(n.to_string()),
        Value::Double(n) => Number::from_f64(*n).map_or_else(|| Json::String(n.to_string()), Json::Number),
        Value::String(text) => Json::String(text.as_str().to_owned()),
        Value::Bytes(bytes) => Json::String(STANDARD.encode(bytes)),
        Value::Duration(span) => Json::String(span.to_string()),
        Value::Timestamp(at) => Json::String(at.to_string()),
        Value::List(list) => {
            let items = list.iter().map(|item| json_of(&item, largest));
            Json::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Map(map) => Json::Object(members(map, largest)?),
        other => return Err(format!("unsupported type {}", other.type_name())),
    })
}

fn members(map: &Map<'_>, largest: u64) -> Made<JsonMap<String, Json>> {
    let mut members = JsonMap::new();
    for key in map.keys() {
        let name = key
            .as_str()
            .ok_or_else(|| format!("map key {key:?} is of type {}, not string", key.type_name()))?;
        let value = map.get(&key).unwrap_or(Value::Null);
        members.insert(name.to_owned(), json_of(&value, largest)?);
    }
    Ok(members)
}

/// What is wrong with the names of messages: each has to be that of the place where it stands.
pub(super) fn misnamed(value: &Value<'_>, path: &str, errors: &mut Vec<String>) {
    match value {
        Value::List(list) => list.iter().for_each(|item| misnamed(&item, path, errors)),
        Value::Map(map) => {
            let message = map.message();
            if let Some(name) = message.filter(|name| *name != path) {
                errors.push(format!(
                    "unexpected type name {name:?}, expected {path:?}, which matches field name path from root \
                     Object type"
                ));
            }
            for key in map.keys() {
                let Some(value) = map.get(&key) else { continue };
                match (message, key.as_str()) {
                    (Some(_), Some(field)) => misnamed(&value, &format!("{path}.{field}"), errors),
                    _ => misnamed(&value, path, errors),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use keelson_machinery::cel::{CALL_LIMIT, Environment};

    use super::*;

    fn with<T>(source: &str, then: impl Fn(&Value<'_>) -> T) -> T {
        let program = Environment::new().with_patches().compile(source).unwrap();
        then(&program.evaluate(&[], CALL_LIMIT).unwrap().value)
    }

    #[test]
    fn values_are_shown_as_json() {
        for (source, want) in [
            (
                "Object{a: 1, b: [dyn(1.5), dyn(true), dyn(null)], c: {'d': 'e'}}",
                r#"{"a":1,"b":[1.5,true,null],"c":{"d":"e"}}"#,
            ),
            ("9007199254740993", r#""9007199254740993""#),
            ("b'ab'", r#""YWI=""#),
            ("timestamp('2020-01-02T03:04:05Z')", r#""2020-01-02T03:04:05Z""#),
        ] {
            assert_eq!(
                with(source, |value| to_json(value).unwrap().to_string()),
                want,
                "{source}"
            );
        }
        assert_eq!(
            with("9007199254740993", |value| to_native(value).unwrap().to_string()),
            "9007199254740993"
        );
        assert!(with("{1: 2}", to_json).is_err());
        assert!(with("optional.of(1)", to_json).is_err());
    }

    #[test]
    fn messages_are_named_by_their_place() {
        let errors = |source: &str| {
            with(source, |value| {
                let mut errors = Vec::new();
                misnamed(value, "Object", &mut errors);
                errors
            })
        };
        assert!(errors("Object{a: Object.a{b: [Object.a.b{c: 1}]}, d: {'e': 1}}").is_empty());
        assert_eq!(
            errors("Object{a: Object.b{}}"),
            [
                "unexpected type name \"Object.b\", expected \"Object.a\", which matches field name path from root \
                 Object type"
            ]
        );
    }
}
