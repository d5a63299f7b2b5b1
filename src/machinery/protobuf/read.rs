//! Protobuf to messages. Unknown fields are passed over; a scalar that comes twice counts the last time, a message is
//! read over the first, lists grow.

use bytes::Bytes;

use super::wire::{Reader, Wire};
use crate::decode::DecodeError;
use crate::reflect::{FieldDesc, List, Map, MessageDesc, Reflect, Slot, Type};

/// How deep messages may nest.
pub(super) const MAX_DEPTH: u32 = 200;

pub(super) type Outcome = Result<(), String>;

/// Reads the body of a message into `message`, over what it holds.
pub fn read_message(body: &[u8], message: &mut dyn Reflect) -> Result<(), DecodeError> {
    read_fields(body, message, MAX_DEPTH).map_err(DecodeError::Protobuf)
}

/// `depth` is how many levels may follow.
fn read_fields(body: &[u8], message: &mut dyn Reflect, depth: u32) -> Outcome {
    read_each(body, message, depth, |_, slot, wire, field, depth| {
        read_slot(slot, wire, field, depth)
    })
}

/// Calls `read` for each field that the message knows: its index, its place, what is to be read, its description and how
/// many levels may follow.
#[inline]
pub(super) fn read_each(
    body: &[u8],
    message: &mut dyn Reflect,
    depth: u32,
    read: impl Fn(usize, Slot<'_>, Wire<'_>, &FieldDesc, u32) -> Outcome,
) -> Outcome {
    let depth = depth.checked_sub(1).ok_or("proto: messages nest too deeply")?;
    let desc = message.desc();
    let mut fields = Reader::new(body);
    let mut next = 0;
    while let Some((number, wire)) = fields.next()? {
        let Some((place, index)) = find(desc, number, next) else {
            continue;
        };
        next = place;
        if let (Some(slot), Some(field)) = (message.get_mut(index), desc.fields.get(index)) {
            read(index, slot, wire, field, depth)?;
        }
    }
    Ok(())
}

/// The field with this number: its place in the order of numbers and its index. `next` is where it probably is.
#[inline]
fn find(desc: &'static MessageDesc, number: u32, next: usize) -> Option<(usize, usize)> {
    let at = |place: usize| {
        let index = usize::from(*desc.by_number.get(place)?);
        desc.fields
            .get(index)
            .filter(|f| f.number == number)
            .map(|_| (place, index))
    };
    // Writers follow the order of numbers and leave some out.
    let len = desc.by_number.len();
    (next..len).find_map(at).or_else(|| (0..next.min(len)).find_map(at))
}

pub(super) fn read_slot(slot: Slot<'_>, wire: Wire<'_>, field: &FieldDesc, depth: u32) -> Outcome {
    match (slot, wire) {
        (Slot::Optional(o), wire) => read_slot(o.fill(), wire, field, depth)?,
        (Slot::Str(s), Wire::Bytes(b)) => *s = text(b),
        (Slot::Message(m), Wire::Bytes(b)) => read_fields(b, m, depth)?,
        (Slot::Leaf(l), Wire::Bytes(b)) => l.read_protobuf(b)?,
        (Slot::List(l), wire) => read_element(l, wire, field, depth)?,
        (Slot::Map(m), Wire::Bytes(b)) => read_entry(m, b, field, depth)?,
        (Slot::Bool(b), Wire::Varint(n)) => *b = n != 0,
        (Slot::Int32(place), Wire::Varint(n)) => *place = n as i32,
        (Slot::Int64(place), Wire::Varint(n)) => *place = n as i64,
        (Slot::Double(place), Wire::Fixed64(n)) => *place = f64::from_bits(n),
        (Slot::Bytes(place), Wire::Bytes(b)) => *place = Bytes::copy_from_slice(b),
        (_, wire) => return Err(wire.mismatch(&go_field(field))),
    }
    Ok(())
}

/// What the field is called in Go, as far as its JSON name tells.
#[cold]
fn go_field(field: &FieldDesc) -> String {
    if let ("metadata", Type::Message(desc)) = (field.json, field.ty) {
        return desc().name.rsplit('.').next().unwrap_or_default().to_owned();
    }
    let mut letters = field.json.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_ascii_uppercase().to_string() + letters.as_str()
    })
}

fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => crate::json::text::lossy(bytes).into_owned(),
    }
}

fn read_element(list: &mut dyn List, wire: Wire<'_>, field: &FieldDesc, depth: u32) -> Outcome {
    match (list.push(), wire) {
        // Numbers may come packed.
        (Slot::Bool(_) | Slot::Int32(_) | Slot::Int64(_), Wire::Bytes(packed)) => {
            list.remove(list.len() - 1);
            let mut numbers = Reader::new(packed);
            while let Some(n) = numbers.next_packed()? {
                read_slot(list.push(), Wire::Varint(n), field, depth)?;
            }
            Ok(())
        }
        (Slot::List(inner), Wire::Bytes(b)) => read_wrapped(inner, b, field, depth),
        (slot, wire) => read_slot(slot, wire, field, depth),
    }
}

/// A list within a list or map: a message whose first field is repeated.
fn read_wrapped(list: &mut dyn List, body: &[u8], field: &FieldDesc, depth: u32) -> Outcome {
    let depth = depth.checked_sub(1).ok_or("proto: messages nest too deeply")?;
    let mut fields = Reader::new(body);
    while let Some((number, wire)) = fields.next()? {
        if number == 1 {
            read_element(list, wire, field, depth)?;
        }
    }
    Ok(())
}

/// An entry of a map: a message of key and value.
fn read_entry(map: &mut dyn Map, entry: &[u8], field: &FieldDesc, depth: u32) -> Outcome {
    let (mut key, mut value) = (String::new(), None);
    let mut fields = Reader::new(entry);
    while let Some(part) = fields.next()? {
        match part {
            (1, Wire::Bytes(b)) => key = text(b),
            (1, wire) => return Err(wire.mismatch(&go_field(field))),
            (2, wire) => value = Some(wire),
            _ => {}
        }
    }
    if map.get(&key).is_some() {
        map.remove(&key);
    }
    let slot = map.entry(&key);
    match (slot, value) {
        (_, None) => Ok(()),
        (Slot::List(list), Some(Wire::Bytes(b))) => read_wrapped(list, b, field, depth),
        (slot, Some(wire)) => read_slot(slot, wire, field, depth),
    }
}
