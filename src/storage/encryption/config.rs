//! `EncryptionConfiguration` of `apiserver.config.k8s.io/v1`: which resources are encrypted, and how.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::document::{Fields, Node};
use super::{ConfigError, Secret, resources};

const API_VERSION: &str = "apiserver.config.k8s.io/v1";
const KIND: &str = "EncryptionConfiguration";
/// How long a call of a key management service may take unless the configuration says.
const KMS_TIMEOUT: Duration = Duration::from_secs(3);

/// Key lengths of AES and of secretbox, in bytes.
const AES_KEYS: &[usize] = &[16, 24, 32];
const SECRETBOX_KEYS: &[usize] = &[32];

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
    /// Reads a configuration that stands as JSON. `duration` reads a span of time as Go writes it, `3s`.
    pub fn read(
        json: &[u8],
        duration: impl Fn(&str) -> Result<Option<Duration>, String>,
    ) -> Result<Configuration, ConfigError> {
        let document: Value = serde_json::from_slice(json).map_err(|error| ConfigError::new(error.to_string()))?;
        check_type(&document)?;
        let root = Node::root(&document).object(&["apiVersion", "kind", "metadata", "resources"])?;
        let mut reader = Reader {
            mistakes: Vec::new(),
            duration: &duration,
        };
        let rules = root.list("resources")?;
        if rules.is_empty() {
            reader.required("resources", "at least one resources is required");
        }
        let rules: Result<Vec<Rule>, ConfigError> = rules.iter().map(|node| reader.rule(node)).collect();
        let rules = rules?;
        reader.check_services(&rules);
        resources::check_masks(&rules, &mut reader.mistakes);
        ConfigError::of(reader.mistakes)?;
        Ok(Configuration { rules })
    }

    /// All key management services, with the rules that use them.
    pub fn services(&self) -> impl Iterator<Item = &Kms> {
        let providers = self.rules.iter().flat_map(|rule| &rule.providers);
        providers.filter_map(|provider| match provider {
            Provider::Kms(kms) => Some(kms),
            _ => None,
        })
    }
}

fn check_type(document: &Value) -> Result<(), ConfigError> {
    let of = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (of("apiVersion"), of("kind"));
    match (version, kind) {
        (API_VERSION, KIND) => Ok(()),
        (_, "") => Err(ConfigError::new("Object 'Kind' is missing")),
        ("", _) => Err(ConfigError::new("Object 'apiVersion' is missing")),
        _ => Err(ConfigError::new(format!(
            "no kind {kind:?} is registered for version {version:?}: must be {KIND} of {API_VERSION}"
        ))),
    }
}

struct Reader<'d> {
    /// What is well-formed but not right.
    mistakes: Vec<String>,
    duration: &'d dyn Fn(&str) -> Result<Option<Duration>, String>,
}

impl Reader<'_> {
    fn required(&mut self, path: &str, why: &str) {
        self.mistakes.push(format!("{path}: Required value: {why}"));
    }

    fn invalid(&mut self, path: &str, value: &str, why: impl std::fmt::Display) {
        self.mistakes.push(format!("{path}: Invalid value: {value}: {why}"));
    }

    fn rule(&mut self, node: &Node<'_>) -> Result<Rule, ConfigError> {
        let fields = node.object(&["resources", "providers"])?;
        let mut names = Vec::new();
        for name in fields.list("resources")? {
            names.push(name.text()?.to_owned());
        }
        let path = fields.path("resources");
        if names.is_empty() {
            self.required(&path, &format!("at least one {path} is required"));
        }
        resources::check(&path, &names, &mut self.mistakes);
        let listed = fields.list("providers")?;
        if listed.is_empty() {
            let path = fields.path("providers");
            self.required(&path, &format!("at least one {path} is required"));
        }
        let mut providers = Vec::new();
        for node in &listed {
            providers.extend(self.provider(node)?);
        }
        Ok(Rule {
            resources: names,
            providers,
        })
    }

    /// `None`: a mistake, which is noted.
    fn provider(&mut self, node: &Node<'_>) -> Result<Option<Provider>, ConfigError> {
        const KINDS: [&str; 5] = ["aesgcm", "aescbc", "secretbox", "identity", "kms"];
        let fields = node.object(&KINDS)?;
        let given: Vec<Node<'_>> = KINDS.iter().filter_map(|kind| fields.get(kind)).collect();
        let [provider] = &given[..] else {
            let why = match given.is_empty() {
                true => {
                    "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"
                }
                false => {
                    "more than one provider specified in a single element, should split into different list elements"
                }
            };
            self.mistakes.push(format!("{}: Invalid value: {why}", node.path));
            return Ok(None);
        };
        Ok(Some(match provider.path.rsplit('.').next() {
            Some("aesgcm") => Provider::AesGcm(self.keys(provider, AES_KEYS)?),
            Some("aescbc") => Provider::AesCbc(self.keys(provider, AES_KEYS)?),
            Some("secretbox") => Provider::Secretbox(self.keys(provider, SECRETBOX_KEYS)?),
            Some("kms") => return Ok(self.kms(provider)?.map(Provider::Kms)),
            _ => provider.object(&[]).map(|_| Provider::Identity)?,
        }))
    }

    fn keys(&mut self, node: &Node<'_>, lengths: &[usize]) -> Result<Vec<Key>, ConfigError> {
        let fields = node.object(&["keys"])?;
        let listed = fields.list("keys")?;
        if listed.is_empty() {
            self.required(&fields.path("keys"), "at least one keys is required");
        }
        let mut keys: Vec<Key> = Vec::new();
        for node in &listed {
            let fields = node.object(&["name", "secret"])?;
            let name = fields.text("name")?.to_owned();
            if name.is_empty() {
                self.required(&fields.path("name"), "name is a mandatory field for a key");
            }
            let secret = self.secret(&fields, lengths)?;
            keys.push(Key { name, secret });
        }
        Ok(keys)
    }

    fn secret(&mut self, fields: &Fields<'_>, lengths: &[usize]) -> Result<Secret, ConfigError> {
        let path = fields.path("secret");
        let text = fields.text("secret")?;
        let bytes = STANDARD.decode(text).map(Secret::new);
        match &bytes {
            _ if text.is_empty() => self.required(&path, "secret is a mandatory field for a key"),
            Err(_) => self.invalid(&path, "\"REDACTED\"", "secrets must be base64 encoded"),
            Ok(secret) if !lengths.contains(&secret.bytes().len()) => {
                let (got, wanted) = (secret.bytes().len(), lengths.iter().map(ToString::to_string));
                let wanted = wanted.collect::<Vec<_>>().join(" ");
                let why = format!("secret is not of the expected length, got {got}, expected one of [{wanted}]");
                self.invalid(&path, "\"REDACTED\"", why);
            }
            Ok(_) => {}
        }
        Ok(bytes.unwrap_or_else(|_| Secret::new(Vec::new())))
    }

    fn kms(&mut self, node: &Node<'_>) -> Result<Option<Kms>, ConfigError> {
        let before = self.mistakes.len();
        let fields = node.object(&["apiVersion", "name", "cachesize", "endpoint", "timeout"])?;
        let name = fields.text("name")?.to_owned();
        let path = fields.path("name");
        if name.is_empty() {
            self.required(&path, "name is a mandatory field for a provider");
        } else if name.contains(':') {
            let why = format!("invalid KMS provider name {name}, must not contain ':'");
            self.invalid(&path, &format!("{name:?}"), why);
        }
        match fields.text("apiVersion")? {
            "v2" => {}
            "" | "v1" => self.mistakes.push(format!(
                "{}: KMSv1 is deprecated and not supported. Use KMSv2 instead: apiVersion: v2",
                fields.path("apiVersion")
            )),
            other => {
                let why = "unsupported apiVersion for KMS provider, only v2 is supported";
                self.invalid(&fields.path("apiVersion"), &format!("{other:?}"), why);
            }
        }
        if let Some(size) = fields.get("cachesize") {
            let why = "cachesize is not supported in v2";
            self.invalid(&size.path, &size.integer()?.to_string(), why);
        }
        let timeout = self.timeout(&fields)?;
        let endpoint = self.endpoint(&fields)?;
        Ok((self.mistakes.len() == before).then_some(Kms {
            name,
            endpoint,
            timeout,
        }))
    }

    fn timeout(&mut self, fields: &Fields<'_>) -> Result<Duration, ConfigError> {
        let Some(node) = fields.get("timeout") else {
            return Ok(KMS_TIMEOUT);
        };
        let text = node.text()?;
        match (self.duration)(text) {
            Ok(Some(timeout)) if !timeout.is_zero() => Ok(timeout),
            Ok(_) => {
                self.invalid(&node.path, &format!("{text:?}"), "timeout should be a positive value");
                Ok(KMS_TIMEOUT)
            }
            Err(reason) => Err(ConfigError::new(format!("{}: {reason}", node.path))),
        }
    }

    fn endpoint(&mut self, fields: &Fields<'_>) -> Result<PathBuf, ConfigError> {
        let (path, text) = (fields.path("endpoint"), fields.text("endpoint")?);
        let shown = format!("{text:?}");
        if text.is_empty() {
            self.invalid(&path, &shown, "endpoint is a mandatory field for a kms");
            return Ok(PathBuf::new());
        }
        let Some((scheme, rest)) = text.split_once(':').filter(|(scheme, _)| !scheme.is_empty()) else {
            let why = format!("invalid endpoint for kms provider, error: parse {text:?}: missing protocol scheme");
            self.invalid(&path, &shown, why);
            return Ok(PathBuf::new());
        };
        if scheme != "unix" {
            let why = format!("unsupported scheme {scheme:?} for KMS provider, only unix is supported");
            self.invalid(&path, &shown, why);
        }
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        // As in kube-apiserver, `unix:///@name` is the abstract socket `@name`.
        Ok(PathBuf::from(
            rest.strip_prefix("/@")
                .map_or(rest.to_owned(), |name| format!("@{name}")),
        ))
    }

    /// Names of services are in what is stored: each may occur once.
    fn check_services(&mut self, rules: &[Rule]) {
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
