//! Addresses of services: their own, those from outside, and the ranges that may come in.

use keelson_api::core::v1::{Service, ServiceSpec};

use super::super::HEADLESS;
use super::super::families::{Family, PREFER, REQUIRE, SINGLE, has_cluster_ip};
use super::{ONLY_BALANCED, is_balanced, is_headless};
use crate::cidr;
use crate::faults::Faults;
use crate::typed::shown_texts;

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const POLICIES: [&str; 3] = [PREFER, REQUIRE, SINGLE];
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// Cluster addresses, their families, and the policy that says how many there are.
pub fn cluster_ips(f: &mut Faults<'_>, spec: &ServiceSpec, stored: &[String]) {
    if !has_cluster_ip(spec) {
        return;
    }
    first(&mut f.at("clusterIPs"), spec);
    families(&mut f.at("ipFamilies"), &spec.ip_families);
    f.at("ipFamilyPolicy").one_of(&spec.ip_family_policy, &POLICIES);
    let f = &mut f.at("clusterIPs");
    let before = f.count();
    each(f, &spec.cluster_ips, stored);
    let are_addresses = f.count() == before;
    if spec.cluster_ips.len() > 2 {
        f.invalid(shown_texts(&spec.cluster_ips), "may only hold up to 2 values");
    }
    // Of what is no address there is nothing more to say.
    if are_addresses {
        of_each_family(f, &spec.cluster_ips);
        of_their_families(f, spec);
    }
}

/// The one address stands first in the list.
fn first(f: &mut Faults<'_>, spec: &ServiceSpec) {
    match (spec.cluster_ip.as_str(), spec.cluster_ips.first()) {
        ("", Some(_)) => {
            let text = "must be empty when `clusterIP` is not specified";
            f.invalid(shown_texts(&spec.cluster_ips), text);
        }
        ("", None) => {}
        (_, None) => f.required(""),
        (one, Some(first)) if one != first => {
            f.invalid(shown_texts(&spec.cluster_ips), "first value must match `clusterIP`");
        }
        _ => {}
    }
}

fn families(f: &mut Faults<'_>, names: &[String]) {
    for (place, name) in names.iter().enumerate() {
        if f.is_full() {
            break;
        }
        f.index(place).one_of(name, &FAMILIES);
        // More than a few are none that there are.
        if names.iter().take(place).any(|other| other == name) {
            f.index(place).duplicate(name);
        }
    }
}

fn each(f: &mut Faults<'_>, ips: &[String], stored: &[String]) {
    let stored: Vec<&str> = stored.iter().map(String::as_str).collect();
    for (place, text) in ips.iter().enumerate() {
        if f.is_full() {
            break;
        }
        if place > 0 || text != HEADLESS {
            f.index(place).ip(text, &stored);
        } else if ips.len() > 1 {
            f.invalid(shown_texts(ips), "'None' must be the first and only value");
        }
    }
}

fn of_each_family(f: &mut Faults<'_>, ips: &[String]) {
    let has = |family| ips.iter().any(|ip| Family::of_text(ip) == Some(family));
    if ips.len() > 1 && !(has(Family::V4) && has(Family::V6)) {
        f.invalid(shown_texts(ips), "may specify no more than one IP for each IP family");
    }
}

fn of_their_families(f: &mut Faults<'_>, spec: &ServiceSpec) {
    if is_headless(spec) {
        return;
    }
    for (place, (ip, family)) in spec.cluster_ips.iter().zip(&spec.ip_families).enumerate() {
        let is_v6 = Family::of_text(ip) == Some(Family::V6);
        if (family == "IPv4" && is_v6) || (family == "IPv6" && !is_v6) {
            let text = format!("expected an {family} value as indicated by `ipFamilies[{place}]`");
            f.index(place).invalid(ip, text);
        }
    }
}

/// Addresses that lead to the nodes, which the cluster does not give out.
pub fn external_ips(f: &mut Faults<'_>, new: &ServiceSpec, old: Option<&ServiceSpec>) {
    let stored = old.map_or(&[][..], |old| &old.external_ips);
    let stored: Vec<&str> = stored.iter().map(String::as_str).collect();
    f.each("externalIPs", &new.external_ips, |f, text| {
        let before = f.count();
        f.ip(text, &stored);
        if f.count() == before {
            f.reachable_ip(text);
        }
    });
}

/// The ranges that a load balancer lets in: a field, or an annotation that there was before it.
pub fn source_ranges(f: &mut Faults<'_>, new: &Service, old: Option<&Service>) {
    let spec = &new.spec;
    match new.metadata.annotations.get(SOURCE_RANGES) {
        _ if !spec.load_balancer_source_ranges.is_empty() => {
            ranges_of_field(&mut f.at("spec"), spec, old.map(|old| &old.spec));
        }
        Some(text) => {
            let before = old.and_then(|old| old.metadata.annotations.get(SOURCE_RANGES));
            let f = &mut f.at("metadata");
            let f = &mut f.at("annotations");
            ranges_of_annotation(&mut f.key(SOURCE_RANGES), spec, text, before == Some(text));
        }
        None => {}
    }
}

fn ranges_of_field(f: &mut Faults<'_>, spec: &ServiceSpec, old: Option<&ServiceSpec>) {
    // The capital letter is that of the API.
    const FIELD: &str = "LoadBalancerSourceRanges";
    f.at(FIELD).forbidden_if(!is_balanced(spec), ONLY_BALANCED);
    let stored = old.map_or(&[][..], |old| &old.load_balancer_source_ranges);
    let stored: Vec<&str> = stored.iter().map(|range| range.trim()).collect();
    f.each(FIELD, &spec.load_balancer_source_ranges, |f, text| {
        let faults = cidr::validate(text.trim(), &stored, &f.path());
        f.extend(faults);
    });
}

fn ranges_of_annotation(f: &mut Faults<'_>, spec: &ServiceSpec, text: &str, is_stored: bool) {
    f.forbidden_if(!is_balanced(spec), ONLY_BALANCED);
    if is_stored || text.trim().is_empty() {
        return;
    }
    for range in text.split(',') {
        if f.is_full() {
            break;
        }
        let faults = cidr::validate(range.trim(), &[], &f.path());
        f.extend(faults);
    }
}
