//! Messages to protobuf.

use crate::reflect::{FieldDesc, Flags, List, Map, Reflect, Said, Type, Value};
use crate::wire::{self, BYTES, FIXED64};

/// Room for what the messages say that one is written within.
const SAID: usize = 48;

/// Appends the body of the message: its fields, without a tag or length of its own.
pub fn write_message(message: &dyn Reflect, out: &mut Vec<u8>) {
    write_fields(message, &mut Vec::with_capacity(SAID), out);
}

/// `said` has what the messages around this one say.
fn write_fields<'a>(message: &'a dyn Reflect, said: &mut Vec<Said<'a>>, out: &mut Vec<u8>) {
    let (desc, begin) = (message.desc(), said.len());
    message.said(said);
    let end = said.len();
    let mut next = begin;
    for &index in &desc.by_number {
        let Some(field) = desc.fields.get(usize::from(index)).filter(|field| field.number != 0) else {
            continue;
        };
        let Some(place) = place_of(index, next, said.get(begin..end).unwrap_or_default(), begin) else {
            write_zero(field, out);
            continue;
        };
        next = place + 1;
        match said.get(place).map_or(Value::Absent, |(_, value)| *value) {
            Value::Bytes(b) if b.is_empty() => {}
            Value::List(list) => write_list(field.number, list, said, out),
            Value::Map(map) => write_map(field.number, map, said, out),
            value => write_value(field.number, value, said, out),
        }
    }
    said.truncate(begin);
}

/// Where the value of a field stands, by the values of its message, which begin at `begin`; `next`: where it probably
/// is.
#[inline]
fn place_of(index: u16, next: usize, said: &[Said<'_>], begin: usize) -> Option<usize> {
    match said.get(next - begin) {
        Some((at, _)) if *at == index => Some(next),
        _ => said
            .binary_search_by_key(&index, |(at, _)| *at)
            .ok()
            .map(|place| begin + place),
    }
}

/// Numbers and texts that are no `Option` are written although they are nothing.
fn write_zero(field: &FieldDesc, out: &mut Vec<u8>) {
    if field.flags.has(Flags::OPTIONAL) {
        return;
    }
    let zero = match field.ty {
        Type::Bool => Value::Bool(false),
        Type::Int32 => Value::Int32(0),
        Type::Int64 => Value::Int64(0),
        Type::Double => Value::Double(0.0),
        Type::String => Value::Str(""),
        _ => return,
    };
    write_value(field.number, zero, &mut Vec::new(), out);
}

/// Appends a length-delimited field: a string, bytes or an encoded message.
pub fn write_tag_bytes(number: u32, value: &[u8], out: &mut Vec<u8>) {
    wire::write_bytes_field(number, value, out);
}

/// Appends what stands before a value of `len` bytes in [`write_tag_bytes`].
pub fn write_tag_len(number: u32, len: usize, out: &mut Vec<u8>) {
    wire::write_tag(number, wire::BYTES, out);
    wire::write_varint(len as u64, out);
}

/// How many bytes [`write_tag_bytes`] appends for a value of `len` bytes.
pub fn tagged_len(number: u32, len: usize) -> usize {
    wire::varint_len(u64::from(number) << 3) + wire::varint_len(len as u64) + len
}

fn write_value<'a>(number: u32, value: Value<'a>, said: &mut Vec<Said<'a>>, out: &mut Vec<u8>) {
    match value {
        Value::Absent | Value::Null => {}
        Value::Bool(b) => wire::write_varint_field(number, u64::from(b), out),
        Value::Int32(n) => wire::write_varint_field(number, i64::from(n) as u64, out),
        Value::Int64(n) => wire::write_varint_field(number, n as u64, out),
        Value::Double(n) => {
            wire::write_tag(number, FIXED64, out);
            out.extend_from_slice(&n.to_le_bytes());
        }
        Value::Str(s) => wire::write_bytes_field(number, s.as_bytes(), out),
        Value::Bytes(b) => wire::write_bytes_field(number, b, out),
        Value::Message(m) => write_delimited(number, out, |out| write_fields(m, said, out)),
        Value::Leaf(l) => write_delimited(number, out, |out| l.write_protobuf(out)),
        // A list within a map or list is a message whose first field is repeated.
        Value::List(list) => write_delimited(number, out, |out| write_list(1, list, said, out)),
        Value::Map(map) => write_delimited(number, out, |out| write_map(1, map, said, out)),
    }
}

fn write_list<'a>(number: u32, list: &'a dyn List, said: &mut Vec<Said<'a>>, out: &mut Vec<u8>) {
    for index in 0..list.len() {
        write_value(number, list.get(index), said, out);
    }
}

fn write_map<'a>(number: u32, map: &'a dyn Map, said: &mut Vec<Said<'a>>, out: &mut Vec<u8>) {
    map.for_each(&mut |key, value| {
        write_delimited(number, out, |out| {
            wire::write_bytes_field(1, key.as_bytes(), out);
            write_value(2, value, said, out);
        });
    });
}

/// Appends a field whose length is known only when its body has been written: one byte is kept for the length, and the
/// body moves up if that is not enough.
#[inline]
pub(super) fn write_delimited(number: u32, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    wire::write_tag(number, BYTES, out);
    let at = out.len();
    out.push(0);
    body(out);
    let len = out.len() - at - 1;
    if len < 0x80 {
        out[at] = len as u8;
        return;
    }
    let (varint, width) = wire::varint(len as u64);
    out.resize(out.len() + width - 1, 0);
    out.copy_within(at + 1..at + 1 + len, at + width);
    out[at..at + width].copy_from_slice(&varint[..width]);
}
