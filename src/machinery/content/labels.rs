//! Keys and values of labels, keys of annotations, and other qualified names.

use std::collections::BTreeMap;

use super::{Unit, names, pattern_text, too_long_text};
use crate::field::{ErrorList, FieldError, Path};

/// All keys and values of an object's annotations together, in bytes.
pub const ANNOTATIONS_MAX: usize = 256 * 1024;

const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const NAME_TEXT: &str =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const NAME_EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];

/// Whether `name` matches [`NAME`], whatever its length.
fn is_name(name: &str) -> bool {
    let b = name.as_bytes();
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    ends(b.first())
        && ends(b.last())
        && b.iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// A key of a label: a name of at most 63 bytes, with an optional DNS subdomain and a slash before it. One text per
/// broken rule.
pub fn qualified_name(key: &str) -> Vec<String> {
    let (prefix, name) = match key.split_once('/') {
        None => (None, key),
        Some((prefix, name)) => (Some(prefix), name),
    };
    if name.contains('/') {
        let pattern = pattern_text(NAME_TEXT, NAME, &NAME_EXAMPLES);
        let text = format!(
            "a valid label key {pattern} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        );
        return vec![text];
    }
    let mut texts = Vec::new();
    match prefix {
        None => {}
        Some("") => texts.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => texts.extend(
            names::subdomain_in(prefix, Unit::Bytes)
                .iter()
                .map(|t| format!("prefix part {t}")),
        ),
    }
    if name.is_empty() {
        texts.push("name part must be non-empty".to_owned());
    } else if name.len() > names::LABEL_MAX {
        texts.push(format!("name part {}", too_long_text(names::LABEL_MAX, Unit::Bytes)));
    }
    if !is_name(name) {
        texts.push(format!("name part {}", pattern_text(NAME_TEXT, NAME, &NAME_EXAMPLES)));
    }
    texts
}

/// A value of a label. One text per broken rule.
pub fn label_value(value: &str) -> Vec<String> {
    let mut texts = Vec::new();
    if value.len() > names::LABEL_MAX {
        texts.push(too_long_text(names::LABEL_MAX, Unit::Bytes));
    }
    if !value.is_empty() && !is_name(value) {
        texts.push(pattern_text(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            &format!("({NAME})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    texts
}

/// The labels of an object.
pub fn validate_labels(labels: &BTreeMap<String, String>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, value) in labels {
        if errors.is_full() {
            break;
        }
        errors.extend(
            qualified_name(key)
                .into_iter()
                .map(|t| FieldError::invalid(path, key, t)),
        );
        errors.extend(
            label_value(value)
                .into_iter()
                .map(|t| FieldError::invalid(path, value, t)),
        );
    }
    errors
}

/// The annotations of an object: keys as those of labels, but in any case; a bound on the size of all.
pub fn validate_annotations(annotations: &BTreeMap<String, String>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for key in annotations.keys() {
        if errors.is_full() {
            break;
        }
        let texts = qualified_name(&key.to_lowercase());
        errors.extend(texts.into_iter().map(|t| FieldError::invalid(path, key, t)));
    }
    let size: usize = annotations.iter().map(|(k, v)| k.len() + v.len()).sum();
    if size > ANNOTATIONS_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_MAX));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATTERN: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
        alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

    #[test]
    fn keys_are_a_name_with_an_optional_subdomain() {
        for key in [
            "a",
            "A_b.c-1",
            "example.com/Name",
            &"a".repeat(63),
            &format!("{}/b", "a".repeat(253)),
        ] {
            assert!(qualified_name(key).is_empty(), "{key}");
        }
        let name_part = format!("name part {PATTERN}");
        assert_eq!(
            qualified_name(""),
            ["name part must be non-empty".to_owned(), name_part.clone()]
        );
        assert_eq!(qualified_name("a b").join("|"), name_part);
        assert_eq!(qualified_name("/a"), ["prefix part must be non-empty"]);
        assert_eq!(
            qualified_name("a/b/c"),
            [format!(
                "a valid label key {PATTERN} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )]
        );
        assert_eq!(
            qualified_name(&"a".repeat(64)),
            ["name part must be no more than 63 bytes"]
        );
        let prefix = qualified_name("A.com/b");
        assert_eq!(prefix.len(), 1);
        assert!(prefix[0].starts_with("prefix part a lowercase RFC 1123 subdomain must consist of"));
    }

    #[test]
    fn values_may_be_empty() {
        assert!(label_value("").is_empty());
        assert!(label_value("a_B.c-0").is_empty());
        assert_eq!(label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
        assert_eq!(
            label_value("-a"),
            [
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
              start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
              for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ]
        );
    }

    #[test]
    fn annotations_have_keys_in_any_case_and_a_bounded_size() {
        let path = Path::new("metadata.annotations");
        let mut annotations = BTreeMap::from([("Example.COM/Key".to_owned(), "v".to_owned())]);
        assert!(validate_annotations(&annotations, &path).is_empty());
        annotations.insert("big".to_owned(), "x".repeat(ANNOTATIONS_MAX));
        assert_eq!(
            validate_annotations(&annotations, &path).to_string(),
            "metadata.annotations: Too long: may not be more than 262144 bytes"
        );
    }
}
