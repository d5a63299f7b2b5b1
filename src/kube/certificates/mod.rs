//! The group certificates.k8s.io.

mod certificate_signing_request;
mod cluster_trust_bundle;
mod conditions;
mod issued;
mod pod_certificate_request;
mod pod_issued;
mod request;
pub mod signers;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    certificate_signing_request::register(code);
    cluster_trust_bundle::register(code);
    pod_certificate_request::register(code);
}
