//! Encryption at rest: what stands between an object's bytes and what a store keeps.
//!
//! A [`Configuration`] says which resources are encrypted and how; [`Encryption`] is what comes of it while a server
//! runs, and can be replaced meanwhile. Values begin with the prefixes of kube-apiserver (`k8s:enc:aescbc:v1:<key>:` …)
//! and are bound to their key in the store, so that either server reads what the other wrote.

mod aes_cbc;
mod aes_gcm;
mod chain;
mod config;
mod handle;
mod identity;
mod secret;
mod secretbox;
mod seeded;
#[cfg(test)]
mod tests;
mod transformer;

#[cfg(feature = "kms")]
pub mod kms;
#[cfg(not(feature = "kms"))]
mod no_kms;
pub mod resources;

pub use config::{Configuration, Key, Kms, Provider, Rule};
pub use handle::{Encryption, ForResource, RELOAD_INTERVAL, Reload, Reloads, UnhealthyService};
pub use secret::Secret;
pub use transformer::{Opened, TransformError, Transformer};

/// What every encrypted value begins with.
pub const PREFIX: &[u8] = b"k8s:enc:";
