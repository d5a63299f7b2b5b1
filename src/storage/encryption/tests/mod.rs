//! Tests of the providers.

mod providers;

use super::{Configuration, Key, Provider, Rule, Secret};

/// A configuration with these rules: `resource,resource` and the providers.
fn configuration(rules: &[(&str, &[&Provider])]) -> Configuration {
    let rules = rules.iter().map(|(resources, providers)| Rule {
        resources: resources.split(',').map(str::to_owned).collect(),
        providers: providers.iter().map(|provider| (*provider).clone()).collect(),
    });
    Configuration { rules: rules.collect() }
}

/// A provider with keys `name` of `length` times this byte.
fn keyed(kind: &str, keys: &[(&str, u8, usize)]) -> Provider {
    let keys = keys.iter().map(|(name, byte, length)| Key {
        name: (*name).to_owned(),
        secret: Secret::new(vec![*byte; *length]),
    });
    let keys = keys.collect();
    match kind {
        "aescbc" => Provider::AesCbc(keys),
        "aesgcm" => Provider::AesGcm(keys),
        "secretbox" => Provider::Secretbox(keys),
        other => panic!("{other}"),
    }
}
