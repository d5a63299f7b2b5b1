//! Identity of list items: the keys of a list of type map, the whole item of a set; and finding items in the old list.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::FEW_ITEMS;
use super::values::value_text;
use crate::reflect::{FieldDesc, List, ListType, Names, Value};

/// What identifies an item of a list of type map or set, as text: its keys or all of it.
pub(super) fn identity_text(field: &FieldDesc, value: Value<'_>) -> Cow<'static, str> {
    match field.list {
        ListType::Map => key_text(value, field.map_keys()),
        _ => Cow::Owned(value_text(value)),
    }
}

/// Whether two items have the same identity, without making texts of what is simple.
pub(super) fn same_identity(field: &FieldDesc, a: Value<'_>, b: Value<'_>) -> bool {
    let (ListType::Map, Value::Message(a), Value::Message(b)) = (field.list, a, b) else {
        return same_text(a, b);
    };
    let key = crate::jsonpath::field;
    field.map_keys().iter().all(|name| match (key(a, name), key(b, name)) {
        (Some(a), Some(b)) => same_text(a, b),
        (a, b) => a.is_none() && b.is_none(),
    })
}

fn same_text(a: Value<'_>, b: Value<'_>) -> bool {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Int32(a), Value::Int32(b)) => a == b,
        (Value::Int64(a), Value::Int64(b)) => a == b,
        _ => value_text(a) == value_text(b),
    }
}

/// The keys of an item of a list of type map, as a JSON object.
fn key_text(value: Value<'_>, keys: &Names) -> Cow<'static, str> {
    let mut names = keys.to_vec();
    names.sort_unstable();
    let mut out = String::from("{");
    let Value::Message(message) = value else {
        return Cow::Borrowed("{}");
    };
    for name in names {
        let Some(value) = crate::jsonpath::field(message, name) else {
            continue;
        };
        if out.len() > 1 {
            out.push(',');
        }
        crate::field::text::json_string(name, &mut out);
        out.push(':');
        out.push_str(&value_text(value));
    }
    out.push('}');
    Cow::Owned(out)
}

/// The old list, to find items by their keys in.
pub(super) struct Before<'a> {
    list: Option<&'a dyn List>,
    /// Where the items of a long list are, by their keys; made when an item has changed its place.
    places: Option<BTreeMap<String, usize>>,
}

impl<'a> Before<'a> {
    pub(super) fn of(old: Option<Value<'a>>) -> Before<'a> {
        let list = match old {
            Some(Value::List(list)) => Some(list),
            _ => None,
        };
        Before { list, places: None }
    }

    /// The first item with the same keys, most likely in the same place.
    pub(super) fn find(&mut self, field: &FieldDesc, item: Value<'_>, index: usize) -> Option<Value<'a>> {
        let list = self.list?;
        let is_same = |i: &usize| same_identity(field, list.get(*i), item);
        let place = match Some(index).filter(is_same) {
            Some(index) => Some(index),
            None if list.len() <= FEW_ITEMS => (0..list.len()).find(is_same),
            None => {
                let places = self.places.get_or_insert_with(|| places(field, list));
                places.get(identity_text(field, item).as_ref()).copied()
            }
        };
        place.map(|i| list.get(i))
    }
}

/// The first place of each identity.
fn places(field: &FieldDesc, list: &dyn List) -> BTreeMap<String, usize> {
    let places = (0..list.len()).rev();
    places
        .map(|i| (identity_text(field, list.get(i)).into_owned(), i))
        .collect()
}
