//! Named formats of strings, as the registry of formats that kube-apiserver validates with knows them.

mod email;
mod uri;

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::pattern;
use crate::reflect::time::{Duration, Time};

/// Whether the text is of the format, whose name may have dashes anywhere; `None`: there is no such format.
pub(crate) fn fits(format: &str, text: &str) -> Option<bool> {
    let check = checker(&format.replace('-', ""))?;
    Some(check(text))
}

/// Whether there is such a format.
pub(crate) fn is_known(format: &str) -> bool {
    checker(&format.replace('-', "")).is_some()
}

fn checker(name: &str) -> Option<fn(&str) -> bool> {
    Some(match name {
        "bsonobjectid" => |text| text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "uri" => uri::is_request_uri,
        "email" => email::is_address,
        "hostname" => is_hostname,
        "ipv4" => |text| text.contains('.') && sloppy_address(text).is_some(),
        "ipv6" => |text| text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr,
        "mac" => is_mac,
        "uuid" => |text| is_uuid(text, None, false),
        "uuid3" => |text| is_uuid(text, Some(b'3'), false),
        "uuid4" => |text| is_uuid(text, Some(b'4'), true),
        "uuid5" => |text| is_uuid(text, Some(b'5'), true),
        "isbn" => |text| is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_credit_card,
        "ssn" => |text| text.len() == 11 && matches(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$", text),
        "hexcolor" => |text| matches("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$", text),
        "rgbcolor" => is_rgb_color,
        "byte" => |text| {
            matches(
                "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$",
                text,
            )
        },
        "password" => |_| true,
        "date" => is_date,
        "datetime" => is_date_time,
        "duration" => is_duration,
        "k8sshortname" => |text| text.len() <= 63 && is_short_name(text),
        "k8slongname" => |text| text.len() <= 253 && text.split('.').all(is_short_name),
        _ => return None,
    })
}

/// The patterns of this file are all good.
fn matches(pattern: &str, text: &str) -> bool {
    pattern::compiled(pattern).is_ok_and(|regex| regex.is_match(text))
}

fn is_short_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|b| b.is_some_and(|b| plain(*b))) && bytes.iter().all(|b| plain(*b) || *b == b'-')
}

/// Letters of any script and symbols count. A single label may have one dash, behind its first character; of several
/// the last has letters alone.
fn is_hostname(text: &str) -> bool {
    if text.len() > 255 || text.split('.').any(|label| label.len() > 63) {
        return false;
    }
    let plain = |text: &str| matches(r"^[a-zA-Z0-9\p{S}\p{L}]*$", text);
    let Some((labels, last)) = text.rsplit_once('.') else {
        let Some(first) = text.chars().next() else { return false };
        let (first, rest) = text.split_at(first.len_utf8());
        return plain(first) && plain(rest.strip_prefix('-').unwrap_or(rest));
    };
    let is_label = |label: &str| {
        let ends = !label.is_empty() && !label.starts_with('-') && !label.ends_with('-');
        ends && plain(&label.replace('-', ""))
    };
    labels.split('.').all(is_label) && last.chars().count() > 1 && matches(r"^[a-zA-Z\p{L}]*$", last)
}

/// An address; numbers of IPv4 may have leading zeros.
fn sloppy_address(text: &str) -> Option<Bits> {
    if !text.contains(':') {
        let numbers: Vec<&str> = text.split('.').collect();
        return (numbers.len() == 4 && numbers.iter().all(|n| is_octet(n))).then_some(Bits::Four);
    }
    let (head, tail) = text.rsplit_once(':')?;
    if !tail.contains('.') {
        return text.parse::<Ipv6Addr>().ok().map(|_| Bits::Six);
    }
    // The IPv4 part may have leading zeros too.
    let numbers: Option<Vec<u8>> = tail.split('.').map(octet).collect();
    let [a, b, c, d] = numbers?.try_into().ok()?;
    let plain = format!("{head}:{}", Ipv4Addr::new(a, b, c, d));
    plain.parse::<Ipv6Addr>().ok().map(|_| Bits::Six)
}

/// How many bits an address has.
#[derive(Clone, Copy)]
enum Bits {
    Four = 32,
    Six = 128,
}

fn octet(text: &str) -> Option<u8> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let significant = text.trim_start_matches('0');
    match (digits, significant) {
        (false, _) => None,
        (true, "") => Some(0),
        (true, significant) => significant.parse().ok(),
    }
}

fn is_octet(text: &str) -> bool {
    octet(text).is_some()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, mask)) = text.split_once('/') else {
        return false;
    };
    let Some(bits) = sloppy_address(address) else {
        return false;
    };
    let digits = !mask.is_empty() && mask.bytes().all(|b| b.is_ascii_digit());
    let significant = mask.trim_start_matches('0');
    digits && (significant.is_empty() || significant.parse::<u32>().is_ok_and(|n| n <= bits as u32))
}

/// Six, eight or twenty bytes, in pairs of digits, in fours, or without anything between them.
fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (digits, groups): (usize, Vec<&str>) = match (bytes.get(2), bytes.get(4)) {
        (Some(b':'), _) => (2, text.split(':').collect()),
        (Some(b'-'), _) => (2, text.split('-').collect()),
        (_, Some(b'.')) => (4, text.split('.').collect()),
        _ => (text.len(), vec![text]),
    };
    let hex = |group: &&str| group.len() == digits && group.bytes().all(|b| b.is_ascii_hexdigit());
    matches!(groups.len() * digits, 12 | 16 | 40) && groups.iter().all(hex)
}

/// Hexadecimal digits in groups of 8-4-4-4-12, with dashes between them or not; the version, and the variant of RFC
/// 4122.
fn is_uuid(text: &str, version: Option<u8>, variant: bool) -> bool {
    let mut digits = Vec::with_capacity(32);
    let mut rest = text.as_bytes();
    for (group, len) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if let (1.., [b'-', after @ ..]) = (group, rest) {
            rest = after;
        }
        let Some((group, after)) = rest.split_at_checked(len) else {
            return false;
        };
        digits.extend(group.iter().map(u8::to_ascii_lowercase));
        rest = after;
    }
    rest.is_empty()
        && digits.iter().all(u8::is_ascii_hexdigit)
        && version.is_none_or(|version| digits.get(12) == Some(&version))
        && (!variant || matches!(digits.get(16), Some(b'8' | b'9' | b'a' | b'b')))
}

/// Without white space and dashes.
fn isbn_digits(text: &str) -> Vec<u8> {
    let kept = |b: &u8| !matches!(b, b'\t' | b'\n' | 0x0c | b'\r' | b' ' | b'-');
    text.bytes().filter(kept).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let [first @ .., last] = digits.as_slice() else {
        return false;
    };
    if first.len() != 9 || !first.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match last {
        b'X' => 10,
        b if b.is_ascii_digit() => u32::from(b - b'0'),
        _ => return false,
    };
    let weighted = first.iter().zip(1u32..).map(|(b, weight)| weight * u32::from(b - b'0'));
    (weighted.sum::<u32>() + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    let weighted = digits.iter().zip([1u32, 3].into_iter().cycle());
    digits.len() == 13
        && digits.iter().all(u8::is_ascii_digit)
        && weighted
            .map(|(b, weight)| weight * u32::from(b - b'0'))
            .sum::<u32>()
            .is_multiple_of(10)
}

/// The digits of a card of a known issuer, with a sum by Luhn's rule.
fn is_credit_card(text: &str) -> bool {
    const PATTERN: &str = r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$";
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !matches(PATTERN, &digits) {
        return false;
    }
    let doubled = digits.bytes().rev().enumerate().map(|(place, b)| {
        let digit = u32::from(b - b'0');
        match place % 2 {
            0 => digit,
            _ => digit * 2 / 10 + digit * 2 % 10,
        }
    });
    doubled.sum::<u32>().is_multiple_of(10)
}

fn is_rgb_color(text: &str) -> bool {
    const NUMBER: &str = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*";
    matches(&format!(r"^rgb\({NUMBER},{NUMBER},{NUMBER}\)$"), text)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && Time::parse(&format!("{text}T00:00:00Z")).is_ok()
}

/// A date, `t`, a time of day and a zone; behind another `t` anything may stand.
fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let clock = |from: usize, most: &str| time.get(from..from + 2).is_some_and(|digits| digits <= most);
    is_date(date)
        && matches(
            r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$",
            time,
        )
        && clock(0, "23")
        && clock(3, "59")
        && clock(6, "59")
}

/// As Go writes durations, or numbers with units somewhere in the text: `3 days`.
fn is_duration(text: &str) -> bool {
    if Duration::parse(text).is_ok() {
        return true;
    }
    let Ok(regex) = pattern::compiled(r"(\d+)\s*([A-Za-zµ]+)") else {
        return false;
    };
    let mut found = false;
    for captures in regex.captures_iter(text) {
        let (Some(number), Some(unit)) = (captures.get(1), captures.get(2)) else {
            continue;
        };
        if number.as_str().parse::<i64>().is_err() {
            return false;
        }
        found |= is_unit(&unit.as_str().to_lowercase());
    }
    found
}

/// Short names of units are whole; long ones may go on (`minutes`).
fn is_unit(unit: &str) -> bool {
    let whole = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    let begun = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    whole.contains(&unit) || begun.iter().any(|begin| unit.starts_with(begin))
}

#[cfg(test)]
mod tests;
