//! Addresses and ranges from text, as Go's `netip` reads them, in its words.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::cel::error::FunctionResult;
use crate::field::text::quote;

/// What is wrong with a text, and from where on.
type Wrong<'a> = (&'static str, &'a str);

/// An address.
pub(super) fn address(text: &str) -> FunctionResult<IpAddr> {
    let wrong = |why: String| {
        format!(
            "IP Address {} parse error during conversion from string: {why}",
            quote(text)
        )
    };
    let (address, zone) = parse(text).map_err(wrong)?;
    if zone {
        return Err(format!("IP address {} with zone value is not allowed", quote(text)));
    }
    unmapped(address, text)
}

/// An address and how many bits of it the range has.
pub(super) fn range(text: &str) -> FunctionResult<(IpAddr, u8)> {
    const WHAT: &str = "network address parse error during conversion from string";
    let wrong = |why: &str| format!("{WHAT}: {WHAT}: netip.ParsePrefix({}): {why}", quote(text));
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| wrong("no '/'"))?;
    let (address, zone) = parse(address).map_err(|why| wrong(&why))?;
    if zone {
        return Err(wrong("IPv6 zones cannot be present in a prefix"));
    }
    let plain = bits.len() == 1 || bits.starts_with(|c| matches!(c, '1'..='9'));
    let number: Option<u64> = bits
        .parse()
        .ok()
        .filter(|_| plain && bits.bytes().all(|b| b.is_ascii_digit()));
    let Some(number) = number else {
        return Err(wrong(&format!("bad bits after slash: {}", quote(bits))));
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = u8::try_from(number).ok().filter(|bits| *bits <= most);
    let bits = bits.ok_or_else(|| wrong("prefix length out of range"))?;
    match unmapped(address, text) {
        Ok(address) => Ok((address, bits)),
        Err(why) => Err(format!("{WHAT}: {why}")),
    }
}

/// The address, unless it is one of version 4 that is written as one of version 6.
fn unmapped(address: IpAddr, text: &str) -> FunctionResult<IpAddr> {
    match address {
        IpAddr::V6(six) if six.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)))
        }
        address => Ok(address),
    }
}

/// Whether a text is an address of version 6, with or without a zone.
pub(in crate::cel::library) fn has_six_fields(text: &str) -> FunctionResult<bool> {
    parse(text).map(|(address, _)| address.is_ipv6())
}

/// The address, and whether it has a zone.
fn parse(text: &str) -> FunctionResult<(IpAddr, bool)> {
    let parsed = match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => four(text).map(|four| (four.into(), false)),
        Some(b':') => six(text).map(|(six, zone)| (six.into(), zone)),
        Some(_) => Err(("missing IPv6 address", "")),
        None => Err(("unable to parse IP", "")),
    };
    parsed.map_err(|(why, at)| match at {
        "" => format!("ParseAddr({}): {why}", quote(text)),
        at => format!("ParseAddr({}): {why} (at {})", quote(text), quote(at)),
    })
}

fn four(text: &str) -> Result<Ipv4Addr, Wrong<'_>> {
    let (mut fields, mut at, mut value, mut digits) = ([0; 4], 0, 0u32, 0);
    let mut before = b'.';
    for (n, b) in text.bytes().enumerate() {
        match b {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(("IPv4 field has octet with leading zero", ""));
                }
                value = value * 10 + u32::from(b - b'0');
                digits += 1;
                if value > 255 {
                    return Err(("IPv4 field has value >255", ""));
                }
            }
            b'.' if before == b'.' || n + 1 == text.len() => {
                let rest = text.get(n..).unwrap_or_default();
                return Err(("IPv4 field must have at least one digit", rest));
            }
            b'.' if at == 3 => return Err(("IPv4 address too long", "")),
            b'.' => {
                fields[at] = value as u8;
                (at, value, digits) = (at + 1, 0, 0);
            }
            _ => return Err(("unexpected character", text.get(n..).unwrap_or_default())),
        }
        before = b;
    }
    if at < 3 {
        return Err(("IPv4 address too short", ""));
    }
    fields[3] = value as u8;
    Ok(fields.into())
}

fn six(text: &str) -> Result<(Ipv6Addr, bool), Wrong<'_>> {
    let (mut rest, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(("zone must be a non-empty string", "")),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    // Up to eight fields, and where those that are left out would stand.
    let (mut fields, mut gap) = (Vec::with_capacity(8), None);
    if let Some(behind) = rest.strip_prefix("::") {
        (gap, rest) = (Some(0), behind);
        if rest.is_empty() {
            return Ok((Ipv6Addr::UNSPECIFIED, zone));
        }
    }
    while fields.len() < 8 {
        let (value, behind) = field(rest)?;
        if behind.starts_with('.') {
            if gap.is_none() && fields.len() != 6 {
                let why = "embedded IPv4 address must replace the final 2 fields of the address";
                return Err((why, rest));
            }
            if fields.len() > 6 {
                let why = "too many hex fields to fit an embedded IPv4 at the end of the address";
                return Err((why, rest));
            }
            let [a, b, c, d] = four(rest)?.octets();
            fields.extend([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
            rest = "";
            break;
        }
        fields.push(value);
        rest = behind;
        match rest.strip_prefix(':') {
            _ if rest.is_empty() => break,
            None => return Err(("unexpected character, want colon", rest)),
            Some("") => return Err(("colon must be followed by more characters", rest)),
            Some(behind) => rest = behind,
        }
        if let Some(behind) = rest.strip_prefix(':') {
            if gap.is_some() {
                return Err(("multiple :: in address", rest));
            }
            (gap, rest) = (Some(fields.len()), behind);
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", rest));
    }
    let filled = match (gap, 8 - fields.len().min(8)) {
        (None, 0) => fields,
        (None, _) => return Err(("address string too short", "")),
        (Some(_), 0) => return Err(("the :: must expand to at least one field of zeros", "")),
        (Some(gap), left) => {
            fields.splice(gap..gap, std::iter::repeat_n(0, left));
            fields
        }
    };
    let fields = <[u16; 8]>::try_from(filled).unwrap_or_default();
    Ok((fields.into(), zone))
}

/// A field of hexadecimal digits, and what follows it.
fn field(text: &str) -> Result<(u16, &str), Wrong<'_>> {
    let digits = text.bytes().take_while(u8::is_ascii_hexdigit).count();
    let (digits, rest) = text.split_at(digits);
    match digits.len() {
        0 => Err(("each colon-separated field must have at least one digit", text)),
        1..=4 => Ok((u16::from_str_radix(digits, 16).unwrap_or_default(), rest)),
        _ => Err(("each group must have 4 or less digits", text)),
    }
}
