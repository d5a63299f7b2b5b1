//! Masks: the part of an encoded message that is decoded, for whoever knows what it will look at.

use super::read::{Outcome, Room, read_each, read_slot};
use crate::decode::DecodeError;
use crate::reflect::budget::Budget;
use crate::reflect::{FieldDesc, MessageDesc, Reflect, Slot, Type};
use crate::wire::Wire;

/// Which fields of a message are read. Those of messages in lists are the same for all elements.
pub struct Mask {
    /// By index of the field.
    fields: Box<[Keep]>,
}

enum Keep {
    Nothing,
    Everything,
    Part(Mask),
}

impl Mask {
    /// Everything but the field that a path of JSON names, such as `metadata.managedFields`, leads to; where there is
    /// no such field, everything.
    pub fn without(desc: &MessageDesc, path: &str) -> Mask {
        let (first, rest) = split(path);
        let keep = |field: &FieldDesc| match (field.json == first, rest, message_of(field)) {
            (false, ..) => Keep::Everything,
            (true, None, _) => Keep::Nothing,
            (true, Some(rest), Some(inner)) => Keep::Part(Mask::without(inner, rest)),
            (true, Some(_), None) => Keep::Everything,
        };
        Mask {
            fields: desc.fields.iter().map(keep).collect(),
        }
    }

    /// Only the fields that these paths lead to. The error is a path that leads to none.
    pub fn only(desc: &MessageDesc, paths: &[&'static str]) -> Result<Mask, &'static str> {
        let mut mask = Mask::nothing(desc);
        for path in paths {
            mask.add(desc, path).ok_or(*path)?;
        }
        Ok(mask)
    }

    fn nothing(desc: &MessageDesc) -> Mask {
        Mask {
            fields: desc.fields.iter().map(|_| Keep::Nothing).collect(),
        }
    }

    fn add(&mut self, desc: &MessageDesc, path: &str) -> Option<()> {
        let (first, rest) = split(path);
        let (index, field) = desc.field(first)?;
        let keep = self.fields.get_mut(index)?;
        let Some(rest) = rest else {
            *keep = Keep::Everything;
            return Some(());
        };
        let inner = message_of(field)?;
        if let Keep::Nothing = keep {
            *keep = Keep::Part(Mask::nothing(inner));
        }
        match keep {
            Keep::Part(mask) => mask.add(inner, rest),
            _ => Mask::nothing(inner).add(inner, rest),
        }
    }
}

fn split(path: &str) -> (&str, Option<&str>) {
    path.split_once('.')
        .map_or((path, None), |(first, rest)| (first, Some(rest)))
}

/// The message that a field is, or a list of.
fn message_of(field: &FieldDesc) -> Option<&MessageDesc> {
    match &field.ty {
        Type::Message(desc) => Some(desc),
        Type::List(element) => match &element.ty {
            Type::Message(desc) => Some(desc),
            _ => None,
        },
        _ => None,
    }
}

/// Reads those fields of the body of a message into `message`, over what it holds; `mask` was made for such messages.
pub fn read_masked(body: &[u8], message: &mut dyn Reflect, mask: &Mask) -> Result<(), DecodeError> {
    read_part(body, message, mask, Room::new(&Budget::unlimited())).map_err(DecodeError::Protobuf)
}

fn read_part(body: &[u8], message: &mut dyn Reflect, mask: &Mask, room: Room<'_>) -> Outcome {
    read_each(body, message, room, |index, slot, wire, field, room| {
        match mask.fields.get(index) {
            Some(Keep::Everything) => read_slot(slot, wire, field, room),
            Some(Keep::Part(mask)) => read_inner(slot, wire, field, mask, room),
            Some(Keep::Nothing) | None => Ok(()),
        }
    })
}

fn read_inner(slot: Slot<'_>, wire: Wire<'_>, field: &FieldDesc, mask: &Mask, room: Room<'_>) -> Outcome {
    match (slot, wire) {
        (Slot::Optional(o), wire) => read_inner(o.fill(), wire, field, mask, room),
        (Slot::List(l), wire) => read_inner(l.push(), wire, field, mask, room),
        (Slot::Message(m), Wire::Bytes(body)) => read_part(body, m, mask, room),
        (slot, wire) => read_slot(slot, wire, field, room),
    }
}
