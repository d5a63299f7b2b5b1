//! Values of flags, read as Go's flag package reads them, with its error texts.

use std::net::IpAddr;

use keelson_machinery::quantity::QuantityError;
use keelson_machinery::time::{Duration, DurationError};

/// Why the text of a flag is no value of it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ValueError {
    /// No boolean or number.
    #[error("{function}: parsing {text:?}: invalid syntax")]
    Syntax {
        /// `strconv.ParseBool`.
        function: &'static str,
        /// As given.
        text: String,
    },
    /// A number that 64 bits don't hold.
    #[error("strconv.ParseInt: parsing {0:?}: value out of range")]
    Range(String),
    /// No span of time.
    #[error("{0}")]
    Duration(#[from] DurationError),
    /// No quantity.
    #[error("{0}")]
    Quantity(#[from] QuantityError),
    /// A number that has to be 0 or more.
    #[error("must not be negative")]
    Negative,
    /// No IP address.
    #[error("failed to parse IP: {0:?}")]
    Ip(String),
    /// No range of IP addresses.
    #[error("invalid CIDR address: {0}")]
    Cidr(String),
    /// No number where a port is.
    #[error("invalid port: {0:?}")]
    Port(String),
    /// No range of ports.
    #[error("unable to parse port range: {0}")]
    PortRange(String),
    /// A range that ends before it begins.
    #[error("end port cannot be less than start port: {0}")]
    PortsBackwards(String),
    /// A range that has numbers which are no ports.
    #[error("the port range cannot be greater than 65535: {0}")]
    PortsTooLarge(String),
    /// Other than a certificate and its key.
    #[error("expected comma separated certificate and key file paths")]
    CertificateAndKey,
}

fn syntax(function: &'static str, text: &str) -> ValueError {
    ValueError::Syntax {
        function,
        text: text.to_owned(),
    }
}

/// A boolean in any of the spellings that Go's `strconv.ParseBool` takes.
pub fn boolean(text: &str) -> Result<bool, ValueError> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(syntax("strconv.ParseBool", text)),
    }
}

/// A decimal, `0x`, `0o` or `0b` integer.
pub fn integer(text: &str) -> Result<i64, ValueError> {
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
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(syntax("strconv.ParseInt", text));
    }
    i64::from_str_radix(digits, radix)
        .map(|n| sign * n)
        .map_err(|_| ValueError::Range(text.to_owned()))
}

/// A decimal number with or without a fraction.
pub fn float(text: &str) -> Result<f64, ValueError> {
    text.parse().map_err(|_| syntax("strconv.ParseFloat", text))
}

/// A span of time as Go writes it: `1m30s`.
pub fn duration(text: &str) -> Result<Duration, ValueError> {
    Ok(Duration::parse(text)?)
}

/// An IPv4 or IPv6 address.
pub fn ip(text: &str) -> Result<IpAddr, ValueError> {
    text.trim().parse().map_err(|_| ValueError::Ip(text.to_owned()))
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
            boolean("x").unwrap_err().to_string(),
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
            integer("99999999999999999999").unwrap_err().to_string(),
            r#"strconv.ParseInt: parsing "99999999999999999999": value out of range"#
        );
    }
}
