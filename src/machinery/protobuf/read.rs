//! Protobuf to messages. Unknown fields are passed over; a scalar that comes twice counts the last time, a message is
//! read over the first, lists grow.

use bytes::Bytes;

use crate::decode::DecodeError;
use crate::decode::EXHAUSTED;
use crate::reflect::budget::{self, Budget};
use crate::reflect::{FieldDesc, List, Map, MessageDesc, Reflect, Slot, Type};
use crate::wire::{Reader, Wire};

/// How deep messages may nest.
const MAX_DEPTH: u32 = 200;

/// What reading comes to. The error is the text of [`DecodeError::Protobuf`], which nobody tells apart.
pub(super) type Outcome<T = ()> = Result<T, String>;

/// Reads the body of a message into `message`, over what it holds.
pub fn read_message(body: &[u8], message: &mut dyn Reflect) -> Result<(), DecodeError> {
    read_message_within(body, message, &Budget::unlimited())
}

/// As [`read_message`], of a body that somebody sent: [`DecodeError::TooLarge`] as soon as it becomes more than the
/// budget.
pub fn read_message_within(body: &[u8], message: &mut dyn Reflect, budget: &Budget) -> Result<(), DecodeError> {
    read_fields(body, message, Room::new(budget)).map_err(|text| match budget.is_exhausted() {
        true => DecodeError::TooLarge,
        false => DecodeError::Protobuf(text),
    })
}

/// What the messages within one may have.
#[derive(Clone, Copy)]
pub(super) struct Room<'a> {
    levels: u32,
    budget: &'a Budget,
}

impl<'a> Room<'a> {
    pub(super) fn new(budget: &'a Budget) -> Room<'a> {
        let levels = MAX_DEPTH;
        Room { levels, budget }
    }

    /// One level further in.
    fn deeper(self) -> Outcome<Room<'a>> {
        let levels = self.levels.checked_sub(1).ok_or("proto: messages nest too deeply")?;
        Ok(Room { levels, ..self })
    }

    fn spend(self, bytes: usize) -> Outcome {
        match self.budget.take(bytes) {
            true => Ok(()),
            false => Err(EXHAUSTED.to_owned()),
        }
    }
}

fn read_fields(body: &[u8], message: &mut dyn Reflect, room: Room<'_>) -> Outcome {
    read_each(body, message, room, |_, slot, wire, field, room| {
        read_slot(slot, wire, field, room)
    })
}

/// Calls `read` for each field that the message knows: its index, its place, what is to be read, its description and
/// what may be in it.
#[inline]
pub(super) fn read_each(
    body: &[u8],
    message: &mut dyn Reflect,
    room: Room<'_>,
    read: impl Fn(usize, Slot<'_>, Wire<'_>, &FieldDesc, Room<'_>) -> Outcome,
) -> Outcome {
    let (room, desc) = (room.deeper()?, message.handle().clone());
    room.spend(desc.size)?;
    let mut fields = Reader::new(body);
    let mut next = 0;
    while let Some((number, wire)) = fields.next()? {
        let Some((place, index)) = find(&desc, number, next) else {
            continue;
        };
        next = place;
        if let (Some(slot), Some(field)) = (message.get_mut(index), desc.fields.get(index)) {
            read(index, slot, wire, field, room)?;
        }
    }
    Ok(())
}

/// The field with this number: its place in the order of numbers and its index. `next` is where it probably is.
#[inline]
fn find(desc: &MessageDesc, number: u32, next: usize) -> Option<(usize, usize)> {
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

pub(super) fn read_slot(slot: Slot<'_>, wire: Wire<'_>, field: &FieldDesc, room: Room<'_>) -> Outcome {
    match (slot, wire) {
        (Slot::Optional(o), wire) => read_slot(o.fill(), wire, field, room)?,
        (Slot::Str(s), Wire::Bytes(b)) => *s = text(b),
        (Slot::Message(m), Wire::Bytes(b)) => read_fields(b, m, room)?,
        (Slot::Leaf(l), Wire::Bytes(b)) => l.read_protobuf_within(b, room.budget)?,
        (Slot::List(l), wire) => read_element(l, wire, field, room)?,
        (Slot::Map(m), Wire::Bytes(b)) => read_entry(m, b, field, room)?,
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
    if let ("metadata", Type::Message(desc)) = (field.json.as_str(), &field.ty) {
        return desc.short_name().to_owned();
    }
    let mut letters = field.json.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_ascii_uppercase().to_string() + letters.as_str()
    })
}

fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => crate::json_text::lossy(bytes).into_owned(),
    }
}

fn read_element(list: &mut dyn List, wire: Wire<'_>, field: &FieldDesc, room: Room<'_>) -> Outcome {
    let cost = budget::item(list.element());
    room.spend(cost)?;
    match (list.push(), wire) {
        // Numbers may come packed.
        (Slot::Bool(_) | Slot::Int32(_) | Slot::Int64(_), Wire::Bytes(packed)) => {
            list.remove(list.len() - 1);
            let mut numbers = Reader::new(packed);
            while let Some(n) = numbers.next_packed()? {
                room.spend(cost)?;
                read_slot(list.push(), Wire::Varint(n), field, room)?;
            }
            Ok(())
        }
        (Slot::List(inner), Wire::Bytes(b)) => read_wrapped(inner, b, field, room),
        (slot, wire) => read_slot(slot, wire, field, room),
    }
}

/// A list within a list or map: a message whose first field is repeated.
fn read_wrapped(list: &mut dyn List, body: &[u8], field: &FieldDesc, room: Room<'_>) -> Outcome {
    let room = room.deeper()?;
    let mut fields = Reader::new(body);
    while let Some((number, wire)) = fields.next()? {
        if number == 1 {
            read_element(list, wire, field, room)?;
        }
    }
    Ok(())
}

/// An entry of a map: a message of key and value.
fn read_entry(map: &mut dyn Map, entry: &[u8], field: &FieldDesc, room: Room<'_>) -> Outcome {
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
    room.spend(budget::entry(map.element()))?;
    let slot = map.entry(&key);
    match (slot, value) {
        (_, None) => Ok(()),
        (Slot::List(list), Some(Wire::Bytes(b))) => read_wrapped(list, b, field, room),
        (slot, Some(wire)) => read_slot(slot, wire, field, room),
    }
}
