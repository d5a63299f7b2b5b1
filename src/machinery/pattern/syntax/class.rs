//! Classes of characters in brackets.

use std::fmt::Write;

use super::escape::{Escape, escape};
use super::{PatternError, Result};

/// Names in `[:name:]`.
const NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];
const INVALID: &str = "invalid character class range";

/// Reads the class that a text begins with; returns it in the crate's syntax and what follows.
pub(super) fn class(whole: &str) -> Result<(String, &str)> {
    let mut rest = whole.get(1..).unwrap_or_default();
    let mut out = "[".to_owned();
    if let Some(behind) = rest.strip_prefix('^') {
        out.push('^');
        rest = behind;
    }
    let begin = out.len();
    let mut first = true;
    while first || !rest.starts_with(']') {
        first = false;
        if let Some((text, behind)) = named(rest)? {
            out.push_str(&text);
            rest = behind;
            continue;
        }
        let range = rest;
        let low = match one(rest, whole)? {
            (Escape::Class(class), behind) => {
                out.push_str(&class);
                rest = behind;
                continue;
            }
            (Escape::Char(c), behind) => {
                rest = behind;
                c
            }
        };
        let mut high = low;
        if let Some(behind) = rest.strip_prefix('-').filter(|b| !b.is_empty() && !b.starts_with(']')) {
            (high, rest) = end(behind, whole)?;
            if number(high, false) < number(low, false) {
                let part = range.get(..range.len() - rest.len()).unwrap_or(range);
                return Err(PatternError::new(INVALID, part));
            }
        }
        let (low, high) = (number(low, true), number(high, false));
        if low <= high {
            let _ = write!(out, r"\x{{{low:X}}}-\x{{{high:X}}}");
        }
    }
    if out.len() == begin {
        // Of nothing but halves of characters.
        out.push_str(r"[^\x00-\x{10FFFF}]");
    }
    out.push(']');
    Ok((out, rest.get(1..).unwrap_or_default()))
}

/// The number of an end of a range. Halves of characters, of which none is in a text, are passed over.
fn number(c: Option<char>, low: bool) -> u32 {
    match (c, low) {
        (Some(c), _) => c.into(),
        (None, true) => 0xE000,
        (None, false) => 0xD7FF,
    }
}

/// The character that ends a range. A class can't, so what would be one is no escape.
fn end<'a>(text: &'a str, whole: &str) -> Result<(Option<char>, &'a str)> {
    let class = |c: char| matches!(c, 'p' | 'P' | 'd' | 'D' | 's' | 'S' | 'w' | 'W');
    if text.strip_prefix('\\').is_some_and(|behind| behind.starts_with(class)) {
        let part = text.get(..2).unwrap_or(text);
        return Err(PatternError::new("invalid escape sequence", part));
    }
    match one(text, whole)? {
        (Escape::Char(c), rest) => Ok((c, rest)),
        (Escape::Class(_), _) => Err(PatternError::new(INVALID, text)),
    }
}

/// A character, or the class that an escape means.
fn one<'a>(text: &'a str, whole: &str) -> Result<(Escape, &'a str)> {
    match text.chars().next() {
        None => Err(PatternError::new("missing closing ]", whole)),
        Some('\\') => escape(text),
        Some(c) => Ok((Escape::Char(Some(c)), text.get(c.len_utf8()..).unwrap_or_default())),
    }
}

/// A class by its name: `[:alpha:]`, `[:^alpha:]`.
fn named(text: &str) -> Result<Option<(String, &str)>> {
    let Some(behind) = text.strip_prefix("[:") else {
        return Ok(None);
    };
    let Some((name, rest)) = behind.split_once(":]") else {
        return Ok(None);
    };
    let part = text.get(..text.len() - rest.len()).unwrap_or(text);
    match NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
        true => Ok(Some((part.to_owned(), rest))),
        false => Err(PatternError::new(INVALID, part)),
    }
}
