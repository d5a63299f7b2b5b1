//! Formats and patterns of strings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Unit, labels, names, strfmt};
use crate::field::text::quote;
use crate::field::{ErrorType, FieldError, Path};
use crate::pattern;

/// Checks a string against a format. Unknown formats allow everything: a definition may publish any. The path is made
/// only where something is wrong.
pub(super) fn check(format: &str, value: &str, path: impl Fn() -> Path) -> Vec<FieldError> {
    let named = |texts: Vec<String>| {
        let faults = texts.into_iter().map(|text| FieldError::invalid(&path(), value, text));
        faults.collect()
    };
    let fits = match format {
        "dns-label" | "k8s-short-name" => return named(names::label_in(value, Unit::Bytes)),
        "dns-subdomain" | "k8s-long-name" => return named(names::subdomain_in(value, Unit::Bytes)),
        "dns-1035-label" => return named(names::dns_1035_label(value)),
        "path-segment" | "k8s-path-segment-name" => return named(names::path_segment(value)),
        "qualified-name" | "label-key" | "k8s-label-key" => return named(labels::qualified_name(value)),
        "label-value" | "k8s-label-value" => return named(labels::label_value(value)),
        "k8s-ip" if value.parse::<IpAddr>().is_err() => {
            return named(vec![
                "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned(),
            ]);
        }
        "k8s-cidr" if !cidr(value) => {
            return named(vec![
                "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned(),
            ]);
        }
        "k8s-uuid" if !lower_uuid(value) => {
            return named(vec!["must be a lowercase UUID in 8-4-4-4-12 format".to_owned()]);
        }
        "ip" => value.parse::<IpAddr>().is_ok(),
        "cidr" => cidr(value),
        format => strfmt::fits(format, value).unwrap_or(true),
    };
    if fits {
        return Vec::new();
    }
    let path = path();
    let text = format!("{path} in body must be of type {format}: {}", quote(value));
    vec![FieldError::new(ErrorType::TypeInvalid, &path, value, text)]
}

/// What is wrong with a number; `None`: nothing, or the format is none of numbers.
pub(super) fn check_number(format: &str, value: i64) -> Option<&'static str> {
    let good = format != "port" || (1..=65535).contains(&value);
    (!good).then_some("must be between 1 and 65535, inclusive")
}

fn lower_uuid(value: &str) -> bool {
    let lower = value.len() == 36 && !value.bytes().any(|b| b.is_ascii_uppercase());
    lower && strfmt::fits("uuid", value) == Some(true)
}

fn cidr(value: &str) -> bool {
    let Some((address, bits)) = value.split_once('/') else {
        return false;
    };
    let most = if address.parse::<Ipv4Addr>().is_ok() {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    let plain = bits.bytes().all(|b| b.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
    plain && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

/// Whether the value has the pattern anywhere in it; `None` for a pattern that is none.
pub(super) fn matches_pattern(pattern: &str, value: &str) -> Option<bool> {
    pattern::compiled(pattern).ok().map(|regex| regex.is_match(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_checked() {
        for (format, good, bad) in [
            ("dns-label", "a-b", "a.b"),
            ("dns-subdomain", "a.b", "a_b"),
            ("label-value", "", "-"),
            ("date-time", "2020-01-02T03:04:05Z", "2020-01-02"),
            ("date", "2020-02-29", "2021-02-29"),
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "fd00::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("cidr", "fd00::/128", "fd00::/08"),
            ("uri", "https://a.b/c?d", "a b"),
            ("uri", "/a", "a/b"),
            ("uuid", "01234567-89ab-CDEF-0123-456789abcdef", "01234567"),
            (
                "k8s-uuid",
                "01234567-89ab-cdef-0123-456789abcdef",
                "01234567-89ab-CDEF-0123-456789abcdef",
            ),
            (
                "uuid4",
                "01234567-89ab-4def-8123-456789abcdef",
                "01234567-89ab-3def-0123-456789abcdef",
            ),
            ("email", "a.b@c.d", "a@b@"),
            ("hostname", "A-b.cd", "a_b"),
            ("byte", "YQ==", "Y"),
            ("hexcolor", "#a0B", "#12345"),
        ] {
            let path = || Path::new("f");
            assert!(check(format, good, path).is_empty(), "{format} {good}");
            assert!(!check(format, bad, path).is_empty(), "{format} {bad}");
        }
        assert_eq!(
            check("ipv4", "x", || Path::new("spec.ip"))[0].to_string(),
            r#"spec.ip: Invalid value: "x": spec.ip in body must be of type ipv4: "x""#
        );
        assert!(check("int32", "x", || Path::new("f")).is_empty());
    }

    #[test]
    fn patterns_are_searched_with_ascii_classes() {
        assert_eq!(matches_pattern(r"^\d+$", "12"), Some(true));
        assert_eq!(
            matches_pattern(r"^\d+$", "\u{661}"),
            Some(false),
            "an Arabic digit is no \\d"
        );
        assert_eq!(matches_pattern(r"^[\w.]+$", "a_1.b"), Some(true));
        assert_eq!(matches_pattern("b", "abc"), Some(true));
        assert_eq!(
            matches_pattern(r"^a\\d$", r"a\d"),
            Some(true),
            "an escaped backslash stays"
        );
        assert_eq!(matches_pattern("(", "("), None);
    }
}
