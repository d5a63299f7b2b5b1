//! Styles of strings: go-yaml's choice.

use super::scalar::{Scalar, is_base_60, is_timestamp, resolve};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// What may not be done with a text.
#[derive(Default)]
struct Limits {
    plain: bool,
    single: bool,
    literal: bool,
    multiline: bool,
}

/// The notation of a string; a `key` stands on one line.
pub(super) fn style(text: &str, key: bool) -> Style {
    if text.is_empty() {
        return Style::Double;
    }
    let limits = limits(text);
    let wanted = if text.contains('\n') {
        Style::Literal
    } else if matches!(resolve(text), Scalar::Str(_)) && !is_base_60(text) && !is_timestamp(text) {
        Style::Plain
    } else {
        Style::Double
    };
    match wanted {
        Style::Plain if !limits.plain => Style::Plain,
        Style::Plain if !limits.single => Style::Single,
        Style::Literal if !limits.literal && !key => Style::Literal,
        _ => Style::Double,
    }
}

/// Whether the text has a line break in any form.
pub(super) fn is_multiline(text: &str) -> bool {
    text.chars().any(is_break)
}

fn limits(text: &str) -> Limits {
    let mut limits = Limits {
        multiline: is_multiline(text),
        ..Limits::default()
    };
    let (mut break_space, mut space_break, mut special) = (false, false, false);
    let mut indicators = text.starts_with("---") || text.starts_with("...");
    let (mut before, mut first) = (None, true);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let blank_after = chars.peek().is_none_or(|&n| matches!(n, ' ' | '\t'));
        let blank_before = before.is_none_or(|b: char| matches!(b, ' ' | '\t') || is_break(b));
        indicators |= match c {
            '#' if !first => blank_before,
            ':' => blank_after,
            '?' | '-' if first => blank_after,
            '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => first,
            _ => false,
        };
        special |= !is_printable(c);
        break_space |= c == ' ' && before.is_some_and(is_break);
        space_break |= is_break(c) && before == Some(' ');
        (before, first) = (Some(c), false);
    }
    let edge = |c: Option<char>| c.is_some_and(|c| c == ' ' || is_break(c));
    let edges = edge(text.chars().next()) || edge(before);
    limits.single = break_space || space_break || special;
    limits.literal = before == Some(' ') || space_break || special;
    limits.plain = edges || limits.single || limits.multiline || indicators;
    limits
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What go-yaml shows as it is. Not tabs, and nothing beyond 16 bits.
pub(super) fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{fffd}') && c != '\u{feff}'
}
