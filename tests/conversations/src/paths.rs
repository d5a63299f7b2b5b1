//! Paths into JSON values: `a.b.0.c`; a dot inside a key is written `\1`, `metadata/name=x` picks that element of a
//! list.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use crate::text::spaced;

/// What takes the place of values that are not compared.
pub const IGNORED: &str = "<ignored>";

/// What is at a path; `None` where nothing is.
pub fn lookup<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(value);
    }
    path.split('.').try_fold(value, |value, part| {
        let part = key(part);
        match value {
            Value::Array(items) => element(items, &part),
            Value::Object(fields) => fields.get(part.as_ref()),
            _ => None,
        }
    })
}

fn key(part: &str) -> std::borrow::Cow<'_, str> {
    match part.contains("\\1") {
        true => part.replace("\\1", ".").into(),
        false => part.into(),
    }
}

fn element<'a>(items: &'a [Value], part: &str) -> Option<&'a Value> {
    if let Some((path, wanted)) = part.split_once('=') {
        let path = path.replace('/', ".");
        return items
            .iter()
            .find(|item| lookup(item, &path).is_some_and(|found| plain(found) == wanted));
    }
    let index: isize = part.parse().ok()?;
    let index = if index < 0 {
        index + isize::try_from(items.len()).ok()?
    } else {
        index
    };
    items.get(usize::try_from(index).ok()?)
}

/// A value as text: a string as it is, anything else as JSON.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => spaced(other),
    }
}

/// Whether every path leads to something in whose text its regular expression is found. An expression that is none fits
/// nothing.
pub fn fits(value: &Value, expressions: &BTreeMap<String, String>) -> bool {
    expressions.iter().all(|(path, expression)| {
        let found = lookup(value, path).filter(|found| !found.is_null());
        found.is_some_and(|found| Regex::new(expression).is_ok_and(|expression| expression.is_match(&plain(found))))
    })
}

/// Puts [`IGNORED`] in the place of what is at a path; `*` stands for every key or element.
pub fn ignore(value: &mut Value, path: &str) {
    let parts: Vec<&str> = path.split('.').collect();
    ignore_parts(value, &parts);
}

fn ignore_parts(value: &mut Value, parts: &[&str]) {
    let Some((head, rest)) = parts.split_first() else {
        return;
    };
    match value {
        Value::Array(items) if *head == "*" => items.iter_mut().for_each(|item| ignore_parts(item, rest)),
        Value::Array(items) => {
            if let Some(item) = head.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                ignore_here(item, rest);
            }
        }
        Value::Object(fields) if *head == "*" => fields.values_mut().for_each(|field| ignore_here(field, rest)),
        Value::Object(fields) => {
            if let Some(field) = fields.get_mut(key(head).as_ref()) {
                ignore_here(field, rest);
            }
        }
        _ => {}
    }
}

fn ignore_here(value: &mut Value, rest: &[&str]) {
    match rest {
        [] => *value = IGNORED.into(),
        rest => ignore_parts(value, rest),
    }
}

/// Takes out the keys of these names wherever they occur.
pub fn without_keys(value: &mut Value, names: &[&str]) {
    match value {
        _ if names.is_empty() => {}
        Value::Object(fields) => {
            fields.retain(|key, _| !names.contains(&key.as_str()));
            fields.values_mut().for_each(|field| without_keys(field, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without_keys(item, names)),
        _ => {}
    }
}

/// Changes the array at a path; nothing where there is none.
pub fn change_array(value: &mut Value, path: &str, change: impl FnOnce(&mut Vec<Value>)) {
    let pointer = match path {
        "" => String::new(),
        path => path
            .split('.')
            .map(|part| format!("/{}", key(part).replace('~', "~0").replace('/', "~1")))
            .collect(),
    };
    if let Some(Value::Array(items)) = value.pointer_mut(&pointer) {
        change(items);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_through_keys_elements_and_names() {
        let value = json!({"a": [{"n": {"x": "p"}, "v": 1}, {"n": {"x": "q"}, "v": 2}], "b.c": 3, "d": null});
        assert_eq!(lookup(&value, "a.1.v"), Some(&json!(2)));
        assert_eq!(lookup(&value, "a.-1.v"), Some(&json!(2)));
        assert_eq!(lookup(&value, "a.n/x=p.v"), Some(&json!(1)));
        assert_eq!(lookup(&value, "b\\1c"), Some(&json!(3)));
        assert_eq!(lookup(&value, "d"), Some(&Value::Null));
        assert_eq!(lookup(&value, "a.2.v"), None);
        assert_eq!(lookup(&value, "b\\1c.x"), None);
    }

    #[test]
    fn ignored_values_keep_their_place() {
        let mut value = json!({"a": [{"v": 1, "w": 2}, {"v": 3}], "b": {"c": 1, "d": 2}, "e": [1, 2]});
        for path in ["a.*.v", "b.*", "e.1", "x.y", "e.7"] {
            ignore(&mut value, path);
        }
        assert_eq!(
            value,
            json!({"a": [{"v": IGNORED, "w": 2}, {"v": IGNORED}], "b": {"c": IGNORED, "d": IGNORED}, "e": [1, IGNORED]})
        );
    }

    #[test]
    fn expressions_are_searched_in_strings_and_in_json() {
        let expressions = |path: &str, expression: &str| BTreeMap::from([(path.to_owned(), expression.to_owned())]);
        let value = json!({"a": "some text", "b": [{"image": "bad/1"}], "c": null});
        assert!(fits(&value, &expressions("a", "^some")));
        assert!(fits(&value, &expressions("b", "bad/")));
        assert!(!fits(&value, &expressions("b", "good/")));
        assert!(!fits(&value, &expressions("c", "null")));
        assert!(!fits(&value, &expressions("a", "(")));
    }

    #[test]
    fn names_are_taken_out_everywhere() {
        let mut value = json!({"m": 1, "a": [{"m": 2, "b": {"m": 3, "c": 4}}]});
        without_keys(&mut value, &["m"]);
        assert_eq!(value, json!({"a": [{"b": {"c": 4}}]}));
    }
}
