//! Strict decoding of patches: duplicate and unknown keys, which the caller is told of, and values of a wrong type.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;

use crate::field::text::quote;
use crate::json::Cursor;
use crate::json_text as text;

/// Most problems that one body reports.
pub(super) const MAX_PROBLEMS: usize = 100;
/// Bytes of the path of a problem: keys are as long as who sends them likes.
const MAX_PATH: usize = 4 * 1024;

/// What a JSON value is called in error texts.
pub(super) fn kind(value: &[u8]) -> &'static str {
    text::kind_name(value)
}

/// Keys that stand twice in one object, as `duplicate field "spec.a[0].b"`, each once.
#[derive(Default)]
pub(super) struct Problems {
    texts: Vec<String>,
    seen: BTreeSet<String>,
}

/// An object or array that is open.
enum Open<'a> {
    Object(HashSet<Cow<'a, str>>),
    Array(usize),
}

impl Problems {
    pub(super) fn add(&mut self, what: &str, path: &str) {
        if self.texts.len() >= MAX_PROBLEMS {
            return;
        }
        let mut end = path
            .get(..path.floor_char_boundary(MAX_PATH))
            .unwrap_or_default()
            .to_owned();
        if end.len() < path.len() {
            end.push_str("...");
        }
        let text = format!("{what} field {}", quote(&end));
        if self.seen.insert(text.clone()) {
            self.texts.push(text);
        }
    }

    /// Looks through everything below `value`, checked text at `path`. Not recursive, so that depth costs no stack.
    pub(super) fn duplicates(&mut self, value: &[u8], path: &str) {
        let mut cursor = Cursor::new(value);
        let mut path = path.to_owned();
        // What is open, and how long the path to it is.
        let mut open: Vec<(Open<'_>, usize)> = Vec::new();
        loop {
            let first = cursor.peek();
            let mut more = match first {
                Some(b'{' | b'[') => {
                    cursor.open();
                    let collection = match first {
                        Some(b'{') => Open::Object(HashSet::new()),
                        _ => Open::Array(0),
                    };
                    open.push((collection, path.len()));
                    match cursor.peek() {
                        Some(b'}' | b']') => cursor.more(),
                        other => other.is_some(),
                    }
                }
                _ => {
                    cursor.skip();
                    cursor_goes_on(&mut cursor, &open)
                }
            };
            // Ends what ends here.
            while !more {
                let Some((_, length)) = open.pop() else { return };
                path.truncate(length);
                more = cursor_goes_on(&mut cursor, &open);
                if open.is_empty() {
                    return;
                }
            }
            self.step_in(&mut cursor, &mut open, &mut path);
        }
    }

    /// Goes to the next member or element of what is innermost.
    fn step_in<'a>(&mut self, cursor: &mut Cursor<'a>, open: &mut [(Open<'a>, usize)], path: &mut String) {
        let Some((innermost, length)) = open.last_mut() else {
            return;
        };
        path.truncate(*length);
        match innermost {
            Open::Object(keys) => {
                let key = cursor.key().decode();
                step(path, &key);
                if !keys.insert(key) {
                    self.add("duplicate", path);
                }
            }
            Open::Array(index) => {
                // Below nothing else the path is asked for.
                if matches!(cursor.peek(), Some(b'{' | b'[')) {
                    // Writing to a text does not fail.
                    let _ = write!(path, "[{index}]");
                }
                *index += 1;
            }
        }
    }

    pub(super) fn into_texts(self) -> Vec<String> {
        self.texts
    }
}

/// Whether what is innermost has another member or element.
fn cursor_goes_on(cursor: &mut Cursor<'_>, open: &[(Open<'_>, usize)]) -> bool {
    !open.is_empty() && cursor.more()
}

pub(super) fn step(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duplicates(json: &str) -> Vec<String> {
        let mut problems = Problems::default();
        problems.duplicates(json.as_bytes(), "");
        problems.into_texts()
    }

    #[test]
    fn repeated_keys_with_their_paths() {
        assert_eq!(
            duplicates(
                r#" {"a":1, "b":{"c":[ ],"c":2,"c":{}},"d":[{"e":1,"e":[[],[{"x":1,"x":2}]]}, {}],"a":2,"f":{}}"#
            ),
            [
                r#"duplicate field "b.c""#,
                r#"duplicate field "d[0].e""#,
                r#"duplicate field "d[0].e[1][0].x""#,
                r#"duplicate field "a""#
            ]
        );
        for json in ["1", "[]", "{}", "\"a\"", "[1,{}]", r#"{"a":{"a":{"a":[]}}}"#] {
            assert!(duplicates(json).is_empty(), "{json}");
        }
        let deep = format!("{}1{}", "{\"a\":".repeat(9_000), "}".repeat(9_000));
        assert!(duplicates(&deep).is_empty());
    }
}
