//! Rules of names, labels and metadata that every object follows, and the declarative rules of definitions.

pub mod declarative;
mod format;
pub mod meta;
pub mod options;

use base64::Engine;

use crate::content::{Unit, strfmt};
pub use crate::content::{labels, names, webhook};
use crate::field::BadValue;
use crate::field::text::{json_float, json_string};
use crate::reflect::{Leaf, Reflect, Value};

/// A message as error texts show it: JSON.
pub fn message_value(message: &dyn Reflect) -> BadValue {
    json_value(Value::Message(message))
}

/// A list of messages as error texts show it: JSON.
pub fn list_value<'a>(messages: impl Iterator<Item = &'a dyn Reflect>) -> BadValue {
    let mut out = Vec::new();
    write_list(messages.map(Value::Message), &mut out);
    BadValue::json(String::from_utf8_lossy(&out))
}

/// A leaf as error texts show it: JSON.
pub fn leaf_value(leaf: &dyn Leaf) -> BadValue {
    json_value(Value::Leaf(leaf))
}

fn json_value(value: Value<'_>) -> BadValue {
    let mut out = Vec::new();
    write_value(value, &mut out);
    BadValue::json(String::from_utf8_lossy(&out))
}

/// Appends the JSON of any value.
pub(crate) fn write_value(value: Value<'_>, out: &mut Vec<u8>) {
    let string = |text: &str, out: &mut Vec<u8>| {
        let mut quoted = String::new();
        json_string(text, &mut quoted);
        out.extend_from_slice(quoted.as_bytes());
    };
    match value {
        Value::Absent | Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(v) => out.extend_from_slice(v.to_string().as_bytes()),
        Value::Int32(v) => out.extend_from_slice(v.to_string().as_bytes()),
        Value::Int64(v) => out.extend_from_slice(v.to_string().as_bytes()),
        Value::Double(v) => out.extend_from_slice(json_float(v).as_bytes()),
        Value::Str(text) => string(text, out),
        Value::Bytes(bytes) => string(&base64::engine::general_purpose::STANDARD.encode(bytes), out),
        Value::Message(message) => crate::json::write(message, out),
        Value::Leaf(leaf) => leaf.write_json(out),
        Value::List(list) => write_list((0..list.len()).map(|i| list.get(i)), out),
        Value::Map(map) => {
            out.push(b'{');
            let mut first = true;
            map.for_each(&mut |key, value| {
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                string(key, out);
                out.push(b':');
                write_value(value, out);
            });
            out.push(b'}');
        }
    }
}

fn write_list<'a>(values: impl Iterator<Item = Value<'a>>, out: &mut Vec<u8>) {
    out.push(b'[');
    for (i, value) in values.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_value(value, out);
    }
    out.push(b']');
}
