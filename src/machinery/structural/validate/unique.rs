//! Lists of type set and map, whose items stand there once.

use std::collections::HashMap;

use crate::field::{BadValue, ErrorList, FieldError, Path};
use crate::reflect::List;
use crate::structural::schema::{JsonSchema, Keywords};
use crate::structural::spot::Spot;
use crate::structural::view::{View, item};

/// Checks the lists in a value; the path of the value is `root`.
pub(in crate::structural) fn check(schema: &JsonSchema, value: &View<'_>, root: &Path, errors: &mut ErrorList) {
    walk(schema, value, &Spot::Here, &mut Walk { root, errors });
}

struct Walk<'e> {
    root: &'e Path,
    errors: &'e mut ErrorList,
}

fn walk(schema: &JsonSchema, value: &View<'_>, spot: &Spot<'_>, walk_to: &mut Walk<'_>) {
    if !schema.has(Keywords::UNIQUE_BELOW) || walk_to.errors.is_full() {
        return;
    }
    match value {
        View::List(list) => {
            own(schema, *list, spot, walk_to);
            let Some(items) = schema.item().filter(|items| items.has(Keywords::UNIQUE_BELOW)) else {
                return;
            };
            for index in 0..list.len() {
                if let Some(value) = item(*list, index) {
                    walk(items, &value, &Spot::Index(spot, index), walk_to);
                }
            }
        }
        View::Object(object) => {
            if let Some(values) = schema.additional() {
                object.for_each(&mut |name, value| walk(values, &value, &Spot::Key(spot, name), walk_to));
            }
            object.properties(schema, &mut |property, value| {
                walk(&property.schema, &value, &Spot::Property(spot, &property.name), walk_to);
            });
        }
        _ => {}
    }
}

/// The items of one list.
fn own(schema: &JsonSchema, list: &dyn List, spot: &Spot<'_>, to: &mut Walk<'_>) {
    let at = |index: usize| Spot::Index(spot, index).path(to.root);
    match schema.list_type() {
        Some("set") => {
            let texts = (0..list.len()).map(|i| item(list, i).map_or_else(String::new, |value| identity(&value)));
            let repeated = repeated(texts);
            let errors = repeated.into_iter().map(|index| {
                let shown = item(list, index).map_or_else(BadValue::null, |value| value.shown());
                FieldError::duplicate(&at(index), shown)
            });
            let errors: Vec<FieldError> = errors.collect();
            to.errors.extend(errors);
        }
        Some("map") => {
            for index in 0..list.len() {
                let value = item(list, index);
                if let Some(value) = value.filter(|value| !matches!(value, View::Null | View::Object(_))) {
                    let text = "must be an object for an array of list-type map";
                    to.errors.push(FieldError::invalid(&at(index), value.shown(), text));
                    return;
                }
            }
            let keys: Vec<String> = (0..list.len()).map(|i| keys_text(schema, item(list, i))).collect();
            let identities = (0..list.len()).map(|i| keys_identity(schema, item(list, i)));
            let errors = repeated(identities).into_iter().map(|index| {
                let shown = <[String]>::get(&keys, index).cloned().unwrap_or_default();
                FieldError::duplicate(&at(index), BadValue::json(shown))
            });
            let errors: Vec<FieldError> = errors.collect();
            to.errors.extend(errors);
        }
        _ => {}
    }
}

/// The places of texts that were there before, each text once.
fn repeated(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, bool> = HashMap::new();
    let mut places = Vec::new();
    for (index, text) in texts.enumerate() {
        match seen.get_mut(&text) {
            None => drop(seen.insert(text, false)),
            Some(told) if !*told => {
                *told = true;
                places.push(index);
            }
            Some(_) => {}
        }
    }
    places
}

/// A text that tells values apart: whole numbers and fractions are never the same by themselves.
fn identity(value: &View<'_>) -> String {
    match value {
        View::Double(n) => format!("d{n}"),
        value => value.json(),
    }
}

/// The keys of an item as a JSON object, with sorted keys.
fn keys_text(schema: &JsonSchema, value: Option<View<'_>>) -> String {
    let mut keys: Vec<&str> = schema.map_keys().iter().map(|key| key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    let object = value.as_ref().and_then(View::as_object);
    let mut out = Vec::from(b"{".as_slice());
    for key in keys {
        let Some(value) = object.and_then(|object| object.get(key)) else {
            continue;
        };
        if out.len() > 1 {
            out.push(b',');
        }
        crate::json::write_string(key, &mut out);
        out.push(b':');
        out.extend_from_slice(value.json().as_bytes());
    }
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}

/// What tells items apart: a single key by itself, several as JSON.
fn keys_identity(schema: &JsonSchema, value: Option<View<'_>>) -> String {
    match schema.map_keys() {
        [key] => {
            let object = value.as_ref().and_then(View::as_object);
            let own = object.and_then(|object| object.get(key));
            own.map_or_else(String::new, |value| identity(&value))
        }
        _ => keys_text(schema, value),
    }
}

/// Whether two items are the same.
pub(super) fn has_duplicates(list: &dyn List) -> bool {
    let mut seen = std::collections::HashSet::new();
    let texts = (0..list.len()).filter_map(|i| item(list, i).map(|value| identity(&value)));
    texts.into_iter().any(|text| !seen.insert(text))
}
