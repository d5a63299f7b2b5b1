//! The part of an object that a merge patch reaches.
//!
//! A patch mostly says a few fields of a large object. Patching these alone and keeping the others as they are gives
//! the object that patching its whole document would give, because JSON says all of a stored object: what is written
//! and read again is what it was. Of kinds where that does not hold, nothing is said here.

use std::cell::RefCell;
use std::collections::HashMap;

use super::{check, text};
use crate::json;
use crate::meta::v1::ObjectMeta;
use crate::reflect::copy;
use crate::reflect::object::Kind;
use crate::reflect::{FieldDesc, Flags, LeafKind, MessageDesc, Patch, Reflect, Slot, Type, Value};

/// How deep a patch is followed; fields further down count as reached with all that is below them.
const MAX_DEPTH: usize = 8;

/// The fields that a patch reaches, and the document of an object that has them alone.
pub struct Reach {
    /// To be patched instead of the whole document.
    pub document: Vec<u8>,
    /// Indexes of fields, from the top.
    fields: Vec<Vec<usize>>,
}

impl Reach {
    /// What a JSON merge patch or a strategic merge patch reaches of an object. `None`: it has to be applied to the
    /// whole.
    pub fn of(object: &dyn Kind, patch: &[u8]) -> Option<Reach> {
        check(patch).ok()?;
        let mut reach = Reach {
            document: Vec::with_capacity(1024),
            fields: Vec::new(),
        };
        let message = object.as_reflect();
        (is_said_by_json(message.desc()) && reach.object(message, text::trim(patch), &mut Vec::new())).then_some(reach)
    }

    /// Empties the fields, so that what is read into the object has no more in them than it says.
    pub fn clear(&self, object: &mut dyn Reflect) {
        self.fields.iter().for_each(|path| clear(object, path));
    }

    /// Appends the object that `patch` reaches of a message. False, with nothing appended, where it is no object or
    /// reaches more than fields of their names.
    fn object(&mut self, message: &dyn Reflect, patch: &[u8], path: &mut Vec<usize>) -> bool {
        if patch.first() != Some(&b'{') || path.len() == MAX_DEPTH {
            return false;
        }
        let (document, fields) = (self.document.len(), self.fields.len());
        self.document.push(b'{');
        let mut seen: Vec<usize> = Vec::new();
        for (key, change) in text::members(patch) {
            let Some((index, field)) = message.desc().field(&key).filter(|(index, _)| !seen.contains(index)) else {
                self.document.truncate(document);
                self.fields.truncate(fields);
                return false;
            };
            seen.push(index);
            path.push(index);
            self.field(message, (index, field), change, path);
            path.pop();
        }
        self.document.push(b'}');
        true
    }

    /// Appends what a change of one field reaches: parts of a message that is there, or all of it.
    fn field(
        &mut self,
        message: &dyn Reflect,
        (index, field): (usize, &FieldDesc),
        change: &[u8],
        path: &mut Vec<usize>,
    ) {
        let value = message.get(index);
        if let Value::Message(inner) = value
            && json::is_written(field, value)
            && !field.flags.has(Flags::TYPED)
            && !field.patch.has(Patch::REPLACE)
        {
            let before = self.document.len();
            json::write_key(field, &mut self.document);
            if self.object(inner, change, path) {
                return;
            }
            self.document.truncate(before);
        }
        json::write_member(message, index, &mut self.document);
        self.fields.push(path.clone());
    }
}

fn clear(message: &mut dyn Reflect, path: &[usize]) {
    let [index, rest @ ..] = path else { return };
    let Some(slot) = message.get_mut(*index) else { return };
    if rest.is_empty() {
        return copy::clear(slot);
    }
    let slot = match slot {
        Slot::Optional(optional) => optional.open(),
        other => other,
    };
    if let Slot::Message(inner) = slot {
        clear(inner, rest);
    }
}

thread_local! {
    /// What is known of messages by the numbers of their tables, of which there are as many as definitions. A dynamic
    /// message says all of itself.
    static SAID_BY_JSON: RefCell<HashMap<u64, bool>> = RefCell::new(HashMap::new());
}

/// Whether an object of this message that was stored is the same when it is written as JSON and read. Raw JSON may get
/// another order and other white space; empty lists that are written out count for who owns them.
fn is_said_by_json(desc: &MessageDesc) -> bool {
    if desc.is_dynamic() {
        return true;
    }
    let place = desc.id.get();
    if let Some(known) = SAID_BY_JSON.with_borrow(|known| known.get(&place).copied()) {
        return known;
    }
    // Messages that contain themselves are taken for granted while they are looked at.
    let mut seen = Vec::new();
    let said = fields_are_said(desc, &mut seen);
    SAID_BY_JSON.with_borrow_mut(|known| known.insert(place, said));
    said
}

fn fields_are_said(desc: &MessageDesc, seen: &mut Vec<u64>) -> bool {
    let place = desc.id.get();
    // The sets of fields in metadata are always written in one form.
    if seen.contains(&place) || std::ptr::eq(desc, ObjectMeta::message_desc()) {
        return true;
    }
    seen.push(place);
    desc.fields.iter().all(|field| {
        let lists_empty = matches!(field.ty, Type::List(_)) && field.flags.has(Flags::ALWAYS) && field.json == "items";
        !lists_empty && !field.flags.has(Flags::EMPTY_LIST) && type_is_said(&field.ty, seen)
    })
}

fn type_is_said(ty: &Type, seen: &mut Vec<u64>) -> bool {
    match ty {
        Type::Leaf(kind) => !matches!(kind, LeafKind::Raw | LeafKind::Union),
        Type::Message(desc) => fields_are_said(desc, seen),
        Type::List(element) | Type::Map(element) => type_is_said(&element.ty, seen),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
