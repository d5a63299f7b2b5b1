//! Correlation of values with those that stood in their places before: what did not change is not objected to.

use std::collections::HashMap;

use super::schema::{JsonSchema, SchemaType};
use super::view::{Object, View, item};
use crate::reflect::List;

/// The old value of a member, where there is one that the schema knows as the same.
pub(super) fn member<'a>(schema: &JsonSchema, old: Option<&View<'a>>, name: &str) -> Option<View<'a>> {
    child(schema, name)?;
    old?.as_object()?.get(name)
}

/// The schema of a member.
fn child<'s>(schema: &'s JsonSchema, name: &str) -> Option<&'s JsonSchema> {
    schema.property(name).or_else(|| schema.additional())
}

/// The items of an old list of type map, by their keys. Of other lists no item is known again.
pub(super) struct OldItems<'s, 'a> {
    schema: &'s JsonSchema,
    list: Option<&'a dyn List>,
    /// Made when an item has changed its place: the first place of each key.
    places: Option<HashMap<String, usize>>,
}

impl<'s, 'a> OldItems<'s, 'a> {
    pub fn of(schema: &'s JsonSchema, old: Option<&View<'a>>) -> OldItems<'s, 'a> {
        let known = is_map_list(schema) && !schema.map_keys().is_empty();
        OldItems {
            schema,
            list: old.filter(|_| known).and_then(View::as_list),
            places: None,
        }
    }

    /// The first item with the keys of this one, which most likely has kept its place.
    pub fn find(&mut self, new: &View<'_>, index: usize) -> Option<View<'a>> {
        let list = self.list?;
        let key = key_of(self.schema, new)?;
        if self.places.is_none() {
            let before = (0..=index).find(|i| item_key(self.schema, list, *i).as_ref() == Some(&key));
            if index < FEW
                && let Some(place) = before
            {
                return item(list, place);
            }
        }
        let places = self.places.get_or_insert_with(|| places(self.schema, list));
        item(list, *places.get(&key)?)
    }
}

/// Items up to this place are looked for one by one.
const FEW: usize = 8;

fn item_key(schema: &JsonSchema, list: &dyn List, index: usize) -> Option<String> {
    key_of(schema, &item(list, index)?)
}

fn places(schema: &JsonSchema, list: &dyn List) -> HashMap<String, usize> {
    let keys = (0..list.len()).rev();
    keys.filter_map(|i| Some((item_key(schema, list, i)?, i))).collect()
}

/// Whether items are known by their keys.
fn is_map_list(schema: &JsonSchema) -> bool {
    schema.ty == SchemaType::Array && schema.list_type() == Some("map")
}

/// The keys of an item as one text; `None`: one is not there, or is no scalar.
pub(super) fn key_of(schema: &JsonSchema, item: &View<'_>) -> Option<String> {
    let object = item.as_object()?;
    let mut text = String::new();
    for key in schema.map_keys() {
        text.push('\0');
        match object.get(key)? {
            View::Bool(b) => text.push_str(if b { "t" } else { "f" }),
            View::Int(n) => text.push_str(&n.to_string()),
            View::Double(n) => text.push_str(&format!("d{n}")),
            View::Text(value) => text.push_str(&format!("{value:?}")),
            View::Null | View::List(_) | View::Object(_) => return None,
        }
    }
    Some(text)
}

/// Whether a value is what it was, as far as the schema can tell: members that it does not know have no old value.
pub(super) fn unchanged(schema: &JsonSchema, new: &View<'_>, old: &View<'_>) -> bool {
    match (new, old) {
        (View::List(a), View::List(b)) => a.len() == b.len() && unchanged_items(schema, *a, *b),
        (View::Object(a), View::Object(b)) => unchanged_members(schema, a, b),
        (new, old) => new.same(old),
    }
}

fn unchanged_members(schema: &JsonSchema, new: &Object<'_>, old: &Object<'_>) -> bool {
    let mut same = new.len() == old.len();
    new.for_each(&mut |name, value| {
        same = same
            && match (child(schema, name), old.get(name)) {
                (Some(schema), Some(old)) => unchanged(schema, &value, &old),
                _ => false,
            };
    });
    same
}

fn unchanged_items(schema: &JsonSchema, new: &dyn List, old: &dyn List) -> bool {
    if !is_map_list(schema) {
        return (0..new.len()).all(|i| matches!((item(new, i), item(old, i)), (Some(a), Some(b)) if a.same(&b)));
    }
    let Some(items) = schema.item() else {
        return new.is_empty();
    };
    let old = View::List(old);
    let mut before = OldItems::of(schema, Some(&old));
    (0..new.len()).all(|i| {
        let Some(value) = item(new, i) else { return false };
        before.find(&value, i).is_some_and(|old| unchanged(items, &value, &old))
    })
}
