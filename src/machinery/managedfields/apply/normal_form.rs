//! Normal forms: what the server would write where a document writes something else of the same meaning, or nothing.

use crate::json::{self, route::Seen};
use crate::reflect::{FieldDesc, Flags, LeafKind, MessageDesc, Type};

/// Whether a field that is written so is written otherwise, or not at all, by the server.
pub(super) fn is_unshown(field: &FieldDesc, text: &[u8]) -> bool {
    let (always, optional) = (field.flags.has(Flags::ALWAYS), field.flags.has(Flags::OPTIONAL));
    if text == b"null" {
        return !shows_null(field);
    }
    if optional {
        return false;
    }
    match field.ty {
        Type::String => !always && text == br#""""#,
        Type::Bytes => text == br#""""#,
        Type::Bool => !always && text == b"false",
        Type::Int32 | Type::Int64 | Type::Double => !always && text == b"0",
        Type::List(_) | Type::Map(_) => json::is_empty(text),
        Type::Message(_) => field.flags.has(Flags::OMIT_ZERO) && json::is_empty(text),
        Type::Leaf(_) | Type::Any | Type::Untyped => false,
    }
}

/// Whether the server writes null for a field that was read from null.
fn shows_null(field: &FieldDesc) -> bool {
    let (always, optional) = (field.flags.has(Flags::ALWAYS), field.flags.has(Flags::OPTIONAL));
    match field.ty {
        Type::List(_) | Type::Map(_) | Type::Bytes => always,
        _ if optional => always,
        Type::Leaf(LeafKind::Time | LeafKind::MicroTime | LeafKind::Raw) => !field.flags.has(Flags::OMIT_ZERO),
        _ => false,
    }
}

/// Whether the server writes fields of a message that were not seen in the document. `at` is where the message stands
/// among inlined ones.
pub(super) fn shows_more(desc: &MessageDesc, seen: &Seen, at: &mut Vec<u16>) -> bool {
    desc.fields.iter().enumerate().any(|(index, field)| {
        at.push(u16::try_from(index).unwrap_or(u16::MAX));
        let shown = match &field.ty {
            Type::Message(inlined) if field.flags.has(Flags::INLINE) => shows_more(inlined, seen, at),
            _ => shows_absent(field) && !seen.has(at),
        };
        at.pop();
        shown
    })
}

fn shows_absent(field: &FieldDesc) -> bool {
    let flags = field.flags;
    match field.ty {
        Type::Message(_) | Type::Leaf(_) if !flags.has(Flags::OPTIONAL) => !flags.has(Flags::OMIT_ZERO),
        _ => flags.has(Flags::ALWAYS),
    }
}
