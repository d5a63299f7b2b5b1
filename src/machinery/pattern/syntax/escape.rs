//! Escapes: characters by their numbers, and classes of them.

use super::PatternError;
use super::Result;

/// What an escape means.
pub(super) enum Escape {
    /// `None`: a number that is no character by itself.
    Char(Option<char>),
    /// What stands between the brackets of a class.
    Class(String),
}

/// Reads the escape that a text begins with; returns what follows too.
pub(super) fn escape(text: &str) -> Result<(Escape, &str)> {
    let behind = text.get(1..).unwrap_or_default();
    let Some(c) = behind.chars().next() else {
        return Err(PatternError::new("trailing backslash at end of expression", ""));
    };
    let rest = behind.get(c.len_utf8()..).unwrap_or_default();
    if let Some(class) = named(c) {
        return Ok((Escape::Class(class.to_owned()), rest));
    }
    let one = |c: char| Ok((Escape::Char(Some(c)), rest));
    match c {
        'p' | 'P' => unicode(text, c == 'P'),
        '0' => Ok(octal(behind)),
        '1'..='7' if rest.starts_with(|c| matches!(c, '0'..='7')) => Ok(octal(behind)),
        'x' => hexadecimal(text, rest),
        'a' => one('\x07'),
        'f' => one('\x0c'),
        'n' => one('\n'),
        'r' => one('\r'),
        't' => one('\t'),
        'v' => one('\x0b'),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => one(c),
        _ => Err(invalid(text, rest)),
    }
}

fn invalid(text: &str, rest: &str) -> PatternError {
    let part = text.get(..text.len() - rest.len()).unwrap_or(text);
    PatternError::new("invalid escape sequence", part)
}

/// Classes of ASCII.
fn named(c: char) -> Option<&'static str> {
    Some(match c {
        'd' => "0-9",
        'D' => "[^0-9]",
        's' => r"\t\n\f\r\x20",
        'S' => r"[^\t\n\f\r\x20]",
        'w' => "0-9A-Za-z_",
        'W' => "[^0-9A-Za-z_]",
        _ => return None,
    })
}

/// Up to three digits.
fn octal(text: &str) -> (Escape, &str) {
    let digits = text.bytes().take(3).take_while(|b| matches!(b, b'0'..=b'7')).count();
    let (digits, rest) = text.split_at(digits);
    let number = u32::from_str_radix(digits, 8).unwrap_or_default();
    (Escape::Char(char::from_u32(number)), rest)
}

/// Two digits, or any number of them in braces.
fn hexadecimal<'a>(text: &'a str, digits: &'a str) -> Result<(Escape, &'a str)> {
    let read = |digits: &str| {
        u32::from_str_radix(digits, 16)
            .ok()
            .filter(|n| *n <= u32::from(char::MAX))
    };
    let Some(braced) = digits.strip_prefix('{') else {
        let mut chars = digits.chars();
        let (Some(_), Some(_)) = (chars.next(), chars.next()) else {
            return Err(invalid(text, ""));
        };
        let rest = chars.as_str();
        let both = digits.get(..digits.len() - rest.len()).unwrap_or_default();
        let good = both.bytes().all(|b| b.is_ascii_hexdigit());
        return match read(both).filter(|_| good) {
            Some(number) => Ok((Escape::Char(char::from_u32(number)), rest)),
            None => Err(invalid(text, rest)),
        };
    };
    let mut number = 0;
    for (at, c) in braced.char_indices() {
        let rest = braced.get(at + c.len_utf8()..).unwrap_or_default();
        match c.to_digit(16) {
            Some(digit) if number * 16 + digit <= u32::from(char::MAX) => number = number * 16 + digit,
            None if c == '}' && at > 0 => return Ok((Escape::Char(char::from_u32(number)), rest)),
            _ => return Err(invalid(text, rest)),
        }
    }
    Err(invalid(text, ""))
}

/// A category or script.
fn unicode(text: &str, negated: bool) -> Result<(Escape, &str)> {
    const CODE: &str = "invalid character class range";
    let behind = text.get(2..).unwrap_or_default();
    let (part, rest) = match behind.chars().next() {
        None => (text, ""),
        Some('{') => match text.find('}') {
            Some(end) => text.split_at(end + 1),
            None => return Err(PatternError::new(CODE, text)),
        },
        Some(c) => text.split_at(2 + c.len_utf8()),
    };
    let name = part
        .get(2..)
        .unwrap_or_default()
        .trim_start_matches('{')
        .trim_end_matches('}');
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, !negated),
        None => (name, negated),
    };
    let plain: String = name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).collect();
    let known = match plain.to_ascii_lowercase().as_str() {
        "any" => Some(r"\x00-\x{10FFFF}".to_owned()),
        "ascii" => Some(r"\x00-\x7F".to_owned()),
        "assigned" => Some(r"\P{gc=Cn}".to_owned()),
        // Halves of characters: no text has one.
        "cs" | "surrogate" => Some(r"[^\x00-\x{10FFFF}]".to_owned()),
        plain if !plain.is_empty() && plain.bytes().all(|b| b.is_ascii_alphanumeric()) => ["gc", "sc"]
            .map(|kind| format!(r"\p{{{kind}={plain}}}"))
            .into_iter()
            .find(|class| regex::Regex::new(class).is_ok()),
        _ => None,
    };
    match known {
        Some(class) if negated => Ok((Escape::Class(format!("[^{class}]")), rest)),
        Some(class) => Ok((Escape::Class(class), rest)),
        None => Err(PatternError::new(CODE, part)),
    }
}
