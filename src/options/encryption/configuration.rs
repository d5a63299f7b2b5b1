//! `EncryptionConfiguration` of `apiserver.config.k8s.io/v1`: which resources are encrypted, and how.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keelson_access::authz::aggregate;
use keelson_configuration::apiserver_config_k8s_io::v1::{
    self, EncryptionConfiguration, KMSConfiguration, ProviderConfiguration, ResourceConfiguration,
};
use keelson_configuration::{ConfigurationError, FileError, Known};
use keelson_storage::encryption::{Configuration, Key, Kms, Provider, Rule, Secret, resources};

const KNOWN: Known = Known {
    kind: "EncryptionConfiguration",
    versions: &["apiserver.config.k8s.io/v1"],
};
/// How long a call of a key management service may take unless the configuration says.
const KMS_TIMEOUT: Duration = Duration::from_secs(3);

/// Key lengths of AES and of secretbox, in bytes.
const AES_KEYS: &[usize] = &[16, 24, 32];
const SECRETBOX_KEYS: &[usize] = &[32];

/// Why a configuration can't be used. Never shows a secret.
#[derive(Debug, thiserror::Error)]
pub enum EncryptionFileError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the file is empty")]
    Empty,
    /// It does not say its kind or version. What it does say are keys.
    #[error("Object '{0}' is missing")]
    Untyped(&'static str),
    /// It is of another kind, or has fields that are wrong or unknown.
    #[error(transparent)]
    Configuration(ConfigurationError),
    /// It names key management services, which the program can't call.
    #[error("this program was built without key management services: turn on the feature `kms` of the crate keelson")]
    WithoutServices,
    /// Values that make no sense; each text names the field.
    #[error("{}", aggregate(.0))]
    Invalid(Vec<String>),
}

impl From<ConfigurationError> for EncryptionFileError {
    fn from(error: ConfigurationError) -> EncryptionFileError {
        match error {
            ConfigurationError::Untyped { missing, .. } => EncryptionFileError::Untyped(missing),
            error => EncryptionFileError::Configuration(error),
        }
    }
}

/// Reads and checks the text of a file.
///
/// # Errors
/// All that [`EncryptionFileError`] has, but for files.
pub(super) fn read(text: &[u8]) -> Result<Configuration, EncryptionFileError> {
    if text.trim_ascii().is_empty() {
        return Err(EncryptionFileError::Empty);
    }
    let given: EncryptionConfiguration = keelson_configuration::read(text, &[KNOWN])?;
    let mut checks = Checks::default();
    if given.resources.is_empty() {
        checks.required("resources", "at least one resources is required");
    }
    let rules = given.resources.into_iter().enumerate();
    let rules: Vec<Rule> = rules
        .map(|(n, rule)| checks.rule(&format!("resources[{n}]"), rule))
        .collect();
    checks.services(&rules);
    resources::check_masks(&rules, &mut checks.mistakes);
    match checks.mistakes.is_empty() {
        true => Ok(Configuration { rules }),
        false => Err(EncryptionFileError::Invalid(checks.mistakes)),
    }
}

/// What is well-formed but not right.
#[derive(Default)]
struct Checks {
    mistakes: Vec<String>,
}

impl Checks {
    fn required(&mut self, path: &str, why: &str) {
        self.mistakes.push(format!("{path}: Required value: {why}"));
    }

    fn invalid(&mut self, path: &str, value: &str, why: impl std::fmt::Display) {
        self.mistakes.push(format!("{path}: Invalid value: {value}: {why}"));
    }

    fn rule(&mut self, path: &str, given: ResourceConfiguration) -> Rule {
        let at = format!("{path}.resources");
        if given.resources.is_empty() {
            self.required(&at, &format!("at least one {at} is required"));
        }
        resources::check(&at, &given.resources, &mut self.mistakes);
        let at = format!("{path}.providers");
        if given.providers.is_empty() {
            self.required(&at, &format!("at least one {at} is required"));
        }
        let providers = given.providers.into_iter().enumerate();
        let providers = providers.filter_map(|(n, provider)| self.provider(&format!("{at}[{n}]"), provider));
        Rule {
            providers: providers.collect(),
            resources: given.resources,
        }
    }

    /// `None`: a mistake, which is noted.
    fn provider(&mut self, path: &str, given: ProviderConfiguration) -> Option<Provider> {
        let several = [
            given.aesgcm.is_some(),
            given.aescbc.is_some(),
            given.secretbox.is_some(),
            given.identity.is_some(),
            given.kms.is_some(),
        ];
        if several.iter().filter(|is_given| **is_given).count() > 1 {
            let why = "more than one provider specified in a single element, should split into different list elements";
            self.mistakes.push(format!("{path}: Invalid value: {why}"));
            return None;
        }
        if let Some(aes) = given.aesgcm {
            return Some(Provider::AesGcm(self.keys(
                &format!("{path}.aesgcm"),
                aes.keys,
                AES_KEYS,
            )));
        }
        if let Some(aes) = given.aescbc {
            return Some(Provider::AesCbc(self.keys(
                &format!("{path}.aescbc"),
                aes.keys,
                AES_KEYS,
            )));
        }
        if let Some(secretbox) = given.secretbox {
            let keys = self.keys(&format!("{path}.secretbox"), secretbox.keys, SECRETBOX_KEYS);
            return Some(Provider::Secretbox(keys));
        }
        if let Some(kms) = given.kms {
            return self.kms(&format!("{path}.kms"), *kms).map(Provider::Kms);
        }
        if given.identity.is_none() {
            let why =
                "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity";
            self.mistakes.push(format!("{path}: Invalid value: {why}"));
            return None;
        }
        Some(Provider::Identity)
    }

    fn keys(&mut self, path: &str, given: Vec<v1::Key>, lengths: &[usize]) -> Vec<Key> {
        if given.is_empty() {
            self.required(&format!("{path}.keys"), "at least one keys is required");
        }
        let mut keys = Vec::new();
        for (n, key) in given.into_iter().enumerate() {
            let path = format!("{path}.keys[{n}]");
            if key.name.is_empty() {
                self.required(&format!("{path}.name"), "name is a mandatory field for a key");
            }
            keys.push(Key {
                secret: self.secret(&format!("{path}.secret"), &key.secret, lengths),
                name: key.name,
            });
        }
        keys
    }

    fn secret(&mut self, path: &str, text: &str, lengths: &[usize]) -> Secret {
        let bytes = STANDARD.decode(text).map(Secret::new);
        match &bytes {
            _ if text.is_empty() => self.required(path, "secret is a mandatory field for a key"),
            Err(_) => self.invalid(path, "\"REDACTED\"", "secrets must be base64 encoded"),
            Ok(secret) if !lengths.contains(&secret.bytes().len()) => {
                let (got, wanted) = (secret.bytes().len(), lengths.iter().map(ToString::to_string));
                let wanted = wanted.collect::<Vec<_>>().join(" ");
                let why = format!("secret is not of the expected length, got {got}, expected one of [{wanted}]");
                self.invalid(path, "\"REDACTED\"", why);
            }
            Ok(_) => {}
        }
        bytes.unwrap_or_else(|_| Secret::new(Vec::new()))
    }

    fn kms(&mut self, path: &str, given: KMSConfiguration) -> Option<Kms> {
        let before = self.mistakes.len();
        let (at, name) = (format!("{path}.name"), given.name);
        if name.is_empty() {
            self.required(&at, "name is a mandatory field for a provider");
        } else if name.contains(':') {
            let why = format!("invalid KMS provider name {name}, must not contain ':'");
            self.invalid(&at, &format!("{name:?}"), why);
        }
        match given.api_version.as_str() {
            "v2" => {}
            "" | "v1" => self.mistakes.push(format!(
                "{path}.apiVersion: KMSv1 is deprecated and not supported. Use KMSv2 instead: apiVersion: v2"
            )),
            other => {
                let why = "unsupported apiVersion for KMS provider, only v2 is supported";
                self.invalid(&format!("{path}.apiVersion"), &format!("{other:?}"), why);
            }
        }
        if let Some(size) = given.cachesize {
            let why = "cachesize is not supported in v2";
            self.invalid(&format!("{path}.cachesize"), &size.to_string(), why);
        }
        let timeout = given.timeout.map_or(KMS_TIMEOUT, |timeout| timeout.to_std());
        if timeout.is_zero() {
            let shown = given.timeout.unwrap_or_default().to_string();
            let why = "timeout should be a positive value";
            self.invalid(&format!("{path}.timeout"), &format!("{shown:?}"), why);
        }
        let endpoint = self.endpoint(&format!("{path}.endpoint"), &given.endpoint);
        (self.mistakes.len() == before).then_some(Kms {
            name,
            endpoint,
            timeout,
        })
    }

    fn endpoint(&mut self, path: &str, text: &str) -> PathBuf {
        let shown = format!("{text:?}");
        if text.is_empty() {
            self.invalid(path, &shown, "endpoint is a mandatory field for a kms");
            return PathBuf::new();
        }
        let Some((scheme, rest)) = text.split_once(':').filter(|(scheme, _)| !scheme.is_empty()) else {
            let why = format!("invalid endpoint for kms provider, error: parse {text:?}: missing protocol scheme");
            self.invalid(path, &shown, why);
            return PathBuf::new();
        };
        if scheme != "unix" {
            let why = format!("unsupported scheme {scheme:?} for KMS provider, only unix is supported");
            self.invalid(path, &shown, why);
        }
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        // As in kube-apiserver, `unix:///@name` is the abstract socket `@name`.
        let socket = rest.strip_prefix("/@").map(|name| format!("@{name}"));
        socket.unwrap_or_else(|| rest.to_owned()).into()
    }

    /// Names of services are in what is stored: each may occur once.
    fn services(&mut self, rules: &[Rule]) {
        let mut names: Vec<&str> = Vec::new();
        for (r, rule) in rules.iter().enumerate() {
            for (p, provider) in rule.providers.iter().enumerate() {
                let Provider::Kms(kms) = provider else { continue };
                if names.contains(&kms.name.as_str()) {
                    let path = format!("resources[{r}].providers[{p}].kms.name");
                    let why = format!("duplicate KMS provider name {}, names must be unique", kms.name);
                    self.invalid(&path, &format!("{:?}", kms.name), why);
                }
                names.push(&kms.name);
            }
        }
    }
}

#[cfg(test)]
mod tests;
