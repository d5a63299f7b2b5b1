//! The checked `EncryptionConfiguration`: which resources are encrypted, and how.

use std::path::PathBuf;
use std::time::Duration;

use super::Secret;

/// A checked configuration.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Configuration {
    pub rules: Vec<Rule>,
}

/// How some resources are stored: the first provider writes, all read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// `secrets`, `deployments.apps`, `*.apps`, `*.` (those without a group), `*.*`.
    pub resources: Vec<String>,
    pub providers: Vec<Provider>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Provider {
    Identity,
    AesCbc(Vec<Key>),
    AesGcm(Vec<Key>),
    Secretbox(Vec<Key>),
    Kms(Kms),
}

/// A key of the configuration itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    pub name: String,
    pub secret: Secret,
}

/// A key management service, version 2 of its protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kms {
    pub name: String,
    /// Path of the unix socket; one that begins with `@` is in the abstract name space of Linux.
    pub endpoint: PathBuf,
    /// How long a call may take.
    pub timeout: Duration,
}

impl Configuration {
    /// All key management services, with the rules that use them.
    pub fn services(&self) -> impl Iterator<Item = &Kms> {
        let providers = self.rules.iter().flat_map(|rule| &rule.providers);
        providers.filter_map(|provider| match provider {
            Provider::Kms(kms) => Some(kms),
            _ => None,
        })
    }
}
