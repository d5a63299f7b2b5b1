//! Ranges of cluster addresses: which of them services get, and in which order free ones are looked for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::super::families::Family;
use crate::cidr::Cidr;

/// The lower part of a range is left to services that ask for an address: a sixteenth of it, within these bounds.
const STATIC_SHARE: u128 = 16;
const STATIC_MIN: u128 = 16;
const STATIC_MAX: u128 = 256;
/// The most bits in which the addresses of a range of IPv6 may differ.
const MAX_HOST_BITS: u8 = 64;

/// A range of which services get addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub family: Family,
    /// The first and the last address that a service can have; there are none where the last is below the first.
    first: u128,
    last: u128,
    /// So many from the first on are given only to who asks for them, as long as there are others.
    reserved: u128,
}

/// Addresses that follow each other, the first and the last.
pub type Region = (u128, u128);

impl Range {
    /// Of a range in CIDR form; `None`: it is none, or too large.
    pub fn parse(text: &str) -> Option<Range> {
        let cidr = Cidr::parse(text)?.masked();
        let (family, base, width) = match cidr.address {
            IpAddr::V4(ip) => (Family::V4, u128::from(u32::from(ip)), 32),
            IpAddr::V6(ip) => (Family::V6, u128::from(ip), 128),
        };
        let host_bits: u8 = width - cidr.bits;
        if family == Family::V6 && host_bits > MAX_HOST_BITS {
            return None;
        }
        let size = 1_u128 << host_bits;
        // The address of the network itself is no service's, nor in IPv4 the one that reaches all of them.
        let unused_end = u128::from(family == Family::V4);
        let reserved = match size {
            ..=STATIC_MIN => 0,
            _ => (size / STATIC_SHARE).clamp(STATIC_MIN, STATIC_MAX),
        };
        Some(Range {
            family,
            first: base + 1,
            last: (base + (size - 1)).saturating_sub(unused_end),
            reserved,
        })
    }

    /// Whether a service can have this address of it.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        Family::of(ip) == self.family && (self.first..=self.last).contains(&number(ip))
    }

    /// The address of the network.
    pub fn base(&self) -> IpAddr {
        address(self.family, self.first - 1)
    }

    /// Where free addresses are looked for: in the upper part first, then in the part that is reserved.
    pub fn regions(&self) -> impl Iterator<Item = Region> {
        let middle = self.first + self.reserved;
        let regions = [(middle, self.last), (self.first, (middle - 1).min(self.last))];
        regions.into_iter().filter(|(first, last)| first <= last)
    }
}

/// All addresses of a region, from one of them on and around.
pub fn around((first, last): Region, random: u128) -> impl Iterator<Item = u128> {
    let start = first + random % (last - first + 1);
    (start..=last).chain(first..start)
}

/// An address as a number.
pub fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u32::from(ip).into(),
        IpAddr::V6(ip) => ip.into(),
    }
}

/// The address of a family that is this number.
pub fn address(family: Family, number: u128) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)).into(),
        Family::V6 => Ipv6Addr::from(number).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(text: &str) -> Vec<String> {
        let range = Range::parse(text).unwrap();
        let shown = |(first, last)| format!("{}-{}", address(range.family, first), address(range.family, last));
        range.regions().map(shown).collect()
    }

    #[test]
    fn a_lower_part_is_reserved() {
        for (text, expected) in [
            ("10.0.0.0/24", &["10.0.0.17-10.0.0.254", "10.0.0.1-10.0.0.16"][..]),
            ("10.0.0.77/24", &["10.0.0.17-10.0.0.254", "10.0.0.1-10.0.0.16"]),
            ("10.0.0.0/12", &["10.0.1.1-10.15.255.254", "10.0.0.1-10.0.1.0"]),
            ("10.0.0.0/27", &["10.0.0.17-10.0.0.30", "10.0.0.1-10.0.0.16"]),
            ("10.0.0.0/28", &["10.0.0.1-10.0.0.14"]),
            ("10.0.0.0/30", &["10.0.0.1-10.0.0.2"]),
            ("10.0.0.0/31", &[]),
            ("10.0.0.0/32", &[]),
            ("fd00::/112", &["fd00::101-fd00::ffff", "fd00::1-fd00::100"]),
            (
                "fd00::/64",
                &["fd00::101-fd00::ffff:ffff:ffff:ffff", "fd00::1-fd00::100"],
            ),
            ("fd00::/127", &["fd00::1-fd00::1"]),
            ("fd00::/128", &[]),
            (
                "255.255.255.0/24",
                &["255.255.255.17-255.255.255.254", "255.255.255.1-255.255.255.16"],
            ),
            (
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0/124",
                &["ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
            ),
        ] {
            assert_eq!(regions(text), expected, "{text}");
        }
        assert_eq!(Range::parse("fd00::/63"), None);
        assert_eq!(Range::parse("10.0.0.0"), None);
    }

    #[test]
    fn neither_end_is_a_services() {
        let range = Range::parse("10.0.0.0/24").unwrap();
        for (ip, is_in) in [
            ("10.0.0.0", false),
            ("10.0.0.1", true),
            ("10.0.0.254", true),
            ("10.0.0.255", false),
            ("10.0.1.1", false),
            ("fd00::1", false),
            ("::ffff:10.0.0.9", true),
        ] {
            assert_eq!(range.contains(ip.parse().unwrap()), is_in, "{ip}");
        }
        assert_eq!(range.base(), IpAddr::from([10, 0, 0, 0]));
        let range = Range::parse("fd00::/120").unwrap();
        assert!(range.contains("fd00::ff".parse().unwrap()) && !range.contains("fd00::".parse().unwrap()));
    }

    #[test]
    fn each_address_is_looked_at_once() {
        let all: Vec<u128> = around((5, 9), 13).collect();
        assert_eq!(all, [8, 9, 5, 6, 7]);
        assert_eq!(around((5, 5), u128::MAX).collect::<Vec<_>>(), [5]);
    }
}
