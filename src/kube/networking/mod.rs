//! The group networking.k8s.io.

mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod service_cidr;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    ingress::register(code);
    ingress_class::register(code);
    ip_address::register(code);
    network_policy::register(code);
    service_cidr::register(code);
}
