//! Strict decoding of patches: duplicate and unknown keys, which the caller is told of, and values of a wrong type.

use std::collections::BTreeSet;

use super::scan;
use crate::field::text::quote;

/// Most problems that one body reports.
pub(super) const MAX_PROBLEMS: usize = 100;

/// What a JSON value is called in error texts.
pub(super) fn kind(value: &[u8]) -> &'static str {
    match value.first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "bool",
        Some(b'n') => "null",
        _ => "number",
    }
}

/// Keys that stand twice in one object, as `duplicate field "spec.a[0].b"`, each once.
#[derive(Default)]
pub(super) struct Problems {
    texts: Vec<String>,
    seen: BTreeSet<String>,
}

impl Problems {
    pub(super) fn add(&mut self, what: &str, path: &str) {
        if self.texts.len() >= MAX_PROBLEMS {
            return;
        }
        let text = format!("{what} field {}", quote(path));
        if self.seen.insert(text.clone()) {
            self.texts.push(text);
        }
    }

    /// Looks through everything below `value`.
    pub(super) fn duplicates(&mut self, value: &[u8], path: &mut String) {
        let length = path.len();
        match value.first() {
            Some(b'{') => {
                let mut keys = BTreeSet::new();
                for (key, value) in scan::members(value) {
                    step(path, &key);
                    if !keys.insert(key) {
                        self.add("duplicate", path);
                    }
                    self.duplicates(value, path);
                    path.truncate(length);
                }
            }
            Some(b'[') => {
                for (i, value) in scan::elements(value).into_iter().enumerate() {
                    path.push_str(&format!("[{i}]"));
                    self.duplicates(value, path);
                    path.truncate(length);
                }
            }
            _ => {}
        }
    }

    pub(super) fn into_texts(self) -> Vec<String> {
        self.texts
    }
}

pub(super) fn step(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}
