//! Addresses and ranges of them: `ip("10.0.0.1")`, `cidr("10.0.0.0/8")`.

mod read;

pub(super) use read::has_six_fields;

use std::any::Any;
use std::net::IpAddr;

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::{Opaque, Value};
use super::{Result, strings};

pub(super) fn define(to: &mut Functions) {
    add(to, "ip", Cost::Traverse, ip, &["(string) ip", "cidr.() ip"]);
    add(
        to,
        "isIP",
        Cost::Traverse,
        |v| super::is_readable(address(v)),
        &["(string) bool"],
    );
    add(to, "ip.isCanonical", Cost::Traverse, is_canonical, &["(string) bool"]);
    add(
        to,
        "family",
        Cost::One,
        |v| own(v).map(|ip| Value::Int(if ip.is_ipv4() { 4 } else { 6 })),
        &["ip.() int"],
    );
    let test = ["ip.() bool"];
    add(
        to,
        "isUnspecified",
        Cost::One,
        |v| own(v).map(|ip| Value::Bool(ip.is_unspecified())),
        &test,
    );
    add(
        to,
        "isLoopback",
        Cost::One,
        |v| own(v).map(|ip| Value::Bool(ip.is_loopback())),
        &test,
    );
    add(
        to,
        "isLinkLocalMulticast",
        Cost::One,
        |v| own(v).map(|ip| Value::Bool(local_multicast(ip))),
        &test,
    );
    add(
        to,
        "isLinkLocalUnicast",
        Cost::One,
        |v| own(v).map(|ip| Value::Bool(local_unicast(ip))),
        &test,
    );
    add(
        to,
        "isGlobalUnicast",
        Cost::One,
        |v| own(v).map(|ip| Value::Bool(global_unicast(ip))),
        &test,
    );
    add(
        to,
        "cidr",
        Cost::Traverse,
        |v| Ok(Value::opaque(range(v.first())?)),
        &["(string) cidr"],
    );
    add(
        to,
        "isCIDR",
        Cost::Traverse,
        |v| super::is_readable(range(v.first())),
        &["(string) bool"],
    );
    add(
        to,
        "containsIP",
        Cost::One,
        contains_ip,
        &["cidr.(string) bool", "cidr.(ip) bool"],
    );
    add(
        to,
        "containsCIDR",
        Cost::One,
        contains_cidr,
        &["cidr.(string) bool", "cidr.(cidr) bool"],
    );
    add(
        to,
        "prefixLength",
        Cost::One,
        |v| Ok(Value::Int(i64::from(range(v.first())?.prefix))),
        &["cidr.() int"],
    );
    add(to, "masked", Cost::One, masked, &["cidr.() cidr"]);
}

#[derive(Debug, PartialEq, Eq)]
struct Ip(IpAddr);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cidr {
    base: IpAddr,
    prefix: u8,
}

impl Opaque for Ip {
    fn name(&self) -> &'static str {
        "net.IP"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<Ip>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Opaque for Cidr {
    fn name(&self) -> &'static str {
        "net.CIDR"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<Cidr>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The text of an address or a range.
pub(super) fn show(value: &dyn Opaque) -> Option<String> {
    let ip = value.as_any().downcast_ref::<Ip>().map(|ip| ip.0.to_string());
    let range = || value.as_any().downcast_ref::<Cidr>();
    ip.or_else(|| range().map(|range| format!("{}/{}", range.base, range.prefix)))
}

/// A text as an address. IPv4 addresses written as IPv6 are none.
fn address(v: &[Value<'_>]) -> std::result::Result<IpAddr, Fault> {
    let text = strings::text(v.first().unwrap_or(&Value::Null))?;
    read::address(text).map_err(Fault::function)
}

fn ip<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Opaque(_)] => Ok(Value::opaque(Ip(range(v.first())?.base))),
        _ => Ok(Value::opaque(Ip(address(v)?))),
    }
}

fn is_canonical<'a>(v: &[Value<'a>]) -> Result<'a> {
    let parsed = address(v)?;
    let text = strings::text(v.first().unwrap_or(&Value::Null))?;
    Ok(Value::Bool(parsed.to_string() == text))
}

fn own(v: &[Value<'_>]) -> std::result::Result<IpAddr, Fault> {
    match v {
        [Value::Opaque(value)] => {
            let ip = value.as_any().downcast_ref::<Ip>();
            ip.map(|ip| ip.0).ok_or(Fault::NoSuchOverload)
        }
        _ => Err(Fault::NoSuchOverload),
    }
}

fn local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(four) => four.octets()[..3] == [224, 0, 0],
        IpAddr::V6(six) => six.segments()[0] == 0xff02,
    }
}

fn local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    }
}

fn global_unicast(ip: IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(four) if four.is_broadcast());
    !(broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || local_unicast(ip))
}

/// A range, or a text that is one.
fn range(value: Option<&Value<'_>>) -> std::result::Result<Cidr, Fault> {
    let text = match value {
        Some(Value::Opaque(value)) => {
            let found = value.as_any().downcast_ref::<Cidr>();
            return found.copied().ok_or(Fault::NoSuchOverload);
        }
        Some(value) => strings::text(value)?,
        None => return Err(Fault::NoSuchOverload),
    };
    let (base, prefix) = read::range(text).map_err(Fault::function)?;
    Ok(Cidr { base, prefix })
}

/// The address with all bits after the prefix cleared.
fn cut(ip: IpAddr, prefix: u8) -> IpAddr {
    match ip {
        IpAddr::V4(four) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
            IpAddr::from((u32::from(four) & mask).to_be_bytes())
        }
        IpAddr::V6(six) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
            IpAddr::from((u128::from(six) & mask).to_be_bytes())
        }
    }
}

impl Cidr {
    fn holds(&self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.base.is_ipv4() && cut(ip, self.prefix) == cut(self.base, self.prefix)
    }
}

fn contains_ip<'a>(v: &[Value<'a>]) -> Result<'a> {
    let [range_value @ Value::Opaque(_), other] = v else {
        return Err(Fault::NoSuchOverload);
    };
    let other = std::slice::from_ref(other);
    // A text that is no address has no overload: kube-apiserver looks at what came of reading it.
    let ip = own(other).or_else(|_| address(other).map_err(|_| Fault::NoSuchOverload))?;
    Ok(Value::Bool(range(Some(range_value))?.holds(ip)))
}

fn contains_cidr<'a>(v: &[Value<'a>]) -> Result<'a> {
    let inner = range(v.get(1))?;
    let outer = range(v.first())?;
    Ok(Value::Bool(inner.prefix >= outer.prefix && outer.holds(inner.base)))
}

fn masked<'a>(v: &[Value<'a>]) -> Result<'a> {
    let range = range(v.first())?;
    Ok(Value::opaque(Cidr {
        base: cut(range.base, range.prefix),
        ..range
    }))
}
