//! The status of services: by which addresses a load balancer is reached.

use keelson_api::core::v1::{LoadBalancerIngress, Service};
use keelson_machinery::field::ErrorList;

use super::is_balanced;
use crate::faults::{self, Faults};
use crate::ip;

const MODES: [&str; 2] = ["Proxy", "VIP"];

/// The rules of a change of the status.
pub fn of_status(new: &Service, old: &Service) -> ErrorList {
    faults::of_object(|f| {
        let f = &mut f.at("status");
        let f = &mut f.at("loadBalancer");
        let (now, before) = (&new.status.load_balancer.ingress, &old.status.load_balancer.ingress);
        if !is_balanced(&new.spec) && !now.is_empty() {
            let text = "may only be used when `spec.type` is 'LoadBalancer'";
            return f.at("ingress").forbidden(text);
        }
        let stored: Vec<&str> = before.iter().map(|ingress| ingress.ip.as_str()).collect();
        f.each("ingress", now, |f, ingress| one(f, ingress, &stored));
    })
}

fn one(f: &mut Faults<'_>, ingress: &LoadBalancerIngress, stored: &[&str]) {
    let has_ip = !ingress.ip.is_empty();
    if has_ip {
        f.at("ip").ip(&ingress.ip, stored);
    }
    match ingress.ip_mode.as_deref() {
        None if has_ip => f.at("ipMode").required("must be specified when `ip` is set"),
        Some(_) if !has_ip => f.at("ipMode").forbidden("may not be specified when `ip` is not set"),
        Some(mode) => f.at("ipMode").one_of(mode, &MODES),
        None => {}
    }
    let (name, f) = (&ingress.hostname, &mut f.at("hostname"));
    if !name.is_empty() {
        f.subdomain(name);
        f.invalid_if(ip::parse(name).is_some(), name, "must be a DNS name, not an IP address");
    }
}
