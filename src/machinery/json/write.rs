//! Messages to JSON text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::swar;
use super::text::{write_escaped, write_string};
use crate::equality::is_zero;
use crate::object::{Kind, api_version};
use crate::reflect::{FieldDesc, Flags, List, Map, Reflect, Value};

/// Room for the values of the messages that one is written within.
const VALUES: usize = 192;

/// Appends the message as a JSON object. `out` may hold anything before.
pub fn write(message: &dyn Reflect, out: &mut Vec<u8>) {
    write_message(message, &mut Vec::with_capacity(VALUES), out);
}

/// `values` has the values of the messages around this one.
fn write_message<'a>(message: &'a dyn Reflect, values: &mut Vec<Value<'a>>, out: &mut Vec<u8>) {
    out.push(b'{');
    write_fields(message, values, out);
    out.push(b'}');
}

/// Appends an object of a kind: `kind` and `apiVersion` come first.
pub fn write_kind(object: &dyn Kind, out: &mut Vec<u8>) {
    let gvk = object.gvk();
    let version;
    let api_version = if gvk.group.is_empty() {
        gvk.version
    } else {
        version = api_version(gvk.group, gvk.version);
        &version
    };
    write_kind_as(object.as_reflect(), api_version, gvk.kind, out);
}

/// Appends a message as an object of the kind that is given.
pub fn write_kind_as(message: &dyn Reflect, api_version: &str, kind: &str, out: &mut Vec<u8>) {
    write_named(message, api_version, kind, &mut Vec::with_capacity(VALUES), out);
}

fn write_named<'a>(
    message: &'a dyn Reflect,
    api_version: &str,
    kind: &str,
    values: &mut Vec<Value<'a>>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"{\"kind\":");
    write_string(kind, out);
    out.extend_from_slice(b",\"apiVersion\":");
    write_string(api_version, out);
    write_fields(message, values, out);
    out.push(b'}');
}

/// The JSON text of an object, with `kind` and `apiVersion`.
pub fn to_vec(object: &dyn Kind) -> Vec<u8> {
    let mut out = Vec::with_capacity(4096);
    write_kind(object, &mut out);
    out
}

fn write_fields<'a>(message: &'a dyn Reflect, values: &mut Vec<Value<'a>>, out: &mut Vec<u8>) {
    let begin = values.len();
    message.values(values);
    for (index, field) in message.desc().fields.iter().enumerate() {
        let Some(&value) = values.get(begin + index) else {
            break;
        };
        if field.flags.has(Flags::INLINE) {
            if let Value::Message(inlined) = value {
                write_fields(inlined, values, out);
            }
        } else if is_written(field, value) {
            write_key(field.json, out);
            write_field(field, value, values, out);
        }
    }
    values.truncate(begin);
}

/// Appends a field that is not inlined as a member of the object that `out` ends in, if JSON shows it.
pub(crate) fn write_member(message: &dyn Reflect, index: usize, out: &mut Vec<u8>) {
    let value = message.get(index);
    if let Some(field) = message
        .desc()
        .fields
        .get(index)
        .filter(|field| is_written(field, value))
    {
        write_key(field.json, out);
        write_field(field, value, &mut Vec::new(), out);
    }
}

/// Whether JSON shows the field when it has this value.
#[inline]
pub(crate) fn is_written(field: &FieldDesc, value: Value<'_>) -> bool {
    let always = field.flags.has(Flags::ALWAYS);
    if field.flags.has(Flags::OPTIONAL) {
        return always || !matches!(value, Value::Absent);
    }
    match value {
        Value::Absent => always,
        Value::Bool(b) => always || b,
        Value::Int32(n) => always || n != 0,
        Value::Int64(n) => always || n != 0,
        Value::Double(n) => always || n != 0.0,
        Value::Str(s) => always || !s.is_empty(),
        Value::Bytes(b) => always || !b.is_empty(),
        Value::List(l) => always || !l.is_empty(),
        Value::Map(m) => always || !m.is_empty(),
        Value::Message(m) => !field.flags.has(Flags::OMIT_ZERO) || !is_zero(m),
        Value::Leaf(l) => !field.flags.has(Flags::OMIT_ZERO) || !l.is_zero(),
    }
}

/// Appends the key of a member, behind a comma unless it is the first of its object.
#[inline]
pub(crate) fn write_key(key: &str, out: &mut Vec<u8>) {
    out.reserve(key.len() + 4);
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    out.push(b'"');
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

/// A field that is written although it is empty shows as null, but for the items of a list kind and lists whose
/// definition wants it otherwise.
fn write_field<'a>(field: &FieldDesc, value: Value<'a>, values: &mut Vec<Value<'a>>, out: &mut Vec<u8>) {
    let null = match value {
        Value::List(l) => {
            let shown = field.flags.has(Flags::OPTIONAL) || field.flags.has(Flags::EMPTY_LIST) || field.json == "items";
            l.is_empty() && !shown
        }
        Value::Map(m) => m.is_empty() && !field.flags.has(Flags::OPTIONAL),
        Value::Bytes(b) => b.is_empty() && !field.flags.has(Flags::OPTIONAL),
        _ => false,
    };
    if null {
        out.extend_from_slice(b"null")
    } else if field.flags.has(Flags::TYPED) {
        write_typed(value, values, out);
    } else {
        write_value(value, values, out)
    }
}

/// A kind within an object, or a list of them.
fn write_typed<'a>(value: Value<'a>, values: &mut Vec<Value<'a>>, out: &mut Vec<u8>) {
    match value {
        Value::Message(m) => match m.desc().gvk {
            Some(gvk) => write_named(m, &gvk.api_version(), gvk.kind, values, out),
            None => write_message(m, values, out),
        },
        Value::List(list) => write_elements(list, write_typed, values, out),
        other => write_value(other, values, out),
    }
}

fn write_value<'a>(value: Value<'a>, values: &mut Vec<Value<'a>>, out: &mut Vec<u8>) {
    match value {
        Value::Absent => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int32(n) => write_int(i64::from(n), out),
        Value::Int64(n) => write_int(n, out),
        Value::Double(n) => write_float(n, out),
        Value::Str(s) => write_string(s, out),
        Value::Bytes(b) => write_base64(b, out),
        Value::Message(m) => write_message(m, values, out),
        Value::Leaf(l) => l.write_json(out),
        Value::List(l) => write_elements(l, write_value, values, out),
        Value::Map(m) => write_map(m, values, out),
    }
}

/// How one value is written.
type WriteValue<'a> = fn(Value<'a>, &mut Vec<Value<'a>>, &mut Vec<u8>);

fn write_elements<'a>(list: &'a dyn List, write: WriteValue<'a>, values: &mut Vec<Value<'a>>, out: &mut Vec<u8>) {
    out.push(b'[');
    for index in 0..list.len() {
        if index > 0 {
            out.push(b',');
        }
        write(list.get(index), values, out);
    }
    out.push(b']');
}

fn write_map<'a>(map: &'a dyn Map, values: &mut Vec<Value<'a>>, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut first = true;
    map.for_each(&mut |key, value| {
        if !first {
            out.push(b',');
        }
        first = false;
        write_string(key, out);
        out.push(b':');
        write_value(value, values, out);
    });
    out.push(b'}');
}

pub(crate) fn write_int(n: i64, out: &mut Vec<u8>) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    let mut rest = n.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if n < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&buffer[at..]);
}

/// The shortest digits that give the number back; with an exponent where it is tiny or huge. What JSON can't express
/// (infinities, not-a-number) shows as null.
pub(crate) fn write_float(n: f64, out: &mut Vec<u8>) {
    let abs = n.abs();
    let text = if !n.is_finite() {
        "null".to_owned()
    } else if abs != 0.0 && !(1e-6..1e21).contains(&abs) {
        // Rust writes 1e21, Go 1e+21.
        let text = format!("{n:e}");
        if abs < 1.0 { text } else { text.replace('e', "e+") }
    } else {
        n.to_string()
    };
    out.extend_from_slice(text.as_bytes());
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = out
        .get_mut(start..)
        .and_then(|room| STANDARD.encode_slice(bytes, room).ok());
    out.truncate(start + written.unwrap_or(0));
    out.push(b'"');
}

/// Appends valid JSON text without its white space and with Go's escapes in its strings.
pub fn compact(json: &[u8], out: &mut Vec<u8>) {
    if !swar::may_be_compacted(json) {
        return out.extend_from_slice(json);
    }
    let mut rest = json;
    while let Some(&b) = rest.first() {
        let len = match b {
            b' ' | b'\t' | b'\r' | b'\n' => 0,
            b'"' => {
                let len = string_len(rest);
                write_escaped(&rest[..len], out);
                rest = &rest[len..];
                continue;
            }
            _ => rest
                .iter()
                .take_while(|b| !matches!(b, b'"' | b' ' | b'\t' | b'\r' | b'\n'))
                .count(),
        };
        out.extend_from_slice(&rest[..len]);
        rest = &rest[len.max(1)..];
    }
}

/// The length of the string that the text begins with, with its quotes.
fn string_len(json: &[u8]) -> usize {
    let mut at = 1;
    while let Some(b) = json.get(at) {
        match b {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}
