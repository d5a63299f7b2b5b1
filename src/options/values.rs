//! Values of flags, read as Go's flag package reads them, with its error texts.

use std::net::IpAddr;

use keelson_machinery::time::Duration;

/// A boolean in any of the spellings that Go's `strconv.ParseBool` takes.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("strconv.ParseBool: parsing {text:?}: invalid syntax")),
    }
}

/// A decimal, `0x`, `0o` or `0b` integer.
pub fn integer(text: &str) -> Result<i64, String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        _ if lower.len() > 1 && lower.starts_with('0') => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    let fail = |what| format!("strconv.ParseInt: parsing {text:?}: {what}");
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(fail("invalid syntax"));
    }
    i64::from_str_radix(digits, radix)
        .map(|n| sign * n)
        .map_err(|_| fail("value out of range"))
}

/// A decimal number with or without a fraction.
pub fn float(text: &str) -> Result<f64, String> {
    text.parse()
        .map_err(|_| format!("strconv.ParseFloat: parsing {text:?}: invalid syntax"))
}

/// A span of time as Go writes it: `1m30s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    Duration::parse(text)
}

/// An IPv4 or IPv6 address.
pub fn ip(text: &str) -> Result<IpAddr, String> {
    text.trim().parse().map_err(|_| format!("failed to parse IP: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_those_of_go() {
        for (text, want) in [
            ("true", Some(true)),
            ("T", Some(true)),
            ("0", Some(false)),
            ("yes", None),
            ("", None),
        ] {
            assert_eq!(boolean(text).ok(), want, "{text:?}");
        }
        assert_eq!(
            boolean("x").unwrap_err(),
            r#"strconv.ParseBool: parsing "x": invalid syntax"#
        );
    }

    #[test]
    fn integers_are_those_of_go() {
        for (text, want) in [
            ("6443", Some(6443)),
            ("-1", Some(-1)),
            ("0x10", Some(16)),
            ("010", Some(8)),
            ("1.0", None),
            ("", None),
        ] {
            assert_eq!(integer(text).ok(), want, "{text:?}");
        }
        assert_eq!(
            integer("99999999999999999999").unwrap_err(),
            r#"strconv.ParseInt: parsing "99999999999999999999": value out of range"#
        );
    }
}
