//! Plain scalars, by the rules of go-yaml 2.

/// The value of a scalar.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    /// What does not fit into 64 bits, signed or not, is a float.
    Int(i128),
    Float(f64),
    Str(&'a str),
}

/// The meaning of a scalar without quotes and tag.
pub(super) fn resolve(text: &str) -> Scalar<'_> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let number = match text.as_bytes()[0] {
        b'.' => float(text).map(Scalar::Float),
        b'0'..=b'9' | b'+' | b'-' if is_date(text) => None,
        b'0'..=b'9' | b'+' | b'-' => {
            let plain = text.replace('_', "");
            integer(&plain)
                .map(Scalar::Int)
                .or_else(|| float(&plain).map(Scalar::Float))
        }
        _ => None,
    };
    number.unwrap_or(Scalar::Str(text))
}

/// A whole number of 64 bits with the prefixes of Go: 0x, 0o, 0b, and 0 for octal.
fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let signed = digits.len() < text.len();
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let n = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let n = if negative { -n } else { n };
    // Only a number without a sign may be an unsigned one.
    let range = i128::from(i64::MIN)..=if signed {
        i128::from(i64::MAX)
    } else {
        i128::from(u64::MAX)
    };
    range.contains(&n).then_some(n)
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, within the range of a double.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
        None => (unsigned, "0"),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if !(digits(whole) && digits(fraction) && digits(exponent)) || exponent.is_empty() {
        return None;
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    text.parse().ok().filter(|n: &f64| n.is_finite())
}

/// Whether it is a date, which stays a string although it begins like a number. Only `2024-1-2` and such with a time
/// behind come here: nothing else with a dash in the fifth place is a number.
fn is_date(text: &str) -> bool {
    matches!(
        text.as_bytes(),
        [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'-', ..]
    )
}

/// Whether go-yaml takes it for a point in time: `2024-1-2`, with a time behind `T` or `t` and a zone, or behind a
/// space without one. It reads as a string, and is written with quotes.
pub(super) fn is_timestamp(text: &str) -> bool {
    if !text.is_ascii() || !is_date(text) {
        return false;
    }
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some((&text[at..at + 1], &text[at + 1..]))),
        None => (text, None),
    };
    let mut parts = date.splitn(3, '-');
    let [year, month, day] = [9999, 12, 31].map(|max| parts.next().and_then(|s| small(s, max)));
    let (Some(year), Some(month @ 1..), Some(day @ 1..)) = (year, month, day) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    day <= days
        && match time {
            None => true,
            Some((" ", time)) => is_clock(time),
            Some((_, time)) => match time.strip_suffix('Z') {
                Some(time) => is_clock(time),
                None => time
                    .len()
                    .checked_sub(6)
                    .is_some_and(|at| is_clock(&time[..at]) && is_offset(&time[at..])),
            },
        }
}

/// `15:4:5`, with a fraction perhaps.
fn is_clock(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = whole.split(':');
    let fits = [23, 59, 59]
        .into_iter()
        .all(|max| parts.next().is_some_and(|s| s.len() <= 2 && small(s, max).is_some()));
    fits && parts.next().is_none() && !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit())
}

/// `+07:00`.
fn is_offset(text: &str) -> bool {
    match text.as_bytes() {
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].iter().all(|b| b.is_ascii_digit()),
        _ => false,
    }
}

fn small(digits: &str, max: u32) -> Option<u32> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|n| plain && *n <= max)
}

/// Numbers of base 60 (`1:30`), which other parsers know: they are written with quotes.
pub(super) fn is_base_60(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = digits.split(':');
    let first = parts.next().unwrap_or_default();
    let mut rest: Vec<&str> = parts.collect();
    let Some(last) = rest.pop() else { return false };
    let last = match last.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|b| b.is_ascii_digit() || b == b'_') => whole,
        Some(_) => return false,
        None => last,
    };
    let sixty = |s: &str| matches!(s.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    first.starts_with(|c: char| c.is_ascii_digit())
        && first.bytes().all(|b| b.is_ascii_digit() || b == b'_')
        && rest.iter().all(|s| sixty(s))
        && sixty(last)
}
