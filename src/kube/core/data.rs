//! Keys and sizes of the data of config maps and secrets.

use std::collections::BTreeMap;

use keelson_machinery::field::{FieldError, Path};

use crate::names::config_key;

/// The most bytes that all values of one object have together.
pub const SIZE_MAX: usize = 1024 * 1024;

/// The text of a change to an object that is marked as immutable.
pub const IMMUTABLE: &str = "field is immutable when `immutable` is set";

/// Faults of all keys of a map.
pub fn validate_keys<V>(data: &BTreeMap<String, V>, path: &Path) -> Vec<FieldError> {
    let faults = data
        .keys()
        .flat_map(|key| config_key(key).into_iter().map(move |text| (key, text)));
    faults
        .map(|(key, text)| FieldError::invalid(&path.key(key), key, text))
        .collect()
}
