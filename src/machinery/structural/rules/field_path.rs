//! Paths of fields that rules name: `.spec.size`, `['a-b'].c`.

use std::iter::Peekable;
use std::str::Chars;

use crate::field::Path;
use crate::structural::schema::{JsonSchema, Keywords};

/// The path, if it leads to something that the schema declares; `None`: it does not.
pub(in crate::structural) fn valid(text: &str, schema: &JsonSchema) -> Option<Path> {
    let (mut at, mut path) = (schema, Path::root());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let name = match c {
            '.' => plain(&mut chars)?,
            '[' => quoted(&mut chars)?,
            _ => return None,
        };
        (at, path) = match at.has(Keywords::PROPERTIES) && !at.properties.is_empty() {
            true => (at.property(&name)?, path.child(name)),
            false => (at.additional()?, path.key(name)),
        };
    }
    Some(path)
}

/// A name up to the next delimiter.
fn plain(chars: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut name = String::new();
    while let Some(c) = chars.next_if(|c| !matches!(c, '.' | '[' | ']')) {
        name.push(c);
    }
    (!name.is_empty()).then_some(name)
}

/// A name in single quotes and the bracket behind it.
fn quoted(chars: &mut Peekable<Chars<'_>>) -> Option<String> {
    chars.next_if_eq(&'\'')?;
    let mut name = String::new();
    loop {
        match chars.next()? {
            '\'' => break,
            '\\' => name.push(match chars.next()? {
                'a' => '\x07',
                'b' => '\x08',
                'f' => '\x0c',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\x0b',
                c @ ('\'' | '\\') => c,
                _ => return None,
            }),
            c => name.push(c),
        }
    }
    chars.next_if_eq(&']')?;
    Some(name)
}
