//! The group certificates.k8s.io.

pub mod certificate_signing_request;
mod conditions;
mod issued;
pub mod signers;
