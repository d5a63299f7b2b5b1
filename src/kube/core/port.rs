//! Numbers and names of ports.

use keelson_machinery::field::{FieldError, Path};

const NAME_MAX: usize = 15;

/// An error if the number is none of a port.
pub fn validate_number(number: i32, path: &Path) -> Option<FieldError> {
    let valid = (1..=65535).contains(&number);
    (!valid).then(|| FieldError::invalid(path, number, "must be between 1 and 65535, inclusive"))
}

/// What is wrong with the name of a port.
pub fn name_faults(name: &str) -> Vec<String> {
    let mut texts = Vec::new();
    if name.len() > NAME_MAX {
        texts.push(format!("must be no more than {NAME_MAX} bytes"));
    }
    if name.is_empty()
        || !name
            .bytes()
            .all(|b| b == b'-' || b.is_ascii_digit() || b.is_ascii_lowercase())
    {
        texts.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        texts.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        texts.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        texts.push("must not begin or end with a hyphen".to_owned());
    }
    texts
}
