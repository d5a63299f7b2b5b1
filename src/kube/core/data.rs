//! Keys and sizes of the data of config maps and secrets.

use std::collections::BTreeMap;

use crate::faults::Faults;
use crate::names::config_key;

/// The most bytes that all values of one object have together.
pub const SIZE_MAX: usize = 1024 * 1024;

/// Checks all keys of a map. `f` stands at it.
pub fn keys<V>(f: &mut Faults<'_>, data: &BTreeMap<String, V>) {
    for key in data.keys() {
        f.key(key).texts(key, config_key(key));
    }
}

/// Of an object that is marked as immutable, these fields say whether they have changed.
pub fn marked(f: &mut Faults<'_>, fields: &[(&str, bool)]) {
    for (field, is_changed) in fields {
        f.at(field)
            .forbidden_if(*is_changed, "field is immutable when `immutable` is set");
    }
}
