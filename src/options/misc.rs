//! Flags that fit no other section.

use std::net::IpAddr;
use std::time::Duration;

use keelson_machinery::time;

use super::OptionError;
use super::values;

pub(super) const SECTION: &str = "Misc flags";

/// Host bits that a service range may have at most, as in kube-apiserver.
const MAX_RANGE_BITS: u32 = 20;

/// How long events are kept unless told otherwise.
const EVENT_TIME_TO_LIVE: Duration = Duration::from_secs(60 * 60);

#[derive(clap::Args, Debug, Default, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Misc {
    /// Whether pods may have privileged containers.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = values::boolean)]
    pub allow_privileged: Option<bool>,

    /// The address range of cluster IPs in CIDR form; for two address families two of them with a comma between.
    #[arg(long, value_name = "string")]
    pub service_cluster_ip_range: Option<String>,

    /// How long events are kept; 0 means for ever. Default: 1h0m0s.
    #[arg(long, value_name = "duration")]
    pub event_ttl: Option<String>,

    /// A PEM file with the private key that signs service account tokens.
    #[arg(long, value_name = "string")]
    pub service_account_signing_key_file: Option<std::path::PathBuf>,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// The first address of the range.
    pub base: IpAddr,
    /// Bits that all addresses of the range share.
    pub prefix: u8,
}

impl Misc {
    /// How long events are kept; `None`: for ever.
    pub(super) fn event_time_to_live(&self) -> Result<Option<Duration>, OptionError> {
        const FLAG: &str = "--event-ttl";
        let Some(text) = &self.event_ttl else {
            return Ok(Some(EVENT_TIME_TO_LIVE));
        };
        let span = time::Duration::parse(text).map_err(|reason| OptionError::flag(FLAG, reason))?;
        match u64::try_from(span.as_secs()) {
            Ok(0) => Ok(None),
            Ok(seconds) => Ok(Some(Duration::from_secs(seconds))),
            Err(_) => Err(OptionError::flag(FLAG, "must not be negative")),
        }
    }

    /// The ranges of cluster IPs: none, one, or one of each address family.
    pub(super) fn service_ranges(&self) -> Result<Vec<Cidr>, OptionError> {
        const FLAG: &str = "--service-cluster-ip-range";
        let Some(text) = self.service_cluster_ip_range.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(Vec::new());
        };
        let mut ranges = Vec::new();
        for part in text.split(',') {
            let range = cidr(part.trim()).map_err(|reason| OptionError::flag(FLAG, reason))?;
            let bits = if range.base.is_ipv4() { 32 } else { 128 };
            if bits - u32::from(range.prefix) > MAX_RANGE_BITS {
                let least = bits - MAX_RANGE_BITS;
                return Err(OptionError::flag(
                    FLAG,
                    format!("{part} is too large; for {bits}-bit addresses, the mask must be >= {least}"),
                ));
            }
            ranges.push(range);
        }
        match ranges.as_slice() {
            [_] => Ok(ranges),
            [a, b] if a.base.is_ipv4() != b.base.is_ipv4() => Ok(ranges),
            [_, _] => Err(OptionError::flag(
                FLAG,
                "the two ranges must be of different address families",
            )),
            _ => Err(OptionError::flag(FLAG, "must not hold more than two entries")),
        }
    }
}

fn cidr(text: &str) -> Result<Cidr, String> {
    let fail = || format!("invalid CIDR address: {text}");
    let (address, prefix) = text.split_once('/').ok_or_else(fail)?;
    let address: IpAddr = address.parse().map_err(|_| fail())?;
    let prefix: u8 = prefix.parse().map_err(|_| fail())?;
    let base = match address {
        IpAddr::V4(v4) if prefix <= 32 => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V4((u32::from(v4) & mask).into())
        }
        IpAddr::V6(v6) if prefix <= 128 => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V6((u128::from(v6) & mask).into())
        }
        _ => return Err(fail()),
    };
    Ok(Cidr { base, prefix })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(text: &str) -> Result<Vec<Cidr>, String> {
        let misc = Misc {
            service_cluster_ip_range: Some(text.into()),
            ..Misc::default()
        };
        misc.service_ranges().map_err(|error| error.to_string())
    }

    #[test]
    fn events_live_for_a_while() {
        let parsed = |text: Option<&str>| {
            let misc = Misc {
                event_ttl: text.map(str::to_owned),
                ..Misc::default()
            };
            misc.event_time_to_live().map_err(|error| error.to_string())
        };
        assert_eq!(parsed(None), Ok(Some(Duration::from_secs(3600))));
        assert_eq!(parsed(Some("1m30s")), Ok(Some(Duration::from_secs(90))));
        assert_eq!(parsed(Some("0s")), Ok(None));
        assert_eq!(parsed(Some("-1h")), Err("--event-ttl: must not be negative".to_owned()));
        assert!(parsed(Some("soon")).unwrap_err().contains("invalid duration"));
    }

    #[test]
    fn service_ranges_are_checked() {
        let want = Cidr {
            base: "10.0.0.0".parse().unwrap(),
            prefix: 24,
        };
        assert_eq!(ranges("10.0.0.7/24").unwrap(), [want]);
        assert_eq!(ranges("10.0.0.0/24,fd00::/112").unwrap().len(), 2);
        for (text, error) in [
            ("10.0.0.0", "invalid CIDR address: 10.0.0.0"),
            ("10.0.0.0/33", "invalid CIDR address: 10.0.0.0/33"),
            (
                "10.0.0.0/8",
                "10.0.0.0/8 is too large; for 32-bit addresses, the mask must be >= 12",
            ),
            (
                "10.0.0.0/24,10.1.0.0/24",
                "the two ranges must be of different address families",
            ),
        ] {
            assert_eq!(
                ranges(text).unwrap_err(),
                format!("--service-cluster-ip-range: {error}")
            );
        }
    }
}
