//! Paths of fields that definitions name, by a schema: `.spec.size`, `['a-b'].c`.

use super::schema::JsonSchema;
use crate::field::Path;

/// Why a path leads to no field.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FieldPathError {
    /// The schema declares no such field.
    #[error("does not refer to a valid field")]
    Unknown,
    /// It breaks off.
    #[error("unexpected end of JSON path")]
    Ended,
    /// A name in brackets, where none may be.
    #[error("array notation is not allowed")]
    Brackets,
    /// Something else stands where a name should begin.
    #[error("expected [ or . but got: {0}")]
    Begin(String),
    /// Something else stands behind a name in brackets.
    #[error("expected ] but got {0}")]
    End(String),
    /// A name in quotes with an escape that there is not.
    #[error("invalid string literal: invalid escape char \\{0}")]
    Escape(char),
    /// A name in brackets without its quotes.
    #[error("expected single quoted string but got {0}")]
    Quotes(String),
}

/// A field that a path leads to.
#[derive(Clone, Debug)]
pub struct FieldPath<'s> {
    pub path: Path,
    /// `None`: it is a member of a map that may hold anything.
    pub schema: Option<&'s JsonSchema>,
}

impl JsonSchema {
    /// The field that the path leads to. With `brackets`, names may be quoted in them.
    ///
    /// # Errors
    /// It is no path, or the schema declares no such field.
    pub fn field_at(&self, path: &str, brackets: bool) -> Result<FieldPath<'_>, FieldPathError> {
        let mut found = FieldPath {
            path: Path::root(),
            schema: Some(self),
        };
        let mut tokens = Tokens(path);
        while let Some(token) = tokens.next() {
            let name = match token {
                "." => tokens.next().ok_or(FieldPathError::Ended)?.to_owned(),
                "[" if !brackets => return Err(FieldPathError::Brackets),
                "[" => {
                    let quoted = tokens.next().ok_or(FieldPathError::Ended)?;
                    unquoted(quoted)?
                }
                other => return Err(FieldPathError::Begin(other.to_owned())),
            };
            found = found.below(&name)?;
            if token == "[" {
                match tokens.next().ok_or(FieldPathError::Ended)? {
                    "]" => {}
                    other => return Err(FieldPathError::End(other.to_owned())),
                }
            }
        }
        Ok(found)
    }
}

impl<'s> FieldPath<'s> {
    fn below(&self, name: &str) -> Result<FieldPath<'s>, FieldPathError> {
        let schema = self.schema.ok_or(FieldPathError::Unknown)?;
        if !schema.properties.is_empty() {
            return Ok(FieldPath {
                path: self.path.child(name.to_owned()),
                schema: Some(schema.property(name).ok_or(FieldPathError::Unknown)?),
            });
        }
        schema.additional_properties.as_ref().ok_or(FieldPathError::Unknown)?;
        Ok(FieldPath {
            path: self.path.key(name),
            schema: schema.additional(),
        })
    }
}

/// Delimiters, names, and texts in single quotes.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let mut before = '\'';
        let end = match self.0.chars().next()? {
            '.' | '[' | ']' => 1,
            '\'' => {
                let mut closing = self.0.char_indices().skip(1).filter(|(_, c)| {
                    let escaped = before == '\\';
                    before = *c;
                    *c == '\'' && !escaped
                });
                closing.next().map_or(self.0.len(), |(at, _)| at + 1)
            }
            _ => self.0.find(['.', '[', ']']).unwrap_or(self.0.len()),
        };
        let (token, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        Some(token)
    }
}

/// A name in single quotes.
fn unquoted(token: &str) -> Result<String, FieldPathError> {
    let inner = token.strip_prefix('\'').and_then(|token| token.strip_suffix('\''));
    let Some(inner) = inner else {
        return Err(FieldPathError::Quotes(token.to_owned()));
    };
    let mut name = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        name.push(match c {
            '\\' => match chars.next() {
                Some('a') => '\x07',
                Some('b') => '\x08',
                Some('f') => '\x0c',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('v') => '\x0b',
                Some(c @ ('\'' | '\\')) => c,
                Some(other) => return Err(FieldPathError::Escape(other)),
                None => '\\',
            },
            c => c,
        });
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_fields_of_a_schema() {
        let text = r#"{"properties":{"spec":{"properties":{"a-b":{"type":"string"},"m":{"additionalProperties":
            {"properties":{"x":{"type":"integer"}}}},"free":{"additionalProperties":true}}}}}"#;
        let schema = JsonSchema::parse(text.as_bytes()).unwrap();
        for (path, expected) in [
            (".spec.a-b", Ok("spec.a-b string")),
            (".spec['a-b']", Ok("spec.a-b string")),
            ("['spec'].m.key", Ok("spec.m[key] ")),
            (".spec.m['a.\\'b'].x", Ok("spec.m[a.'b].x integer")),
            (".spec.free.any", Ok("spec.free[any] none")),
            ("", Ok("<nil> ")),
            ("spec", Err("expected [ or . but got: spec")),
            (".spec.", Err("unexpected end of JSON path")),
            (".spec.a-b.c", Err("does not refer to a valid field")),
            (".spec.free.any.more", Err("does not refer to a valid field")),
            (".spec[0]", Err("expected single quoted string but got 0")),
            (".spec['a-b'", Err("unexpected end of JSON path")),
            (".spec['a-b'.", Err("expected ] but got .")),
            (".spec['\\q']", Err("invalid string literal: invalid escape char \\q")),
        ] {
            let found = schema.field_at(path, true).map(|found| {
                let ty = found.schema.map_or("none", JsonSchema::type_name);
                format!("{} {ty}", found.path)
            });
            let found = found.map_err(|error| error.to_string());
            assert_eq!(found.as_deref(), expected.map_err(str::to_owned).as_deref(), "{path}");
        }
        assert_eq!(
            schema.field_at("['spec']", false).map(|_| ()),
            Err(FieldPathError::Brackets)
        );
    }
}
