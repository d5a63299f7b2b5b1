//! Syntax of JSON: a check of a whole text, with the error texts of the API, and a cheap walk over checked text.

use std::borrow::Cow;

use super::MAX_DEPTH;
use crate::field::text::quote;

/// Checks that `text` is one JSON value of bounded depth. The error is a text for the caller.
pub(super) fn check(text: &[u8]) -> Result<(), String> {
    let mut scanner = Scanner { text, at: 0 };
    // One entry per open object (true) or array (false).
    let mut open: Vec<bool> = Vec::new();
    loop {
        if scanner.open_value(&mut open)? {
            continue;
        }
        // A value has ended; close what ends with it.
        loop {
            let Some(&object) = open.last() else {
                return scanner.end();
            };
            match (scanner.peek(), object) {
                (Some(b','), true) => {
                    scanner.at += 1;
                    scanner.key()?;
                }
                (Some(b','), false) => scanner.at += 1,
                (Some(b'}'), true) | (Some(b']'), false) => {
                    scanner.at += 1;
                    open.pop();
                    continue;
                }
                (_, true) => return scanner.fail("after object key:value pair"),
                (_, false) => return scanner.fail("after array element"),
            }
            break;
        }
    }
}

/// How the contexts start in which no space may stand.
const SPACE_FAILS: [&str; 6] = [
    "in numeric",
    "after decimal",
    "in exponent",
    "in literal",
    "in \\u hexadecimal",
    "in string escape",
];

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    /// The next byte that is no white space, left in place.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.text.get(self.at) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn fail<T>(&self, context: &str) -> Result<T, String> {
        match self.text.get(self.at) {
            // The API reads a space after the end, which is wrong only inside of a number, a word or an escape.
            None if SPACE_FAILS.iter().any(|start| context.starts_with(start)) => {
                Err(format!("invalid character ' ' {context}"))
            }
            None => Err("unexpected end of JSON input".to_owned()),
            Some(b'\'') => Err(format!(r"invalid character '\'' {context}")),
            Some(b'"') => Err(format!("invalid character '\"' {context}")),
            Some(&b) => {
                // A byte that is not ASCII is shown as the character of that code.
                let quoted = quote(&char::from(b).to_string());
                Err(format!("invalid character '{}' {context}", quoted.trim_matches('"')))
            }
        }
    }

    /// Reads a scalar, an empty object or array (false), or opens a filled one up to its first value (true).
    fn open_value(&mut self, open: &mut Vec<bool>) -> Result<bool, String> {
        let first = self.peek();
        match first {
            Some(b @ (b'{' | b'[')) => {
                if open.len() >= MAX_DEPTH {
                    return self.fail("exceeded max depth");
                }
                self.at += 1;
                let object = b == b'{';
                if self.peek() == Some(if object { b'}' } else { b']' }) {
                    self.at += 1;
                    return Ok(false);
                }
                open.push(object);
                if object {
                    self.key()?;
                }
                return Ok(true);
            }
            Some(b'"') => self.string()?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.literal("true")?,
            Some(b'f') => self.literal("false")?,
            Some(b'n') => self.literal("null")?,
            _ => return self.fail("looking for beginning of value"),
        }
        Ok(false)
    }

    fn key(&mut self) -> Result<(), String> {
        if self.peek() != Some(b'"') {
            return self.fail("looking for beginning of object key string");
        }
        self.string()?;
        if self.peek() != Some(b':') {
            return self.fail("after object key");
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            match self.text.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                None | Some(0..=0x1f) => return self.fail("in string literal"),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        match self.text.get(self.at) {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
            Some(b'u') => {
                for _ in 0..4 {
                    self.at += 1;
                    if !self.text.get(self.at).is_some_and(u8::is_ascii_hexdigit) {
                        return self.fail("in \\u hexadecimal character escape");
                    }
                }
                self.at += 1;
            }
            _ => return self.fail("in string escape code"),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        if self.text.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match self.text.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return self.fail("in numeric literal"),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self, context: &str) -> Result<(), String> {
        if !self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            return self.fail(context);
        }
        self.digits();
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes() {
            if self.text.get(self.at) != Some(&expected) {
                return self.fail(&format!("in literal {word} (expecting '{}')", char::from(expected)));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.fail("after top-level value"),
        }
    }
}

/// Without the white space around it.
pub(super) fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// The members of an object in checked text, keys decoded, in the order of the text.
pub(super) fn members<'a>(object: &'a [u8]) -> Vec<(Cow<'a, str>, &'a [u8])> {
    let mut out = Vec::new();
    let mut rest = trim(object).get(1..).unwrap_or_default().trim_ascii_start();
    while rest.first() == Some(&b'"') {
        let (key, after) = rest.split_at(value_end(rest));
        let value = after.trim_ascii_start().get(1..).unwrap_or_default().trim_ascii_start();
        let (value, after) = value.split_at(value_end(value));
        out.push((string(key), value));
        rest = after.trim_ascii_start().get(1..).unwrap_or_default().trim_ascii_start();
    }
    out
}

/// The elements of an array in checked text.
pub(super) fn elements(array: &[u8]) -> Vec<&[u8]> {
    let mut out = Vec::new();
    let mut rest = trim(array).get(1..).unwrap_or_default().trim_ascii_start();
    while !rest.is_empty() && rest.first() != Some(&b']') {
        let (value, after) = rest.split_at(value_end(rest));
        out.push(value);
        rest = after.trim_ascii_start().get(1..).unwrap_or_default().trim_ascii_start();
    }
    out
}

/// Length of the value at the start of checked text.
fn value_end(text: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(&b) = text.get(at) {
        match b {
            b'"' => {
                at = string_end(text, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// The place after the string that starts at `start`.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&b) = text.get(at) {
        match b {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// A JSON string, decoded. What is no UTF-8 and halves of surrogate pairs become U+FFFD.
pub(super) fn string(quoted: &[u8]) -> Cow<'_, str> {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    if !inner.contains(&b'\\') {
        return String::from_utf8_lossy(inner);
    }
    let mut units: Vec<u8> = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((&b, after)) = rest.split_first() {
        rest = after;
        if b != b'\\' {
            units.push(b);
            continue;
        }
        let Some((&kind, after)) = rest.split_first() else {
            break;
        };
        rest = after;
        let decoded = match kind {
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let (c, used) = unicode(rest);
                rest = rest.get(used..).unwrap_or_default();
                c
            }
            other => char::from(other),
        };
        units.extend_from_slice(decoded.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Cow::Owned(String::from_utf8_lossy(&units).into_owned())
}

/// The character of `XXXX` or `XXXX\uXXXX` at the start of `text`, and how many bytes it takes.
fn unicode(text: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let digits = std::str::from_utf8(text.get(at..at + 4)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let Some(first) = unit(0) else {
        return (char::REPLACEMENT_CHARACTER, 4);
    };
    if let Some(c) = char::from_u32(first) {
        return (c, 4);
    }
    let second = if text.get(4..6) == Some(b"\\u") { unit(6) } else { None };
    match (first, second) {
        (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => {
            let code = 0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 10)
        }
        _ => (char::REPLACEMENT_CHARACTER, 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_json_is_named_as_the_api_names_it() {
        for (text, error) in [
            ("", "unexpected end of JSON input"),
            ("  ", "unexpected end of JSON input"),
            ("[", "unexpected end of JSON input"),
            ("{\"a\"", "unexpected end of JSON input"),
            ("\"abc", "unexpected end of JSON input"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            (
                "{,}",
                "invalid character ',' looking for beginning of object key string",
            ),
            (
                "{\"a\":1,}",
                "invalid character '}' looking for beginning of object key string",
            ),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 2}", "invalid character '2' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1}", "invalid character '}' after array element"),
            ("1 x", "invalid character 'x' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.", "invalid character ' ' after decimal point in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("trve", "invalid character 'v' in literal true (expecting 'u')"),
            ("nul", "invalid character ' ' in literal null (expecting 'l')"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            (
                "\"\\u12g4\"",
                "invalid character 'g' in \\u hexadecimal character escape",
            ),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            ("'a'", "invalid character '\\'' looking for beginning of value"),
            ("[1\"", "invalid character '\"' after array element"),
            ("\u{e9}", "invalid character 'Ã' looking for beginning of value"),
        ] {
            assert_eq!(check(text.as_bytes()), Err(error.to_owned()), "{text}");
        }
        for text in [
            "{}",
            "[]",
            " [1, {\"a\": [ ] , \"b\":{}} , -0.5e+3, \"\\u00e9\\n\", null,true,false] ",
        ] {
            assert_eq!(check(text.as_bytes()), Ok(()), "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert_eq!(check(deep(MAX_DEPTH).as_bytes()), Ok(()));
        assert_eq!(
            check(deep(MAX_DEPTH + 1).as_bytes()),
            Err("invalid character '[' exceeded max depth".to_owned())
        );
    }

    #[test]
    fn members_and_elements_are_the_text_of_their_values() {
        let object = br#" { "a" : [1, "x]"] , "b\u00e9\n" :{"c":"}"}, "d": 1.50 , "e":""} "#;
        let got: Vec<(String, &str)> = members(object)
            .into_iter()
            .map(|(k, v)| (k.into_owned(), std::str::from_utf8(v).unwrap()))
            .collect();
        let expected = [
            ("a", r#"[1, "x]"]"#),
            ("b\u{e9}\n", r#"{"c":"}"}"#),
            ("d", "1.50"),
            ("e", r#""""#),
        ];
        assert_eq!(got, expected.map(|(k, v)| (k.to_owned(), v)));
        assert_eq!(elements(b"[ 1 , [2,3],{} ]"), [&b"1"[..], b"[2,3]", b"{}"]);
        assert!(elements(b"[ ]").is_empty());
        assert!(members(b"{ }").is_empty());
    }

    #[test]
    fn strings_are_decoded() {
        for (quoted, text) in [
            (r#""a\"\\\/\b\f\n\r\t""#, "a\"\\/\x08\x0c\n\r\t"),
            (r#""\u00e9\ud83d\ude00""#, "\u{e9}\u{1f600}"),
            (r#""\ud83dx\udc00""#, "\u{fffd}x\u{fffd}"),
        ] {
            assert_eq!(string(quoted.as_bytes()), text);
        }
    }
}
