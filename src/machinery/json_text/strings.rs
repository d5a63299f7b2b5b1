//! Strings and numbers of JSON text: escapes as Go's encoder writes them, any valid escape when reading.

use std::borrow::Cow;

use super::swar;

/// What Go's decoder calls the type of a JSON value.
pub(crate) fn kind_name(json: &[u8]) -> &'static str {
    match json.first() {
        Some(b'"') => "string",
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b't' | b'f') => "bool",
        Some(b'n') => "null",
        _ => "number",
    }
}

/// What Go's decoder calls the type of a JSON value that is read already.
pub fn kind_of(value: &serde_json::Value) -> &'static str {
    use serde_json::Value;
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Bytes that Go's encoder escapes: control characters, quote, backslash, `<`, `>`, `&`; and 0xE2, which begins the
/// line separators U+2028 and U+2029.
const NEEDS_CARE: [bool; 256] = {
    let mut table = [false; 256];
    let mut i = 0;
    while i < 0x20 {
        table[i] = true;
        i += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[b'<' as usize] = true;
    table[b'>' as usize] = true;
    table[b'&' as usize] = true;
    table[0xE2] = true;
    table
};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `text` as a JSON string with Go's escapes.
#[inline]
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 3);
    out.push(b'"');
    let bytes = text.as_bytes();
    if needs_care(bytes) {
        write_careful(bytes, true, out);
    } else {
        out.extend_from_slice(bytes);
    }
    out.push(b'"');
}

/// Whether one of the bytes is in [`NEEDS_CARE`].
#[inline]
fn needs_care(bytes: &[u8]) -> bool {
    let (blocks, rest) = bytes.as_chunks();
    let (chunks, rest) = rest.as_chunks::<8>();
    !blocks.iter().all(swar::is_plain_to_go)
        || chunks
            .iter()
            .any(|chunk| swar::escaped_by_go(u64::from_le_bytes(*chunk)) != 0)
        || rest.iter().any(|&b| NEEDS_CARE[usize::from(b)])
}

/// Appends what is JSON already (a string with its quotes), escaping only what Go's encoder escapes beside.
pub(crate) fn write_escaped(json: &[u8], out: &mut Vec<u8>) {
    write_careful(json, false, out);
}

/// `raw`: quotes, backslashes and control characters are text and need escapes.
fn write_careful(bytes: &[u8], raw: bool, out: &mut Vec<u8>) {
    let mut start = 0;
    for (i, &b) in bytes.iter().enumerate() {
        if !NEEDS_CARE[b as usize] || (!raw && !matches!(b, b'<' | b'>' | b'&' | 0xE2)) {
            continue;
        }
        let used = match (b, bytes.get(i + 1..i + 3)) {
            // U+2028 and U+2029 are E2 80 A8 and E2 80 A9.
            (0xE2, Some([0x80, 0xA8 | 0xA9])) => 3,
            (0xE2, _) => continue,
            _ => 1,
        };
        out.extend_from_slice(&bytes[start..i]);
        match bytes.get(i + 2) {
            Some(0xA8) if used == 3 => out.extend_from_slice(b"\\u2028"),
            Some(_) if used == 3 => out.extend_from_slice(b"\\u2029"),
            _ => write_escape(b, out),
        }
        start = i + used;
    }
    out.extend_from_slice(&bytes[start..]);
}

fn write_escape(b: u8, out: &mut Vec<u8>) {
    let short = match b {
        b'"' | b'\\' => b,
        0x08 => b'b',
        0x0C => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(b >> 4)]);
            out.push(HEX[usize::from(b & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Text from bytes. As in Go, every single byte that is not part of a character becomes U+FFFD; Rust's own conversion
/// makes one of several that begin a character.
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(out)
}

/// The text of a JSON string, given what stands between its quotes. Invalid UTF-8 and lone surrogates become U+FFFD, as
/// in Go. `None` if an escape is malformed.
pub(crate) fn unescape(inner: &[u8]) -> Option<Cow<'_, str>> {
    if !inner.contains(&b'\\') {
        return Some(lossy(inner));
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = &*lossy(inner);
    while let Some(at) = rest.bytes().position(|b| b == b'\\') {
        let (plain, escape) = rest.split_at(at);
        out.push_str(plain);
        let (c, used) = read_escape(escape.as_bytes())?;
        out.push(c);
        rest = escape.get(used..)?;
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

/// The character of the escape that `text` begins with, and its length.
fn read_escape(text: &[u8]) -> Option<(char, usize)> {
    let c = match text.get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return read_unicode(text),
        _ => return None,
    };
    Some((c, 2))
}

fn read_unicode(text: &[u8]) -> Option<(char, usize)> {
    let high = hex4(text.get(2..6)?)?;
    if let Some(c) = char::from_u32(high) {
        return Some((c, 6));
    }
    let low = match text.get(6..12) {
        Some([b'\\', b'u', digits @ ..]) => hex4(digits),
        _ => None,
    };
    match low {
        Some(low) if high < 0xDC00 && (0xDC00..0xE000).contains(&low) => {
            let c = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            Some((char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER), 12))
        }
        _ => Some((char::REPLACEMENT_CHARACTER, 6)),
    }
}

fn hex4(digits: &[u8]) -> Option<u32> {
    digits
        .iter()
        .try_fold(0, |n, &d| Some(n * 16 + char::from(d).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_as_go_does() {
        let mut out = Vec::new();
        write_string(
            "a\"\\<>&\u{8}\u{c}\n\r\t\u{1}\u{7f}\u{2028}\u{2029}\u{2030}é😀",
            &mut out,
        );
        let want = "\"a\\\"\\\\\\u003c\\u003e\\u0026\\b\\f\\n\\r\\t\\u0001\u{7f}\\u2028\\u2029\u{2030}é😀\"";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn reads_every_escape() {
        let cases: &[(&[u8], Option<&str>)] = &[
            (b"plain", Some("plain")),
            (br#"\"\\\/\b\f\n\r\t"#, Some("\"\\/\u{8}\u{c}\n\r\t")),
            (br"\u0041\u00e9\ud83d\ude00", Some("Aé😀")),
            (br"\ud83dx", Some("\u{fffd}x")),
            (br"\ude00\u0041", Some("\u{fffd}A")),
            (b"\xff\\n", Some("\u{fffd}\n")),
            (
                b"x\xe2\x82z\xed\xa0\x80",
                Some("x\u{fffd}\u{fffd}z\u{fffd}\u{fffd}\u{fffd}"),
            ),
            (br"\x", None),
            (br"\u12", None),
            (br"\", None),
        ];
        for (input, want) in cases {
            assert_eq!(unescape(input).as_deref(), *want, "{}", String::from_utf8_lossy(input));
        }
    }
}
