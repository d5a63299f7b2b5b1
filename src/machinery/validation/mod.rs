//! Rules of names, labels and metadata that every object follows, and the declarative rules of definitions.

pub mod labels;
pub mod names;

/// The text of a failed pattern: what is expected, examples, and the pattern itself. The two spaces before "or" are
/// those of the API.
fn pattern_text(expected: &str, pattern: &str, examples: &[&str]) -> String {
    let examples = examples
        .iter()
        .map(|e| format!("'{e}'"))
        .collect::<Vec<_>>()
        .join(",  or ");
    format!("{expected} (e.g. {examples}, regex used for validation is '{pattern}')")
}

fn too_long_text(max: usize) -> String {
    format!("must be no more than {max} bytes")
}
