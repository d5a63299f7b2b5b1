//! Contents of texts: names, labels and named formats, by the rules that every object follows.

pub mod labels;
pub mod names;
pub(crate) mod strfmt;
pub mod webhook;

/// The text of a failed pattern: what is expected, examples, and the pattern itself. The two spaces before "or" are
/// those of the API.
pub(crate) fn pattern_text(expected: &str, pattern: &str, examples: &[&str]) -> String {
    let examples = examples
        .iter()
        .map(|e| format!("'{e}'"))
        .collect::<Vec<_>>()
        .join(",  or ");
    format!("{expected} (e.g. {examples}, regex used for validation is '{pattern}')")
}

/// What the API counts lengths in. Both are bytes; the words differ between names of objects and declared rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    Bytes,
    Characters,
}

pub(crate) fn too_long_text(max: usize, unit: Unit) -> String {
    let unit = match unit {
        Unit::Bytes => "bytes",
        Unit::Characters => "characters",
    };
    format!("must be no more than {max} {unit}")
}
