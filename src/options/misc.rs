//! Flags that fit no other section.

use std::net::IpAddr;
use std::time::Duration;

use keelson_kube::bootstrap::{EndpointReconciler, ManagedController};
use keelson_machinery::time;

use super::OptionError;
use super::values::{self, ValueError};

pub(super) const SECTION: &str = "Misc flags";

/// Bits in which the addresses of a service range may differ at least and at most, as in kube-apiserver.
const MIN_RANGE_BITS: u32 = 3;
const MAX_RANGE_BITS: u32 = 64;

/// The ports that services get on nodes, unless told otherwise.
const NODE_PORTS: (u16, u16) = (30_000, 32_767);

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

    /// The ports that services get on nodes, the first and the last: from-to, first+others, or one alone. Default:
    /// 30000-32767.
    #[arg(long, value_name = "portRange")]
    pub service_node_port_range: Option<String>,

    /// The port of the service kubernetes on nodes, if it is to have one. Default: 0, none.
    #[arg(long, value_name = "int")]
    pub kubernetes_service_node_port: Option<i32>,

    /// How the endpoints of the service kubernetes are known: lease (each server notes that it runs), master-count
    /// (there are --apiserver-count of them) or none (nobody sees to them). Default: lease.
    #[arg(long, value_name = "string")]
    pub endpoint_reconciler_type: Option<String>,

    /// Deprecated: how many servers there are, with --endpoint-reconciler-type=master-count. Default: 1.
    #[arg(long, value_name = "int", value_parser = values::integer)]
    pub apiserver_count: Option<i64>,

    /// How long events are kept; 0 means for ever. Default: 1h0m0s.
    #[arg(long, value_name = "duration")]
    pub event_ttl: Option<String>,

    /// Which controllers of kube-controller-manager run on this server, as its flag of this name says it: '*' for all,
    /// NAME for one more, -NAME for one less. There is validatingadmissionpolicy-status-controller, which checks the
    /// types in policies. Default: *; with --etcd-servers none, since kube-controller-manager may run.
    #[arg(long, value_name = "strings", value_delimiter = ',', allow_hyphen_values = true)]
    pub controllers: Option<Vec<String>>,

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
            let host_bits = bits - u32::from(range.prefix);
            if host_bits > MAX_RANGE_BITS {
                let least = bits - MAX_RANGE_BITS;
                let text = format!("{part} is too large; for {bits}-bit addresses, the mask must be >= {least}");
                return Err(OptionError::flag(FLAG, text));
            }
            if host_bits < MIN_RANGE_BITS {
                let text = format!("{part}: the service cluster IP range must be at least 8 IP addresses");
                return Err(OptionError::flag(FLAG, text));
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

impl Misc {
    /// The first and the last of the ports that services get on nodes.
    pub(super) fn service_node_ports(&self) -> Result<(u16, u16), OptionError> {
        let text = self.service_node_port_range.as_deref().map_or("", str::trim);
        if text.is_empty() {
            return Ok(NODE_PORTS);
        }
        port_range(text).map_err(|reason| OptionError::flag("--service-node-port-range", reason))
    }

    /// The port of the service `kubernetes` on nodes, of those that there are; `None`: it has none.
    pub(super) fn kubernetes_node_port(&self, (first, last): (u16, u16)) -> Result<Option<u16>, OptionError> {
        const FLAG: &str = "--kubernetes-service-node-port";
        let number = self.kubernetes_service_node_port.unwrap_or_default();
        let Ok(port) = u16::try_from(number) else {
            let text = format!("{number} must be between 0 and 65535, inclusive");
            return Err(OptionError::flag(FLAG, text));
        };
        match port {
            0 => Ok(None),
            port if (first..=last).contains(&port) => Ok(Some(port)),
            port => Err(OptionError::flag(
                FLAG,
                format!("the range {first}-{last} doesn't contain {port}"),
            )),
        }
    }
}

impl Misc {
    /// The controllers of kube-controller-manager that run on this server. `has_etcd`: other programs may run them.
    pub(super) fn controllers(&self, has_etcd: bool) -> Result<Vec<ManagedController>, OptionError> {
        let Some(wanted) = &self.controllers else {
            return Ok(if has_etcd {
                Vec::new()
            } else {
                ManagedController::ALL.to_vec()
            });
        };
        let plain = |text: &'_ String| text.strip_prefix('-').unwrap_or(text).to_owned();
        let is_known =
            |text: &String| text == "*" || ManagedController::ALL.iter().any(|one| one.name() == plain(text));
        if let Some(unknown) = wanted.iter().find(|text| !is_known(text)) {
            let text = format!("{:?} is not in the list of known controllers", plain(unknown));
            return Err(OptionError::flag("--controllers", text));
        }
        let has = |text: &str| wanted.iter().any(|known| known == text);
        let runs = |one: &ManagedController| {
            let name = one.name();
            has(name) || !has(&format!("-{name}")) && has("*")
        };
        Ok(ManagedController::ALL.into_iter().filter(runs).collect())
    }

    /// How the endpoints of the service `kubernetes` are known.
    pub(super) fn endpoint_reconciler(&self) -> Result<EndpointReconciler, OptionError> {
        let number = self.apiserver_count.unwrap_or(1);
        let count = usize::try_from(number).ok().filter(|count| *count > 0);
        let count = count.ok_or_else(|| {
            let text = format!("should be a positive number, but value '{number}' provided");
            OptionError::flag("--apiserver-count", text)
        })?;
        match self.endpoint_reconciler_type.as_deref() {
            None | Some("" | "lease") => Ok(EndpointReconciler::Lease),
            Some("master-count") => Ok(EndpointReconciler::Count(count)),
            Some("none") => Ok(EndpointReconciler::None),
            Some(other) => {
                let text = format!("{other} is not known; it has to be lease, master-count or none");
                Err(OptionError::flag("--endpoint-reconciler-type", text))
            }
        }
    }
}

/// `30000-32767`, `30000+2767` or `30000`.
fn port_range(text: &str) -> Result<(u16, u16), ValueError> {
    let number = |text: &str| text.parse::<i64>().map_err(|_| ValueError::Port(text.to_owned()));
    let (low, high) = match (text.split_once('-'), text.split_once('+')) {
        (None, None) => (number(text)?, number(text)?),
        (Some((low, high)), None) => (number(low)?, number(high)?),
        (None, Some((low, others))) => {
            let low = number(low)?;
            (low, low.saturating_add(number(others)?))
        }
        _ => return Err(ValueError::PortRange(text.to_owned())),
    };
    if high < low {
        return Err(ValueError::PortsBackwards(text.to_owned()));
    }
    match (u16::try_from(low), u16::try_from(high)) {
        (Ok(low), Ok(high)) => Ok((low, high)),
        _ => Err(ValueError::PortsTooLarge(text.to_owned())),
    }
}

fn cidr(text: &str) -> Result<Cidr, ValueError> {
    let fail = || ValueError::Cidr(text.to_owned());
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
    fn node_ports_are_checked() {
        let ports = |range: &str| {
            let misc = Misc {
                service_node_port_range: Some(range.to_owned()),
                ..Misc::default()
            };
            misc.service_node_ports().map_err(|error| error.to_string())
        };
        for (text, range) in [
            ("", NODE_PORTS),
            ("30000-30009", (30_000, 30_009)),
            ("30000+9", (30_000, 30_009)),
            (" 30000 ", (30_000, 30_000)),
        ] {
            assert_eq!(ports(text), Ok(range), "{text}");
        }
        for (text, error) in [
            ("x", "invalid port: \"x\""),
            ("1-2+3", "unable to parse port range: 1-2+3"),
            ("9-1", "end port cannot be less than start port: 9-1"),
            ("1-65536", "the port range cannot be greater than 65535: 1-65536"),
            ("65535+1", "the port range cannot be greater than 65535: 65535+1"),
        ] {
            assert_eq!(ports(text), Err(format!("--service-node-port-range: {error}")));
        }
        let of_kubernetes = |number: i32| {
            let misc = Misc {
                kubernetes_service_node_port: Some(number),
                ..Misc::default()
            };
            misc.kubernetes_node_port(NODE_PORTS).map_err(|error| error.to_string())
        };
        assert_eq!(of_kubernetes(0), Ok(None));
        assert_eq!(of_kubernetes(30_443), Ok(Some(30_443)));
        assert!(of_kubernetes(-1).unwrap_err().contains("between 0 and 65535"));
        assert!(
            of_kubernetes(443)
                .unwrap_err()
                .contains("30000-32767 doesn't contain 443")
        );
    }

    #[test]
    fn controllers_are_chosen_as_by_kube_controller_manager() {
        let one = ManagedController::ValidatingAdmissionPolicyStatus;
        let chosen = |list: Option<&str>, has_etcd| {
            let misc = Misc {
                controllers: list.map(|list| list.split(',').map(str::to_owned).collect()),
                ..Misc::default()
            };
            misc.controllers(has_etcd).map_err(|error| error.to_string())
        };
        assert_eq!(chosen(None, false), Ok(vec![one]));
        assert_eq!(chosen(None, true), Ok(vec![]));
        for (list, runs) in [
            ("*", true),
            ("*,-validatingadmissionpolicy-status-controller", false),
            ("-validatingadmissionpolicy-status-controller", false),
            ("validatingadmissionpolicy-status-controller", true),
        ] {
            assert_eq!(
                chosen(Some(list), true),
                Ok(Vec::from_iter(runs.then_some(one))),
                "{list}"
            );
        }
        assert_eq!(
            chosen(Some("*,-namespace-controller"), false).unwrap_err(),
            "--controllers: \"namespace-controller\" is not in the list of known controllers"
        );
    }

    #[test]
    fn endpoints_are_known_in_three_ways() {
        let reconciler = |kind: &str, count| {
            let misc = Misc {
                endpoint_reconciler_type: Some(kind.to_owned()),
                apiserver_count: count,
                ..Misc::default()
            };
            misc.endpoint_reconciler().map_err(|error| error.to_string())
        };
        assert_eq!(reconciler("", None), Ok(EndpointReconciler::Lease));
        assert_eq!(reconciler("none", None), Ok(EndpointReconciler::None));
        assert_eq!(reconciler("master-count", Some(3)), Ok(EndpointReconciler::Count(3)));
        assert!(
            reconciler("else", None)
                .unwrap_err()
                .starts_with("--endpoint-reconciler-type: ")
        );
        assert_eq!(
            reconciler("lease", Some(0)).unwrap_err(),
            "--apiserver-count: should be a positive number, but value '0' provided"
        );
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
                "fd00::/63",
                "fd00::/63 is too large; for 128-bit addresses, the mask must be >= 64",
            ),
            (
                "10.0.0.0/30",
                "10.0.0.0/30: the service cluster IP range must be at least 8 IP addresses",
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
