//! Values as error texts show them: quoted strings, numbers and JSON in the spelling of Go, which clients compare with.

use std::fmt::Write;

/// A string in double quotes, as Go's `%q` prints it.
pub fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            c if printable(c) => out.push(c),
            c => escape(c, &mut out),
        }
    }
    out.push('"');
    out
}

/// Cuts a text that is longer than `max` bytes between characters, and marks the place with `...`.
pub fn cut(text: &mut String, max: usize) {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        text.push_str("...");
        // What was cut may have been millions of bytes.
        text.shrink_to_fit();
    }
}

/// Whether Go takes the character for printable. `str::escape_debug` decides alike for any but the first character,
/// ASCII apart.
pub fn printable(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    let pair: String = ['a', c].iter().collect();
    pair.escape_debug().count() == 2
}

fn escape(c: char, out: &mut String) {
    let code = u32::from(c);
    // Writing to a String never fails.
    let _ = match code {
        0..=0x1f | 0x7f => write!(out, "\\x{code:02x}"),
        0x80..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// A JSON string as Go's encoder writes it: `<`, `>`, `&` and the two line separators are escaped.
pub fn json_string(s: &str, out: &mut String) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\0'..='\x1f' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A JSON list of strings.
pub fn json_list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = String::from("[");
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        json_string(item, &mut out);
    }
    out.push(']');
    out
}

/// A number as Go's `%v` and `%g` print a float, with the fewest digits: an exponent of at least two digits below 1e-4
/// and from 1e6 on.
pub fn float(v: f64) -> String {
    if v.is_nan() {
        return "NaN".to_owned();
    }
    if v.is_infinite() {
        return if v > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{v:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(e) if !(-4..6).contains(&e) => {
            format!("{digits}e{}{:02}", if e < 0 { '-' } else { '+' }, e.abs())
        }
        _ => v.to_string(),
    }
}

/// A number as Go's JSON encoder writes a float: shortest form, an exponent below 1e-6 and from 1e21 on. What JSON
/// cannot say is null.
pub fn json_float(v: f64) -> String {
    if !v.is_finite() {
        return "null".to_owned();
    }
    let magnitude = v.abs();
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        return format!("{v}");
    }
    let text = format!("{v:e}");
    if text.contains("e-") {
        text
    } else {
        text.replace('e', "e+")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        for (raw, quoted) in [
            ("plain", r#""plain""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("\x00\x07\x1b\x7f\n", r#""\x00\a\x1b\x7f\n""#),
            ("é世界", "\"é世界\""),
            ("e\u{301}", "\"e\u{301}\""),
            ("\u{a0}\u{200b}\u{85}", r#""\u00a0\u200b\u0085""#),
            ("\u{e0001}", r#""\U000e0001""#),
            ("it's", r#""it's""#),
        ] {
            assert_eq!(quote(raw), quoted);
        }
    }

    #[test]
    fn floats_print_as_go_prints_them() {
        for (v, text) in [
            (3.0, "3"),
            (0.5, "0.5"),
            (0.0, "0"),
            (123_456.0, "123456"),
            (1_234_567.5, "1.2345675e+06"),
            (1e20, "1e+20"),
            (1e21, "1e+21"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-1.5e300, "-1.5e+300"),
        ] {
            assert_eq!(float(v), text);
        }
    }

    #[test]
    fn json_floats_are_written_as_go_writes_them() {
        for (v, text) in [
            (5.0, "5"),
            (1e-5, "0.00001"),
            (1e-7, "1e-7"),
            (1.5e21, "1.5e+21"),
            (-0.0, "-0"),
        ] {
            assert_eq!(json_float(v), text);
        }
    }

    #[test]
    fn lists_are_json() {
        assert_eq!(json_list(["a", "<b>", "c\"\n"]), r#"["a","\u003cb\u003e","c\"\n"]"#);
        assert_eq!(json_list([]), "[]");
    }
}
