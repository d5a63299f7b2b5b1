//! Addresses in objects: written in one way, and such that something elsewhere can answer at them.
//!
//! Leading zeros and IPv4 addresses in the form of IPv6 are read differently by different programs, so what is new may
//! have neither (CVE-2021-29923). What was stored before stays valid.

use std::net::{IpAddr, Ipv4Addr};

use keelson_machinery::field::text::quote;
use keelson_machinery::field::{ErrorList, FieldError, Path};

const SYNTAX: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const MAPPED: &str = "must not be an IPv4-mapped IPv6 address";

/// The address that the text is, also with leading zeros, which are read as decimal.
pub fn parse(text: &str) -> Option<IpAddr> {
    match text.parse() {
        Ok(ip) => Some(ip),
        Err(_) => with_zeros(text).map(IpAddr::V4),
    }
}

/// Four decimal numbers with leading zeros before at least one of them.
fn with_zeros(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next().filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?;
        *octet = part.parse().ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// What is wrong with how an address is written. `stored` are those that the object had before.
pub fn validate(text: &str, stored: &[&str], path: &Path) -> ErrorList {
    let fault = fault(text, stored).map(|fault| FieldError::invalid(path, text, fault));
    fault.into_iter().collect()
}

/// What is wrong with how an address is written that is not `stored`. What is stored is looked through only for what is
/// wrong: it may be as much as there is to check.
pub fn fault(text: &str, stored: &[&str]) -> Option<&'static str> {
    let fault = match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) if ip.to_ipv4_mapped().is_some() => MAPPED,
        Ok(_) => return None,
        Err(_) if with_zeros(text).is_some() => "must not have leading 0s",
        Err(_) => SYNTAX,
    };
    (!stored.contains(&text)).then_some(fault)
}

/// As [`validate`], of an address that is to be in the canonical form too.
pub fn validate_canonical(text: &str, stored: &[&str], path: &Path) -> ErrorList {
    let mut errors = validate(text, stored, path);
    if let (true, Ok(ip)) = (errors.is_empty(), text.parse::<IpAddr>())
        && ip.to_string() != text
        && !stored.contains(&text)
    {
        let fault = format!("must be in canonical form (\"{ip}\")");
        errors.push(FieldError::invalid(path, text, fault));
    }
    errors
}

/// What a client should know of an address that is valid, since it was stored or is well enough.
pub fn warnings(text: &str, path: &Path) -> Option<String> {
    let (ip, written) = (parse(text)?, quote(text));
    let plain = quote(&ip.to_canonical().to_string());
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => None,
        Ok(IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_none() => (v6.to_string() != text)
            .then(|| format!("{path}: IPv6 address {written} should be in RFC 5952 canonical format ({plain})")),
        _ => Some(format!(
            "{path}: non-standard IP address {written} is invalid: use {plain}"
        )),
    }
}

/// Why nothing outside the machine could answer at this address (CVE-2021-25737).
pub fn validate_reachable(text: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    let fault = match parse(text).map(|ip| ip.to_canonical()) {
        None => Some("must be a valid IP address"),
        Some(ip) => unusable(ip),
    };
    errors.extend(fault.map(|fault| FieldError::invalid(path, text, fault)));
    errors
}

fn unusable(ip: IpAddr) -> Option<&'static str> {
    let (link_local, link_local_multicast) = match ip {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] & 0xff0f == 0xff02),
    };
    match ip {
        IpAddr::V4(v4) if v4.is_unspecified() => Some("may not be unspecified (0.0.0.0)"),
        IpAddr::V6(v6) if v6.is_unspecified() => Some("may not be unspecified (::)"),
        _ if ip.is_loopback() => Some("may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        _ if link_local => Some("may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        _ if link_local_multicast => Some("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::lines;

    #[test]
    fn addresses_are_written_in_one_way() {
        for (text, fault, canonical) in [
            ("10.1.2.3", "", ""),
            ("fd00::1", "", ""),
            ("fd00:0:0::1", "", "must be in canonical form (\"fd00::1\")"),
            ("FD00::1", "", "must be in canonical form (\"fd00::1\")"),
            ("010.1.2.3", "must not have leading 0s", "must not have leading 0s"),
            ("10.1.2.008", "must not have leading 0s", "must not have leading 0s"),
            ("::ffff:10.1.2.3", MAPPED, MAPPED),
            ("::ffff:127.0.0.1", MAPPED, MAPPED),
            ("", SYNTAX, SYNTAX),
            ("x", SYNTAX, SYNTAX),
            ("0x7f.1", SYNTAX, SYNTAX),
            ("2130706433", SYNTAX, SYNTAX),
            ("10.1.2", SYNTAX, SYNTAX),
            ("10.1.2.3.4", SYNTAX, SYNTAX),
            ("10.1.2.0300", SYNTAX, SYNTAX),
            ("10.1.2.+3", SYNTAX, SYNTAX),
            ("10.1.2.3/8", SYNTAX, SYNTAX),
            ("fe80::1%eth0", SYNTAX, SYNTAX),
        ] {
            let path = Path::new("ip");
            let line = |fault: &str| match fault {
                "" => String::new(),
                fault => format!("ip: Invalid value: {text:?}: {fault}"),
            };
            assert_eq!(lines(&validate(text, &[], &path)), line(fault));
            assert_eq!(lines(&validate_canonical(text, &[], &path)), line(canonical));
        }
    }

    #[test]
    fn what_is_stored_stays_valid() {
        let path = Path::new("ip");
        let stored = ["010.1.2.3", "::ffff:10.1.2.3", "fd00:0:0::1"];
        for text in stored {
            assert!(validate(text, &stored, &path).is_empty());
            assert!(validate_canonical(text, &stored, &path).is_empty());
            assert!(validate_reachable(text, &path).is_empty());
            assert!(!validate_canonical(text, &stored[..0], &path).is_empty());
        }
        // Read as decimal, and not as the octal number that it is elsewhere.
        assert_eq!(parse("010.1.2.3"), Some(IpAddr::from([10, 1, 2, 3])));
    }

    #[test]
    fn clients_are_told_of_what_others_read_otherwise() {
        for (text, expected) in [
            ("10.1.2.3", None),
            ("fd00::1", None),
            ("nothing", None),
            (
                "010.1.2.3",
                Some("ip: non-standard IP address \"010.1.2.3\" is invalid: use \"10.1.2.3\""),
            ),
            (
                "::ffff:10.1.2.3",
                Some("ip: non-standard IP address \"::ffff:10.1.2.3\" is invalid: use \"10.1.2.3\""),
            ),
            (
                "FD00::1",
                Some("ip: IPv6 address \"FD00::1\" should be in RFC 5952 canonical format (\"fd00::1\")"),
            ),
        ] {
            assert_eq!(warnings(text, &Path::new("ip")).as_deref(), expected);
        }
    }

    #[test]
    fn addresses_of_the_machine_itself_are_found_in_every_form() {
        for text in [
            "127.0.0.1",
            "127.9.9.9",
            "127.0.0.010",
            "::1",
            "0:0::1",
            "::ffff:127.0.0.1",
        ] {
            assert!(
                lines(&validate_reachable(text, &Path::new("ip"))).contains("loopback"),
                "{text}"
            );
        }
        for text in ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "febf::1"] {
            assert!(
                lines(&validate_reachable(text, &Path::new("ip"))).contains("link-local range"),
                "{text}"
            );
        }
        assert!(validate_reachable("240.0.0.1", &Path::new("ip")).is_empty());
    }
}
