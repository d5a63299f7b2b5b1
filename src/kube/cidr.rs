//! Ranges of addresses in objects: an address and how many of its bits all of them share.
//!
//! As with addresses, what is new is written in the one way that all programs read alike, and what was stored stays
//! valid.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use keelson_machinery::field::text::quote;
use keelson_machinery::field::{ErrorList, FieldError, Path};

use crate::ip;

/// A range as it was written, which may have bits beyond its prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cidr {
    /// The address before the slash.
    pub address: IpAddr,
    /// How many bits all addresses share.
    pub bits: u8,
}

impl Cidr {
    /// The range that the text is, also with leading zeros, which are read as decimal.
    pub fn parse(text: &str) -> Option<Cidr> {
        let (address, bits) = text.split_once('/')?;
        let address = ip::parse(address)?;
        let digits = bits.trim_start_matches('0');
        if bits.is_empty() || !bits.bytes().all(|b| b.is_ascii_digit()) || digits.len() > 3 {
            return None;
        }
        let bits = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        (bits <= width(address)).then_some(Cidr { address, bits })
    }

    /// Without bits beyond the prefix.
    #[must_use]
    pub fn masked(self) -> Cidr {
        let shift = u32::from(width(self.address) - self.bits);
        let address = match self.address {
            IpAddr::V4(ip) => Ipv4Addr::from(u32::from(ip) & u32::MAX.checked_shl(shift).unwrap_or(0)).into(),
            IpAddr::V6(ip) => Ipv6Addr::from(u128::from(ip) & u128::MAX.checked_shl(shift).unwrap_or(0)).into(),
        };
        Cidr { address, ..self }
    }

    /// A range of IPv4 in the form of IPv6.
    fn is_mapped(self) -> bool {
        matches!(self.address, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
    }

    /// As the API writes it: one of IPv4 as such.
    fn plain(self) -> Cidr {
        match self.address.to_canonical() {
            address @ IpAddr::V4(_) if self.is_mapped() => Cidr {
                address,
                bits: self.bits.saturating_sub(96),
            },
            _ => self,
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Bits of an address.
fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Whether the text has zeros that others may read otherwise.
fn has_leading_zeros(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    address.parse::<IpAddr>().is_err() || (bits.len() > 1 && bits.starts_with('0'))
}

fn fault(text: &str) -> Option<&'static str> {
    match Cidr::parse(text) {
        None => Some("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
        Some(_) if has_leading_zeros(text) => Some("must not have leading 0s in IP or prefix length"),
        Some(range) if range.is_mapped() => Some("must not have an IPv4-mapped IPv6 address"),
        Some(range) if range != range.masked() => Some("must not have bits set beyond the prefix length"),
        Some(_) => None,
    }
}

/// What is wrong with how a range is written. `stored` are those that the object had before.
pub fn validate(text: &str, stored: &[&str], path: &Path) -> ErrorList {
    let fault = new_fault(text, stored).map(|fault| FieldError::invalid(path, text, fault));
    fault.into_iter().collect()
}

/// What is wrong with how a range is written that is not `stored`. What is stored is looked through only for what is
/// wrong: it may be as much as there is to check.
pub fn new_fault(text: &str, stored: &[&str]) -> Option<&'static str> {
    fault(text).filter(|_| !stored.contains(&text))
}

/// As [`validate`], of a range that is to be in the canonical form too.
pub fn validate_canonical(text: &str, path: &Path) -> ErrorList {
    let mut errors = validate(text, &[], path);
    if let (true, Some(range)) = (errors.is_empty(), Cidr::parse(text))
        && range.to_string() != text
    {
        let fault = format!("must be in canonical form (\"{range}\")");
        errors.push(FieldError::invalid(path, text, fault));
    }
    errors
}

/// What a client should know of a range that is valid, since it was stored or is well enough.
pub fn warnings(text: &str, path: &Path) -> Vec<String> {
    let mut told = Vec::new();
    let Some(range) = Cidr::parse(text) else {
        return told;
    };
    let (masked, written) = (range.masked().plain(), quote(text));
    if range != range.masked() {
        let one = format!("{}/{}", range.plain().address, width(range.address));
        told.push(format!(
            "{path}: CIDR value {written} is ambiguous in this context (should be {} or {}?)",
            quote(&masked.to_string()),
            quote(&one)
        ));
    }
    if has_leading_zeros(text) || range.is_mapped() {
        let use_this = quote(&masked.to_string());
        told.push(format!(
            "{path}: non-standard CIDR value {written} is invalid: use {use_this}"
        ));
    }
    if told.is_empty() && range.address.is_ipv6() && range.to_string() != text {
        let use_this = quote(&range.to_string());
        told.push(format!(
            "{path}: IPv6 CIDR value {written} should be in RFC 5952 canonical format ({use_this})"
        ));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::lines;

    const SYNTAX: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    const ZEROS: &str = "must not have leading 0s in IP or prefix length";

    #[test]
    fn ranges_are_written_in_one_way() {
        let canonical = "must be in canonical form (\"fd00::/64\")";
        for (text, fault, of_canonical) in [
            ("10.9.8.0/24", "", ""),
            ("0.0.0.0/0", "", ""),
            ("fd00::/64", "", ""),
            ("fd00:0::/64", "", canonical),
            ("FD00::/64", "", canonical),
            ("10.9.8.7/24", "must not have bits set beyond the prefix length", ""),
            ("010.9.8.0/24", ZEROS, ""),
            ("10.9.8.0/024", ZEROS, ""),
            ("::ffff:10.9.8.0/120", "must not have an IPv4-mapped IPv6 address", ""),
            ("10.9.8.0", SYNTAX, ""),
            ("10.9.8.0/33", SYNTAX, ""),
            ("fd00::/129", SYNTAX, ""),
            ("fd00::/", SYNTAX, ""),
            ("10.9.8.0/+8", SYNTAX, ""),
            ("10.9.8.0/8/8", SYNTAX, ""),
            ("10.9.8.0/99999999999999999999", SYNTAX, ""),
            (" 10.9.8.0/24", SYNTAX, ""),
        ] {
            let path = Path::new("at");
            let line = |fault: &str| match fault {
                "" => String::new(),
                fault => format!("at: Invalid value: {text:?}: {fault}"),
            };
            assert_eq!(lines(&validate(text, &[], &path)), line(fault));
            let both = if fault.is_empty() { of_canonical } else { fault };
            assert_eq!(lines(&validate_canonical(text, &path)), line(both));
            assert!(validate(text, &[text], &path).is_empty(), "what was stored stays valid");
        }
    }

    #[test]
    fn clients_are_told_of_what_others_read_otherwise() {
        for (text, expected) in [
            ("10.9.8.0/24", &[][..]),
            ("nothing", &[]),
            (
                "10.9.8.7/24",
                &[
                    "at: CIDR value \"10.9.8.7/24\" is ambiguous in this context (should be \"10.9.8.0/24\" or \"10.9.8.7/32\"?)",
                ],
            ),
            (
                "010.9.8.0/24",
                &["at: non-standard CIDR value \"010.9.8.0/24\" is invalid: use \"10.9.8.0/24\""],
            ),
            (
                "::ffff:10.9.8.0/120",
                &["at: non-standard CIDR value \"::ffff:10.9.8.0/120\" is invalid: use \"10.9.8.0/24\""],
            ),
            (
                "fd00:0::/64",
                &["at: IPv6 CIDR value \"fd00:0::/64\" should be in RFC 5952 canonical format (\"fd00::/64\")"],
            ),
        ] {
            assert_eq!(warnings(text, &Path::new("at")), expected, "{text}");
        }
    }
}
