//! Empty lists and maps that a body writes out.
//!
//! An object shows no difference between one that is empty and one that is not there; but where the server writes
//! fields whatever they hold, it shows null for what is not there, and whoever writes it as empty changes that.

use std::cell::OnceCell;

use super::member;
use crate::fieldset::{FieldSet, Name, PathElement};
use crate::json;
use crate::reflect::{self, Flags, Reflect, Value};

/// The fields that the document of an object has as an empty list or map, of those that are always written and have
/// their own owners, outside of lists and maps. The document must be valid JSON.
pub fn written_empty(document: &[u8], object: &dyn Reflect) -> FieldSet {
    let mut set = FieldSet::EMPTY;
    gather(&|| Some(document), object, &mut Vec::new(), &mut set);
    set
}

/// `text`: that of the message, which is looked for when it is asked for.
fn gather<'a, 't>(
    text: &dyn Fn() -> Option<&'t [u8]>,
    message: &'a dyn Reflect,
    path: &mut Vec<&'a Name>,
    set: &mut FieldSet,
) {
    let whole = OnceCell::new();
    let whole = || *whole.get_or_init(text);
    for (_, field, value) in reflect::fields(message) {
        let always = field.flags.has(Flags::ALWAYS);
        let inner = match value {
            Value::Message(inner) if !field.flags.has(Flags::ATOMIC) => Some(inner),
            Value::List(list) if always && list.is_empty() => None,
            Value::Map(map) if always && map.is_empty() => None,
            _ => continue,
        };
        let inline = field.flags.has(Flags::INLINE);
        if !inline {
            path.push(&field.json);
        }
        let own = || member(whole()?, &field.json);
        match inner {
            Some(inner) if inline => gather(&whole, inner, path, set),
            Some(inner) => gather(&own, inner, path, set),
            None => {
                if own().is_some_and(json::is_empty) {
                    let names: Vec<PathElement> = path.iter().map(|name| PathElement::Field((*name).clone())).collect();
                    set.insert(&names);
                }
            }
        }
        if !inline {
            path.pop();
        }
    }
}
