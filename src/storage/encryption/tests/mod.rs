//! Tests of the providers and their configuration.

mod configuration;
mod providers;

use std::time::Duration;

use super::{ConfigError, Configuration};

/// Seconds, for tests: `3s`.
fn seconds(text: &str) -> Result<Option<Duration>, String> {
    let number: i64 = text
        .trim_end_matches('s')
        .parse()
        .map_err(|_| format!("invalid duration {text:?}"))?;
    Ok(u64::try_from(number).ok().map(Duration::from_secs))
}

fn read(json: &str) -> Result<Configuration, ConfigError> {
    Configuration::read(json.as_bytes(), seconds)
}

/// A configuration with these rules: `resource,resource` and the providers as JSON.
fn configuration(rules: &[(&str, &str)]) -> Result<Configuration, ConfigError> {
    let rules = rules.iter().map(|(resources, providers)| {
        let resources: Vec<&str> = resources.split(',').collect();
        format!(r#"{{"resources":{resources:?},"providers":[{providers}]}}"#)
    });
    let rules: Vec<String> = rules.collect();
    read(&format!(
        r#"{{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration","resources":[{}]}}"#,
        rules.join(",")
    ))
}

/// A provider with keys `name` of `length` times this byte.
fn keyed(kind: &str, keys: &[(&str, u8, usize)]) -> String {
    use base64::Engine;
    let keys = keys.iter().map(|(name, byte, length)| {
        let secret = base64::engine::general_purpose::STANDARD.encode(vec![*byte; *length]);
        format!(r#"{{"name":"{name}","secret":"{secret}"}}"#)
    });
    let keys: Vec<String> = keys.collect();
    format!(r#"{{"{kind}":{{"keys":[{}]}}}}"#, keys.join(","))
}
