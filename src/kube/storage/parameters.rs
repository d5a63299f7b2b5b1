//! Parameters of storage classes for a driver: its name, and parameters that are its own.

use std::collections::BTreeMap;

use crate::faults::Faults;

/// Bounds of parameters: how many, and of all their bytes.
const MOST: usize = 512;
const SIZE_MAX: usize = 256 * 1024;

/// The name of a driver, in whatever case.
pub fn driver(f: &mut Faults<'_>, name: &str) {
    if f.filled(name) {
        f.qualified(&name.to_lowercase());
    }
}

/// Checks parameters.
pub fn check(f: &mut Faults<'_>, parameters: &BTreeMap<String, String>) {
    if parameters.len() > MOST {
        return f.too_long(MOST);
    }
    f.invalid_if(parameters.contains_key(""), "", "field can not be empty.");
    if parameters
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum::<usize>()
        > SIZE_MAX
    {
        f.too_long(SIZE_MAX);
    }
}
