//! Field selectors: `metadata.name=x,status.phase!=Running`.

use std::fmt;

pub use super::label::SelectorError;

/// Which values an object's fields must have. Selects everything when it has no terms.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

/// What one field must be, or must not be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    /// The label of the field, such as `metadata.name`.
    pub field: String,
    pub value: String,
    /// `!=`.
    pub negated: bool,
}

impl FieldSelector {
    /// Selects every object.
    pub fn everything() -> FieldSelector {
        FieldSelector::default()
    }

    /// Selects the object of that name.
    pub fn name(name: &str) -> FieldSelector {
        let term = Term {
            field: "metadata.name".to_owned(),
            value: name.to_owned(),
            negated: false,
        };
        FieldSelector { terms: vec![term] }
    }

    /// Reads the text form. Work and memory are linear in the text, which the request line bounds.
    pub fn parse(text: &str) -> Result<FieldSelector, SelectorError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|p| !p.is_empty()) {
            let Some((field, negated, value)) = split_term(part) else {
                return Err(SelectorError(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                )));
            };
            let value = unescape(value)?;
            // A term without field and value says nothing.
            if !(field.is_empty() && value.is_empty()) {
                terms.push(Term {
                    field: field.to_owned(),
                    value,
                    negated,
                });
            }
        }
        Ok(FieldSelector { terms })
    }

    /// The selector with paths for its fields' labels. Labels are `metadata.name`, `metadata.namespace` and those in
    /// `selectable`: a path such as `spec.color`, which is its own label, or `label=path`. A kind in no namespace that
    /// has labels of its own does not know `metadata.namespace`. Any other label is an error.
    pub fn resolve(&self, selectable: &[&str], namespaced: bool) -> Result<FieldSelector, SelectorError> {
        let path = |label: &str| match label {
            "metadata.name" => Some(label.to_owned()),
            "metadata.namespace" if namespaced || selectable.is_empty() => Some(label.to_owned()),
            label => selectable.iter().find_map(|entry| {
                let (name, path) = entry.split_once('=').unwrap_or((entry, entry));
                (name == label).then(|| path.to_owned())
            }),
        };
        let mut terms = self.terms.clone();
        for term in &mut terms {
            let Some(path) = path(&term.field) else {
                return Err(unknown(&term.field, selectable.is_empty()));
            };
            term.field = path;
        }
        Ok(FieldSelector { terms })
    }

    /// Whether an object is selected; `lookup` gives the value of a field, "" if it has none.
    pub fn matches<'a>(&self, mut lookup: impl FnMut(&str) -> std::borrow::Cow<'a, str>) -> bool {
        self.terms
            .iter()
            .all(|t| (lookup(&t.field) == t.value.as_str()) != t.negated)
    }

    /// The value that `field` must have, if the selector says so.
    pub fn required_value(&self, field: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|t| t.field == field && !t.negated)
            .map(|t| t.value.as_str())
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    pub fn into_terms(self) -> Vec<Term> {
        self.terms
    }
}

/// Parts between commas that no backslash escapes.
fn unknown(label: &str, no_others: bool) -> SelectorError {
    SelectorError(if no_others {
        let label = crate::field::text::quote(label);
        format!("{label} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    } else {
        format!("field label not supported: {label}")
    })
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c| {
        let splits = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        splits
    })
    .collect()
}

/// Field, whether `!=` stands there, and the value as it is written.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    for (i, _) in term.char_indices() {
        let (field, rest) = term.split_at(i);
        if let Some(value) = rest.strip_prefix("!=") {
            return Some((field, true, value));
        }
        if let Some(value) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
            return Some((field, false, value));
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                other => {
                    let sequence: String = std::iter::once('\\').chain(other).collect();
                    return Err(SelectorError(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    )));
                }
            },
            // The API prints the code of the character.
            ',' | '=' => {
                let code = u32::from(c);
                return Err(SelectorError(format!(
                    "invalid field selector: unescaped character in value: {code}"
                )));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

/// The canonical text.
impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.terms.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let operator = if term.negated { "!=" } else { "=" };
            let value = term.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(f, "{comma}{}{operator}{value}", term.field)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_printed_as_the_api_does() {
        for line in include_str!("testdata/fields.tsv").lines() {
            let (input, expected) = line.split_once('\t').unwrap();
            let got = match FieldSelector::parse(input) {
                Ok(selector) => selector.to_string(),
                Err(error) => format!("!{error}"),
            };
            assert_eq!(got, expected, "{input}");
        }
    }

    #[test]
    fn selectors_match_fields() {
        let lookup = |f: &str| if f == "metadata.name" { "x".into() } else { "".into() };
        for (selector, expected) in [
            ("", true),
            ("metadata.name=x", true),
            ("metadata.name!=x", false),
            ("metadata.name=y", false),
            ("status.phase=", true),
            ("status.phase!=", false),
            ("metadata.name=x,status.phase!=Running", true),
        ] {
            assert_eq!(
                FieldSelector::parse(selector).unwrap().matches(lookup),
                expected,
                "{selector}"
            );
        }
    }

    #[test]
    fn fields_that_a_kind_does_not_select_by_are_refused() {
        let resolve = |text: &str, selectable: &[&str], namespaced| {
            let resolved = FieldSelector::parse(text).unwrap().resolve(selectable, namespaced);
            resolved.map_or_else(|e| e.to_string(), |s| s.to_string())
        };
        assert_eq!(resolve("spec.x=1", &["spec.x"], true), "spec.x=1");
        assert_eq!(resolve("x!=1", &["spec.x", "x=spec.x"], true), "spec.x!=1");
        assert_eq!(
            resolve("spec.x=1", &["spec.y"], true),
            "field label not supported: spec.x"
        );
        assert_eq!(
            resolve("spec.x=1", &[], true),
            r#""spec.x" is not a known field selector: only "metadata.name", "metadata.namespace""#
        );
        let both = "metadata.name=a,metadata.namespace=b";
        assert_eq!(resolve(both, &[], false), both);
        assert_eq!(resolve(both, &["spec.x"], true), both);
        assert_eq!(
            resolve(both, &["spec.x"], false),
            "field label not supported: metadata.namespace"
        );
    }
}
