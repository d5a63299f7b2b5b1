//! Address families of services: which they have, and whether one or both.

use std::net::IpAddr;

use keelson_api::core::v1::ServiceSpec;
use keelson_machinery::field::{ErrorList, FieldError, Path};

use super::HEADLESS;
use super::validate;
use crate::ip;
use crate::typed::shown_texts;

pub const SINGLE: &str = "SingleStack";
pub const PREFER: &str = "PreferDualStack";
pub const REQUIRE: &str = "RequireDualStack";

/// A family of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// Of 32 bits.
    V4,
    /// Of 128 bits.
    V6,
}

impl Family {
    /// As objects name it.
    pub const fn name(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }

    /// The family of this name.
    pub fn named(name: &str) -> Option<Family> {
        [Family::V4, Family::V6]
            .into_iter()
            .find(|family| family.name() == name)
    }

    /// The family of an address; one of IPv4 in the form of IPv6 is one of IPv4.
    pub fn of(ip: IpAddr) -> Family {
        match ip.to_canonical() {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }

    /// The family of what is written as an address; `None`: it is none.
    pub fn of_text(text: &str) -> Option<Family> {
        ip::parse(text).map(Family::of)
    }

    /// The one that it is not.
    pub const fn other(self) -> Family {
        match self {
            Family::V4 => Family::V6,
            Family::V6 => Family::V4,
        }
    }
}

/// The families that a cluster has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Families {
    /// Of services that ask for none.
    pub primary: Family,
    /// The cluster has the other family too.
    pub both: bool,
}

impl Default for Families {
    /// IPv4.
    fn default() -> Self {
        Families {
            primary: Family::V4,
            both: false,
        }
    }
}

impl Families {
    /// Whether the cluster has this one.
    pub fn has(self, family: Family) -> bool {
        self.both || family == self.primary
    }
}

/// Whether the service has an address, or says that it wants none: all but those that stand for a name elsewhere.
pub fn has_cluster_ip(spec: &ServiceSpec) -> bool {
    spec.r#type != "ExternalName"
}

fn policy(spec: &ServiceSpec) -> &str {
    spec.ip_family_policy.as_deref().unwrap_or_default()
}

/// A service without an address of which nobody knows where it leads: it may have families that the cluster has not.
fn leads_anywhere(spec: &ServiceSpec) -> bool {
    spec.cluster_ip == HEADLESS && spec.selector.is_empty()
}

/// A change of nothing about a service that takes a second address where there is one: what the cluster has learnt
/// since neither gives nor takes it.
pub fn is_settled(new: &ServiceSpec, old: &ServiceSpec) -> bool {
    let prefers = |spec: &ServiceSpec| policy(spec) == PREFER;
    new.r#type == old.r#type
        && matches!(new.r#type.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer")
        && prefers(new)
        && (prefers(old) || old.ip_family_policy.is_none())
        && new.cluster_ips == old.cluster_ips
        && new.ip_families == old.ip_families
}

/// Fills in the families and their policy, and the other family where two are wanted.
///
/// # Errors
/// What is asked for contradicts itself, or the cluster does not have it.
pub fn fill(cluster: Families, new: &mut ServiceSpec, old: Option<&ServiceSpec>) -> Result<(), ErrorList> {
    if !has_cluster_ip(new) || old.is_some_and(|old| is_settled(new, old)) {
        return Ok(());
    }
    if new.ip_family_policy.is_none() {
        let kept = old.and_then(|old| old.ip_family_policy.clone());
        let usual = if leads_anywhere(new) { REQUIRE } else { SINGLE };
        new.ip_family_policy = Some(kept.unwrap_or_else(|| usual.to_owned()));
    }
    let stored = old.map_or(&[][..], |old| &old.cluster_ips);
    validate::cluster_ips(new, stored).into_result()?;
    let mut errors = ErrorList::default();
    if let Some(old) = old {
        reduce(new, old, &mut errors);
    }
    one_for_single_stack(new, &mut errors);
    infer(cluster, new, &mut errors);
    errors.into_result()?;
    if leads_anywhere(new) {
        add_default(cluster, new);
        if policy(new) != SINGLE {
            add_other(new);
        }
        return Ok(());
    }
    known_to(cluster, new).into_result()?;
    add_default(cluster, new);
    if policy(new) != SINGLE && cluster.both {
        add_other(new);
    }
    Ok(())
}

fn add_default(cluster: Families, spec: &mut ServiceSpec) {
    if spec.ip_families.is_empty() {
        spec.ip_families.push(cluster.primary.name().to_owned());
    }
}

fn add_other(spec: &mut ServiceSpec) {
    if let [one] = spec.ip_families.as_slice()
        && let Some(family) = Family::named(one)
    {
        spec.ip_families.push(family.other().name().to_owned());
    }
}

/// A service that is to have one address gives the second back; another may not lose one.
fn reduce(new: &mut ServiceSpec, old: &ServiceSpec, errors: &mut ErrorList) {
    if policy(new) == SINGLE {
        if new.cluster_ips == old.cluster_ips {
            new.cluster_ips.truncate(1);
        }
        if new.ip_families == old.ip_families {
            new.ip_families.truncate(1);
        }
        return;
    }
    let lost = |new: &[String], old: &[String]| !new.is_empty() && new.len() < old.len();
    for (is_lost, what) in [
        (lost(&new.cluster_ips, &old.cluster_ips), "cluster IP"),
        (lost(&new.ip_families, &old.ip_families), "IP family"),
    ] {
        if is_lost {
            let text = format!("must be 'SingleStack' to release the secondary {what}");
            errors.push(FieldError::invalid(&policy_path(), policy(new), text));
        }
    }
}

fn policy_path() -> Path {
    Path::new("spec").child("ipFamilyPolicy")
}

fn one_for_single_stack(spec: &ServiceSpec, errors: &mut ErrorList) {
    if policy(spec) != SINGLE {
        return;
    }
    for (count, what) in [
        (spec.cluster_ips.len(), "cluster IPs"),
        (spec.ip_families.len(), "IP families"),
    ] {
        if count == 2 {
            let text = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            errors.push(FieldError::invalid(&policy_path(), policy(spec), text));
        }
    }
}

/// Adds the families of addresses whose family was not said.
fn infer(cluster: Families, spec: &mut ServiceSpec, errors: &mut ErrorList) {
    for (place, ip) in spec.cluster_ips.iter().enumerate() {
        if ip == HEADLESS {
            break;
        }
        if place < spec.ip_families.len() {
            continue;
        }
        match Family::of_text(ip) {
            Some(family) if cluster.has(family) => spec.ip_families.push(family.name().to_owned()),
            family => {
                let path = Path::new("spec").child("clusterIPs").index(place);
                let name = family.map_or("unknown", Family::name);
                let text = format!("{name} is not configured on this cluster");
                errors.push(FieldError::invalid(&path, shown_texts(&spec.cluster_ips), text));
            }
        }
    }
}

/// What the cluster does not have.
fn known_to(cluster: Families, spec: &ServiceSpec) -> ErrorList {
    let mut errors = ErrorList::default();
    if policy(spec) == REQUIRE && !cluster.both {
        let text = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(&policy_path(), policy(spec), text));
    }
    let path = Path::new("spec").child("ipFamilies");
    for (place, name) in spec.ip_families.iter().enumerate() {
        if !Family::named(name).is_some_and(|family| cluster.has(family)) {
            let text = "not configured on this cluster";
            errors.push(FieldError::invalid(&path.index(place), name, text));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lines, read, text};

    const V4: Families = Families {
        primary: Family::V4,
        both: false,
    };
    const BOTH: Families = Families {
        primary: Family::V6,
        both: true,
    };

    fn filled(cluster: Families, new: &str, old: Option<&str>) -> String {
        let mut new: ServiceSpec = read(new);
        let old: Option<ServiceSpec> = old.map(read);
        match fill(cluster, &mut new, old.as_ref()) {
            Ok(()) => format!("{} {}", new.ip_families.join(","), policy(&new)),
            Err(errors) => lines(&errors),
        }
    }

    #[test]
    fn families_follow_what_is_said() {
        for (cluster, spec, expected) in [
            (V4, "{}", "IPv4 SingleStack"),
            (BOTH, "{}", "IPv6 SingleStack"),
            (
                BOTH,
                r#"{"ipFamilyPolicy":"PreferDualStack"}"#,
                "IPv6,IPv4 PreferDualStack",
            ),
            (V4, r#"{"ipFamilyPolicy":"PreferDualStack"}"#, "IPv4 PreferDualStack"),
            (
                BOTH,
                r#"{"ipFamilies":["IPv4"],"ipFamilyPolicy":"RequireDualStack"}"#,
                "IPv4,IPv6 RequireDualStack",
            ),
            (
                BOTH,
                r#"{"clusterIP":"10.0.0.5","clusterIPs":["10.0.0.5"]}"#,
                "IPv4 SingleStack",
            ),
            (
                V4,
                r#"{"clusterIP":"None","clusterIPs":["None"]}"#,
                "IPv4,IPv6 RequireDualStack",
            ),
            (
                V4,
                r#"{"clusterIP":"None","clusterIPs":["None"],"selector":{"a":"b"}}"#,
                "IPv4 SingleStack",
            ),
            (
                V4,
                r#"{"clusterIP":"None","clusterIPs":["None"],"ipFamilies":["IPv6"]}"#,
                "IPv6,IPv4 RequireDualStack",
            ),
            (
                V4,
                r#"{"ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv6"]}"#,
                "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack \
                 services\nspec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
            ),
            (
                V4,
                r#"{"clusterIP":"fd00::1","clusterIPs":["fd00::1"]}"#,
                "spec.clusterIPs[0]: Invalid value: [\"fd00::1\"]: IPv6 is not configured on this cluster",
            ),
            (
                BOTH,
                r#"{"ipFamilies":["IPv4","IPv6"]}"#,
                "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' \
                 when multiple IP families are specified",
            ),
        ] {
            assert_eq!(filled(cluster, spec, None), expected, "{spec}");
        }
        let mut external: ServiceSpec = read(r#"{"type":"ExternalName"}"#);
        fill(BOTH, &mut external, None).unwrap();
        assert_eq!(text(&external), r#"{"type":"ExternalName"}"#);
    }

    #[test]
    fn a_second_family_comes_and_goes_by_the_policy() {
        let two = |policy: &str| {
            format!(
                r#"{{"clusterIP":"fd00::1","clusterIPs":["fd00::1","10.0.0.5"],"ipFamilies":["IPv6","IPv4"],
                    "ipFamilyPolicy":"{policy}"}}"#
            )
        };
        let old = two(REQUIRE);
        assert_eq!(filled(BOTH, &two(SINGLE), Some(&old)), "IPv6 SingleStack");
        assert_eq!(
            filled(
                BOTH,
                r#"{"clusterIP":"fd00::1","clusterIPs":["fd00::1"],"ipFamilies":["IPv6"]}"#,
                Some(&old)
            ),
            "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be 'SingleStack' to release the secondary \
             cluster IP\nspec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be 'SingleStack' to release the \
             secondary IP family"
        );
        let one = r#"{"clusterIP":"fd00::1","clusterIPs":["fd00::1"],"ipFamilies":["IPv6"],"type":"ClusterIP",
            "ipFamilyPolicy":"PreferDualStack"}"#;
        assert_eq!(
            filled(BOTH, one, Some(one)),
            "IPv6 PreferDualStack",
            "nothing was asked for"
        );
        assert_eq!(
            filled(BOTH, &one.replace(PREFER, REQUIRE), Some(one)),
            "IPv6,IPv4 RequireDualStack"
        );
    }
}
