//! Changes of services: the first address and its family stay, a second one comes and goes.

use keelson_api::core::v1::{Service, ServiceSpec};
use keelson_machinery::field::ErrorList;

use super::super::families::{SINGLE, has_cluster_ip};
use super::{balancer_class, is_balanced, is_headless, needs_health_check, of_service};
use crate::faults::{self, Faults};
use crate::typed::{IMMUTABLE, shown_texts};

const FIXED: &str = "may not change once set";

/// The rules of an update.
pub fn of_change(new: &Service, old: &Service) -> ErrorList {
    faults::of_object(|f| {
        of_spec(&mut f.at("spec"), &new.spec, &old.spec);
        of_service(f, new, Some(old));
    })
}

fn of_spec(f: &mut Faults<'_>, new: &ServiceSpec, old: &ServiceSpec) {
    if has_cluster_ip(new) && has_cluster_ip(old) {
        addresses(f, new, old);
        families(f, new, old);
    }
    class(&mut f.at("loadBalancerClass"), new, old);
    let is_checked = needs_health_check(old) && needs_health_check(new);
    if is_checked && new.health_check_node_port != old.health_check_node_port {
        f.at("healthCheckNodePort").forbidden(IMMUTABLE);
    }
}

fn addresses(f: &mut Faults<'_>, new: &ServiceSpec, old: &ServiceSpec) {
    if is_headless(new) && is_headless(old) {
        return;
    }
    let (now, before) = (&new.cluster_ips, &old.cluster_ips);
    if before.len() > now.len() && now.is_empty() {
        let text = "primary clusterIP can not be unset";
        f.at("clusterIPs").index(0).invalid(shown_texts(now), text);
    }
    // Where one comes or goes, the first is looked at alone.
    let looked_at = if now.len() == before.len() { now.len() } else { 1 };
    for (place, (is, was)) in now.iter().zip(before).take(looked_at).enumerate() {
        if is != was {
            f.at("clusterIPs").index(place).invalid(shown_texts(now), FIXED);
        }
    }
    if before.len() > now.len() && now.len() == 1 {
        single(&mut f.at("ipFamilyPolicy"), new, "clusterIP");
    }
}

/// A second one goes by the policy alone.
fn single(f: &mut Faults<'_>, spec: &ServiceSpec, what: &str) {
    let policy = spec.ip_family_policy.as_deref();
    if policy != Some(SINGLE) {
        let text = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        f.invalid(policy, text);
    }
}

fn families(f: &mut Faults<'_>, new: &ServiceSpec, old: &ServiceSpec) {
    // Those of a service without an address may change.
    if is_headless(new) || is_headless(old) {
        return;
    }
    let (now, before) = (&new.ip_families, &old.ip_families);
    if now.len() == before.len() {
        for _ in now.iter().zip(before).filter(|(now, before)| now != before) {
            f.at("ipFamilies").index(0).invalid(shown_texts(now), FIXED);
        }
        return;
    }
    let is_less = now.len() < before.len();
    if is_less && new.cluster_ips.is_empty() {
        let text = "primary ipFamily can not be unset";
        f.at("ipFamilies").index(0).invalid(shown_texts(now), text);
    }
    if matches!((now.first(), before.first()), (Some(now), Some(before)) if now != before) {
        // What is shown is not what is wrong, in the API too.
        f.at("ipFamilies")
            .index(0)
            .invalid(shown_texts(&new.cluster_ips), FIXED);
    }
    if is_less && now.len() == 1 {
        single(&mut f.at("ipFamilyPolicy"), new, "ipFamily");
    }
}

fn class(f: &mut Faults<'_>, new: &ServiceSpec, old: &ServiceSpec) {
    if is_balanced(new) && is_balanced(old) && new.load_balancer_class != old.load_balancer_class {
        f.invalid(new.load_balancer_class.as_deref(), FIXED);
    }
    balancer_class(f, new);
}
