//! Comparing: where a normalised answer differs from what was recorded.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::paths::IGNORED;
use crate::text::{sortable, spaced};

/// Differences that are looked for in one answer.
const MOST: usize = 40;
/// Characters of a value that are shown.
const SHOWN: usize = 240;
/// Characters that are shown before the first difference of long values.
const CONTEXT: usize = 60;

/// One place where two values differ.
#[derive(Debug, PartialEq, Clone)]
pub struct Difference {
    pub path: String,
    /// `None`: nothing.
    pub wanted: Option<Value>,
    pub got: Option<Value>,
}

impl Difference {
    /// Whether only what humans read is worded differently.
    pub fn is_wording(&self) -> bool {
        let leaf = self.path.rsplit('.').next().unwrap_or_default();
        let worded = matches!(leaf, "message" | "error" | "evaluationError") && self.path != "error";
        worded || self.path.starts_with("headers.warning")
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wanted, got) = (text(self.wanted.as_ref()), text(self.got.as_ref()));
        let from = begin(&wanted, &got);
        let (wanted, got) = (shown(&wanted, from), shown(&got, from));
        write!(f, "{}: want {wanted}, got {got}", self.path)
    }
}

fn text(value: Option<&Value>) -> String {
    match value {
        None => "(absent)".to_owned(),
        Some(value) => spaced(value),
    }
}

/// The character from which two texts are shown: the first, unless they differ only behind what fits.
fn begin(wanted: &str, got: &str) -> usize {
    let same = wanted.chars().zip(got.chars()).take_while(|(one, other)| one == other);
    match same.count() {
        same if same + CONTEXT < SHOWN => 0,
        same => same - CONTEXT,
    }
}

fn shown(text: &str, from: usize) -> String {
    let at = |character| text.char_indices().nth(character).map(|(place, _)| place);
    let rest = at(from).map_or("", |place| &text[place..]);
    let before = if from > 0 { "…" } else { "" };
    match rest.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{before}{}…", &rest[..end]),
        None => format!("{before}{rest}"),
    }
}

/// Where `got` differs from `wanted`, in the order of paths.
pub fn differences(wanted: &Value, got: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(&ordered(wanted, ""), &ordered(got, ""), "", &mut found);
    found
}

/// With managedFields sorted: they are ordered by times, which have seconds only.
fn ordered(value: &Value, key: &str) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), ordered(value, key)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| ordered(item, "")).collect();
            if key.ends_with("managedFields") {
                items.sort_by_cached_key(sortable);
            }
            Value::Array(items)
        }
        other => other.clone(),
    }
}

fn compare(wanted: &Value, got: &Value, path: &str, found: &mut Vec<Difference>) {
    if found.len() > MOST {
        return;
    }
    match (wanted, got) {
        (Value::Object(wanted), Value::Object(got)) => {
            let keys: BTreeSet<&String> = wanted.keys().chain(got.keys()).collect();
            for key in keys {
                both(wanted.get(key), got.get(key), &below(path, key), found);
            }
        }
        (Value::Array(wanted), Value::Array(got)) => {
            for index in 0..wanted.len().max(got.len()) {
                both(wanted.get(index), got.get(index), &format!("{path}.{index}"), found);
            }
        }
        (wanted, got) if wanted == got || wanted == IGNORED => {}
        (wanted, got) => found.push(difference(path, Some(wanted), Some(got))),
    }
}

fn both(wanted: Option<&Value>, got: Option<&Value>, path: &str, found: &mut Vec<Difference>) {
    match (wanted, got) {
        (Some(wanted), Some(got)) => compare(wanted, got, path, found),
        (wanted, got) => found.push(difference(path, wanted, got)),
    }
}

fn difference(path: &str, wanted: Option<&Value>, got: Option<&Value>) -> Difference {
    Difference {
        path: path.to_owned(),
        wanted: wanted.cloned(),
        got: got.cloned(),
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(wanted: Value, got: Value) -> Vec<String> {
        let found = differences(&wanted, &got);
        found.into_iter().map(|difference| difference.path).collect()
    }

    #[test]
    fn long_values_are_shown_from_where_they_differ() {
        let long = "a".repeat(1_000);
        let found = differences(&json!(format!("{long}b")), &json!(format!("{long}c")));
        let context = "a".repeat(CONTEXT - 1);
        assert!(
            found[0]
                .to_string()
                .contains(&format!("…a{context}b\", got …a{context}c\"")),
            "{}",
            found[0]
        );
    }

    #[test]
    fn every_difference_is_named_by_its_path() {
        let wanted = json!({"a": [1, {"b": 2}], "c": "x", "d": 1, "e": IGNORED, "f": null});
        let got = json!({"a": [1, {"b": 3}, 4], "c": "x", "d": 1.0, "e": {"any": 1}, "g": 1});
        assert_eq!(paths(wanted, got), ["a.1.b", "a.2", "d", "f", "g"]);
    }

    #[test]
    fn a_value_that_is_not_compared_must_be_there() {
        assert_eq!(paths(json!({"a": IGNORED}), json!({})), ["a"]);
    }

    #[test]
    fn managed_fields_have_no_order() {
        let fields = |first: &str, second: &str| json!({"metadata": {"managedFields": [{"m": first}, {"m": second}]}});
        assert!(paths(fields("a", "b"), fields("b", "a")).is_empty());
        assert!(!paths(fields("a", "b"), fields("a", "c")).is_empty());
    }

    #[test]
    fn wording_is_what_humans_read() {
        let wording = |path: &str| difference(path, None, None).is_wording();
        assert!(wording("body.message") && wording("body.status.error") && wording("headers.warning.0"));
        assert!(!wording("error") && !wording("body.reason") && !wording("body.message.x"));
    }
}
