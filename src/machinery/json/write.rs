//! Messages to JSON text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::sorted::sorted;
use crate::json_text::write_string;
use crate::reflect::equality::is_written;
use crate::reflect::object::Kind;
use crate::reflect::{self, FieldDesc, Flags, Leaf, LeafKind, List, Map, MessageDesc, Reflect, Said, Value};

/// Room for what the messages say that one is written within.
const SAID: usize = 48;

/// In which order the members of an object are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// That of the table, as Go writes a struct.
    Table,
    /// That of their keys, as Go writes a tree of maps: dynamic messages, and structs in them.
    Sorted,
}

impl Order {
    fn of(desc: &MessageDesc) -> Order {
        match desc.is_dynamic() {
            true => Order::Sorted,
            false => Order::Table,
        }
    }
}

/// Appends the message as a JSON object. `out` may hold anything before.
pub fn write(message: &dyn Reflect, out: &mut Vec<u8>) {
    let order = Order::of(message.desc());
    write_message(message, order, &mut Vec::with_capacity(SAID), out);
}

/// `said` has what the messages around this one say.
fn write_message<'a>(message: &'a dyn Reflect, order: Order, said: &mut Vec<Said<'a>>, out: &mut Vec<u8>) {
    if order == Order::Table
        && let Some(shared) = message.shared()
    {
        out.extend_from_slice(shared.text());
        return;
    }
    out.push(b'{');
    match order {
        Order::Table => write_fields(message, said, out),
        Order::Sorted => write_sorted(message, None, said, out),
    }
    out.push(b'}');
}

/// Appends an object of a kind: `kind` and `apiVersion` come first, or in their place among sorted members.
pub fn write_kind(object: &dyn Kind, out: &mut Vec<u8>) {
    let gvk = object.gvk();
    let version;
    let api_version = if gvk.group.is_empty() {
        gvk.version.as_str()
    } else {
        version = gvk.api_version();
        &version
    };
    write_kind_as(object.as_reflect(), api_version, &gvk.kind, out);
}

/// Appends an object as it stands in a list of its kind: of a struct without `kind` and `apiVersion`.
pub fn write_item(object: &dyn Kind, out: &mut Vec<u8>) {
    let message = object.as_reflect();
    match message.desc().is_dynamic() {
        true => write_kind(object, out),
        false => write(message, out),
    }
}

/// Appends a message as an object of the kind that is given.
pub fn write_kind_as(message: &dyn Reflect, api_version: &str, kind: &str, out: &mut Vec<u8>) {
    let order = Order::of(message.desc());
    write_named(message, (api_version, kind), order, &mut Vec::with_capacity(SAID), out);
}

/// `ty`: apiVersion and kind.
fn write_named<'a>(
    message: &'a dyn Reflect,
    ty: (&str, &str),
    order: Order,
    said: &mut Vec<Said<'a>>,
    out: &mut Vec<u8>,
) {
    if order == Order::Sorted {
        out.push(b'{');
        write_sorted(message, Some(ty), said, out);
    } else {
        out.extend_from_slice(b"{\"kind\":");
        write_string(ty.1, out);
        out.extend_from_slice(b",\"apiVersion\":");
        write_string(ty.0, out);
        write_fields(message, said, out);
    }
    out.push(b'}');
}

/// The JSON text of an object, with `kind` and `apiVersion`.
pub fn to_vec(object: &dyn Kind) -> Vec<u8> {
    let mut out = Vec::with_capacity(4096);
    write_kind(object, &mut out);
    out
}

fn write_fields<'a>(message: &'a dyn Reflect, said: &mut Vec<Said<'a>>, out: &mut Vec<u8>) {
    let (desc, begin) = (message.desc(), said.len());
    message.said(said);
    for place in begin..said.len() {
        let Some((field, value)) = said_field(desc, said, place) else {
            break;
        };
        if field.flags.has(Flags::INLINE) {
            if let Value::Message(inlined) = value {
                write_fields(inlined, said, out);
            }
        } else if is_written(field, value) {
            write_key(field, out);
            write_field(field, value, Order::Table, said, out);
        }
    }
    said.truncate(begin);
}

/// The field whose value stands at this place.
#[inline]
fn said_field<'d, 'a>(desc: &'d MessageDesc, said: &[Said<'a>], place: usize) -> Option<(&'d FieldDesc, Value<'a>)> {
    let (index, value) = *said.get(place)?;
    Some((desc.fields.get(usize::from(index))?, value))
}

/// The members of a message in the order of their keys, with those that say its type.
fn write_sorted<'a>(message: &'a dyn Reflect, ty: Option<(&str, &str)>, said: &mut Vec<Said<'a>>, out: &mut Vec<u8>) {
    let desc = message.desc();
    let in_places = message.rest().is_some() || message.sparse().is_some();
    if ty.is_some() || in_places || !desc.inlined.is_empty() {
        return write_gathered(message, ty, out);
    }
    let begin = said.len();
    message.said(said);
    let end = said.len();
    if desc.is_dynamic() {
        // Its fields are in the order of their names.
        (begin..end).for_each(|place| write_said(desc, place, said, out));
    } else {
        for index in &*desc.by_name {
            let place = (begin..end).find(|place| said.get(*place).is_some_and(|(at, _)| at == index));
            place.into_iter().for_each(|place| write_said(desc, place, said, out));
        }
    }
    said.truncate(begin);
}

/// The member whose value stands at this place, among sorted ones.
fn write_said<'a>(desc: &MessageDesc, place: usize, said: &mut Vec<Said<'a>>, out: &mut Vec<u8>) {
    if let Some((field, value)) = said_field(desc, said, place)
        && is_written(field, value)
    {
        write_key(field, out);
        write_field(field, value, Order::Sorted, said, out);
    }
}

/// As [`write_sorted`], of members from several places.
fn write_gathered(message: &dyn Reflect, ty: Option<(&str, &str)>, out: &mut Vec<u8>) {
    let mut members = Vec::new();
    gather(message, &mut members);
    if let Some((api_version, kind)) = ty {
        members.push(("apiVersion", FieldDesc::ANY, Value::Str(api_version)));
        members.push(("kind", FieldDesc::ANY, Value::Str(kind)));
    }
    members.sort_by_key(|(key, ..)| *key);
    let mut said = Vec::new();
    for (key, field, value) in members {
        write_any_key(key, out);
        write_field(field, value, Order::Sorted, &mut said, out);
    }
}

fn gather<'a>(message: &'a dyn Reflect, members: &mut Vec<(&'a str, &'a FieldDesc, Value<'a>)>) {
    for (_, field, value) in reflect::fields(message) {
        match value {
            Value::Message(inlined) if field.flags.has(Flags::INLINE) => gather(inlined, members),
            value if is_written(field, value) => members.push((&field.json, field, value)),
            _ => {}
        }
    }
    if let Some(rest) = message.rest() {
        rest.for_each(&mut |key, value| members.push((key, FieldDesc::ANY, value)));
    }
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
        write_key(field, out);
        write_field(field, value, Order::of(message.desc()), &mut Vec::new(), out);
    }
}

/// Appends the key of a field, behind a comma unless it is the first of its object.
#[inline]
pub(crate) fn write_key(field: &FieldDesc, out: &mut Vec<u8>) {
    let key = field.json.as_bytes();
    if field.flags.has(Flags::ESCAPED) {
        return write_any_key(&field.json, out);
    }
    out.reserve(key.len() + 4);
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    out.push(b'"');
    out.extend_from_slice(key);
    out.extend_from_slice(b"\":");
}

/// As [`write_key`], of a key in which anything may stand.
fn write_any_key(key: &str, out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    write_string(key, out);
    out.push(b':');
}

/// A field that is written although it is empty shows as null, but for the items of a list kind and lists whose
/// definition wants it otherwise.
fn write_field<'a>(field: &FieldDesc, value: Value<'a>, order: Order, said: &mut Vec<Said<'a>>, out: &mut Vec<u8>) {
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
        write_typed(value, order, said, out);
    } else {
        write_value(value, order, said, out)
    }
}

/// A kind within an object, or a list of them.
fn write_typed<'a>(value: Value<'a>, order: Order, said: &mut Vec<Said<'a>>, out: &mut Vec<u8>) {
    match value {
        Value::Message(m) => match &m.desc().gvk {
            Some(gvk) => write_named(m, (&gvk.api_version(), &gvk.kind), order, said, out),
            None => write_message(m, order, said, out),
        },
        Value::List(list) => write_elements(list, write_typed, order, said, out),
        other => write_value(other, order, said, out),
    }
}

fn write_value<'a>(value: Value<'a>, order: Order, said: &mut Vec<Said<'a>>, out: &mut Vec<u8>) {
    match value {
        Value::Absent | Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int32(n) => write_int(i64::from(n), out),
        Value::Int64(n) => write_int(n, out),
        Value::Double(n) => write_float(n, out),
        Value::Str(s) => write_string(s, out),
        Value::Bytes(b) => write_base64(b, out),
        Value::Message(m) => write_message(m, order, said, out),
        Value::Leaf(l) if order == Order::Sorted && l.kind() == LeafKind::Raw => write_raw_sorted(l, out),
        Value::Leaf(l) => l.write_json(out),
        Value::List(l) => write_elements(l, write_value, order, said, out),
        Value::Map(m) => write_map(m, order, said, out),
    }
}

/// Raw JSON within a tree of maps is a part of the tree.
fn write_raw_sorted(leaf: &dyn Leaf, out: &mut Vec<u8>) {
    let mut json = Vec::new();
    leaf.write_json(&mut json);
    out.extend_from_slice(&sorted(&json));
}

/// How one value is written.
type WriteValue<'a> = fn(Value<'a>, Order, &mut Vec<Said<'a>>, &mut Vec<u8>);

fn write_elements<'a>(
    list: &'a dyn List,
    write: WriteValue<'a>,
    order: Order,
    said: &mut Vec<Said<'a>>,
    out: &mut Vec<u8>,
) {
    out.push(b'[');
    for index in 0..list.len() {
        if index > 0 {
            out.push(b',');
        }
        write(list.get(index), order, said, out);
    }
    out.push(b']');
}

fn write_map<'a>(map: &'a dyn Map, order: Order, said: &mut Vec<Said<'a>>, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut first = true;
    map.for_each(&mut |key, value| {
        if !first {
            out.push(b',');
        }
        first = false;
        write_string(key, out);
        out.push(b':');
        write_value(value, order, said, out);
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
