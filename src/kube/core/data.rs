//! Keys and sizes of the data of config maps and secrets.

use std::collections::BTreeMap;

use keelson_machinery::field::{FieldError, Path};
use keelson_machinery::validation::names;

/// The most bytes that all values of one object have together.
pub const SIZE_MAX: usize = 1024 * 1024;

/// The text of a change to an object that is marked as immutable.
pub const IMMUTABLE: &str = "field is immutable when `immutable` is set";

/// What is wrong with a key.
pub fn key_faults(key: &str) -> Vec<String> {
    let mut texts = Vec::new();
    if key.len() > names::SUBDOMAIN_MAX {
        texts.push(format!("must be no more than {} bytes", names::SUBDOMAIN_MAX));
    }
    if key.is_empty()
        || !key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    {
        texts.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match key {
        "." | ".." => texts.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => texts.push("must not start with '..'".to_owned()),
        _ => {}
    }
    texts
}

/// Faults of all keys of a map.
pub fn validate_keys<V>(data: &BTreeMap<String, V>, path: &Path) -> Vec<FieldError> {
    let faults = data
        .keys()
        .flat_map(|key| key_faults(key).into_iter().map(move |text| (key, text)));
    faults
        .map(|(key, text)| FieldError::invalid(&path.key(key), key, text))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_file_names() {
        for key in ["a", "A_b.c-d", ".x", "a..b"] {
            assert!(key_faults(key).is_empty(), "{key}");
        }
        assert_eq!(key_faults("."), ["must not be '.'"]);
        assert_eq!(key_faults(".."), ["must not be '..'"]);
        assert_eq!(key_faults("..a"), ["must not start with '..'"]);
        assert_eq!(key_faults("a/b").len(), 1);
        assert_eq!(key_faults("").len(), 1);
        assert_eq!(key_faults(&"a".repeat(254)), ["must be no more than 253 bytes"]);
    }
}
