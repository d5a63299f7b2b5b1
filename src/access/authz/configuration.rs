//! The file of `--authorization-config`: which authorizers are asked, in which order, and how the webhooks among them
//! are.

use std::collections::BTreeSet;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use keelson_configuration::apiserver_config_k8s_io::v1;
use keelson_configuration::{ConfigurationError, Known};
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::time;
use keelson_machinery::validation::names::dns_subdomain;

use super::webhook::{FailurePolicy, MAX_CONDITIONS, MatchConditions, Version};

const KNOWN: Known = Known {
    kind: "AuthorizationConfiguration",
    versions: &[
        "apiserver.config.k8s.io/v1",
        "apiserver.config.k8s.io/v1beta1",
        "apiserver.config.k8s.io/v1alpha1",
    ],
};
/// How long a call of a webhook may take.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);
const AUTHORIZED_TTL: Duration = Duration::from_secs(5 * 60);
const UNAUTHORIZED_TTL: Duration = Duration::from_secs(30);

/// A type of authorizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorizerKind {
    AlwaysAllow,
    AlwaysDeny,
    Abac,
    Webhook,
    Rbac,
    Node,
}

impl AuthorizerKind {
    /// All, in the order of their names.
    pub const NAMES: [(&'static str, AuthorizerKind); 6] = [
        ("ABAC", AuthorizerKind::Abac),
        ("AlwaysAllow", AuthorizerKind::AlwaysAllow),
        ("AlwaysDeny", AuthorizerKind::AlwaysDeny),
        ("Node", AuthorizerKind::Node),
        ("RBAC", AuthorizerKind::Rbac),
        ("Webhook", AuthorizerKind::Webhook),
    ];

    pub fn parse(name: &str) -> Option<AuthorizerKind> {
        let found = AuthorizerKind::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind)
    }

    pub fn name(self) -> &'static str {
        let found = AuthorizerKind::NAMES.iter().find(|(_, kind)| *kind == self);
        found.map_or("", |(name, _)| name)
    }
}

/// The authorizers in their order.
#[derive(Clone, Debug)]
pub struct AuthorizationConfiguration {
    pub authorizers: Vec<AuthorizerConfiguration>,
}

#[derive(Clone, Debug)]
pub struct AuthorizerConfiguration {
    pub kind: AuthorizerKind,
    /// In metrics; of all but webhooks the kind in lower case.
    pub name: String,
    /// Of webhooks alone.
    pub webhook: Option<WebhookConfiguration>,
}

/// How a webhook is asked. Times to live of zero: nothing is remembered.
#[derive(Clone, Debug)]
pub struct WebhookConfiguration {
    pub timeout: Duration,
    pub authorized_ttl: Duration,
    pub unauthorized_ttl: Duration,
    pub version: Version,
    pub failure_policy: FailurePolicy,
    pub connection: Connection,
    pub conditions: Arc<MatchConditions>,
}

/// How a webhook is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connection {
    Kubeconfig(std::path::PathBuf),
    InCluster,
}

impl AuthorizationConfiguration {
    /// Reads and checks the text of a file, its expressions included. An empty one has no authorizers.
    ///
    /// # Errors
    /// All that [`AuthorizationConfigurationError`] has.
    pub fn read(text: &[u8]) -> Result<AuthorizationConfiguration, AuthorizationConfigurationError> {
        let given: v1::AuthorizationConfiguration = match text.is_empty() {
            true => v1::AuthorizationConfiguration::default(),
            false => keelson_configuration::read(text, &[KNOWN])?,
        };
        checked(&given.authorizers)
    }
}

/// What is wrong with the file, in kube-apiserver's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AuthorizationConfigurationError {
    /// It is not of this kind, or has fields that are wrong or unknown.
    #[error("failed to load AuthorizationConfiguration from file: {0}")]
    File(#[from] ConfigurationError),
    /// Values that make no sense.
    #[error("{0}")]
    Invalid(ErrorList),
    /// An authorizer that is no webhook has another name than its own.
    #[error("expected name {own} for authorizer {kind} instead of {name}")]
    Name {
        /// The only name that it may have.
        own: String,
        kind: &'static str,
        name: String,
    },
}

/// The authorizers, if nothing is wrong with any of them.
fn checked(
    given: &[v1::AuthorizerConfiguration],
) -> Result<AuthorizationConfiguration, AuthorizationConfigurationError> {
    let path = Path::new("authorizers");
    let mut errors = ErrorList::new();
    if given.is_empty() {
        errors.push(FieldError::required(
            &path,
            "at least one authorization mode must be defined",
        ));
    }
    let (mut kinds, mut names) = (BTreeSet::new(), BTreeSet::new());
    let mut authorizers = Vec::new();
    for (n, one) in given.iter().enumerate() {
        let path = path.index(n);
        let kind_path = path.child("type");
        if one.r#type.is_empty() {
            errors.push(FieldError::required(&kind_path, ""));
            continue;
        }
        let kind = AuthorizerKind::parse(&one.r#type);
        if kind.is_none() {
            let known = AuthorizerKind::NAMES.map(|(name, _)| name);
            errors.push(FieldError::not_supported(&kind_path, &one.r#type, &known));
        }
        if !kinds.insert(&one.r#type) && kind != Some(AuthorizerKind::Webhook) {
            errors.push(FieldError::duplicate(&kind_path, &one.r#type));
        }
        check_name(&path.child("name"), &one.name, &mut names, &mut errors);
        let webhook = check_place(&path, kind, one.webhook.as_deref(), &mut errors);
        authorizers.extend(kind.map(|kind| AuthorizerConfiguration {
            kind,
            name: one.name.clone(),
            webhook,
        }));
    }
    if !errors.is_empty() {
        return Err(AuthorizationConfigurationError::Invalid(errors));
    }
    check_own_names(&authorizers)?;
    Ok(AuthorizationConfiguration { authorizers })
}

/// All but webhooks have one name.
fn check_own_names(authorizers: &[AuthorizerConfiguration]) -> Result<(), AuthorizationConfigurationError> {
    for one in authorizers.iter().filter(|one| one.kind != AuthorizerKind::Webhook) {
        let (kind, own) = (one.kind.name(), one.kind.name().to_lowercase());
        if one.name != own {
            let name = one.name.clone();
            return Err(AuthorizationConfigurationError::Name { own, kind, name });
        }
    }
    Ok(())
}

fn check_name<'a>(path: &Path, name: &'a str, known: &mut BTreeSet<&'a str>, errors: &mut ErrorList) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    if !known.insert(name) {
        errors.push(FieldError::duplicate(path, name));
    }
    let wrong = dns_subdomain(name);
    if !wrong.is_empty() {
        let text = format!("authorizer name is invalid: {}", wrong.join(", "));
        errors.push(FieldError::invalid(path, name, text));
    }
}

/// Webhooks say how they are asked, and nobody else does.
fn check_place(
    path: &Path,
    kind: Option<AuthorizerKind>,
    webhook: Option<&v1::WebhookConfiguration>,
    errors: &mut ErrorList,
) -> Option<WebhookConfiguration> {
    match (kind, webhook) {
        (Some(AuthorizerKind::Webhook), None) => {
            errors.push(FieldError::required(
                &path.child("webhook"),
                "required when type=Webhook",
            ));
            None
        }
        (Some(AuthorizerKind::Webhook), Some(webhook)) => Given(webhook).check(path, errors),
        (Some(_), Some(_)) => {
            let text = "may only be specified when type=Webhook";
            errors.push(FieldError::invalid(&path.child("webhook"), "non-null", text));
            None
        }
        _ => None,
    }
}

/// A webhook as it is written.
struct Given<'a>(&'a v1::WebhookConfiguration);

impl Given<'_> {
    fn check(&self, path: &Path, errors: &mut ErrorList) -> Option<WebhookConfiguration> {
        let before = errors.len();
        self.check_times(path, errors);
        let version = self.check_version(path, errors);
        let failure_policy = self.check_policy(&path.child("failurePolicy"), errors);
        let connection = self.check_connection(&path.child("connectionInfo"), errors);
        let conditions = self.check_conditions(&path.child("matchConditions"), errors);
        if errors.len() > before {
            return None;
        }
        let given = self.0;
        let ttl = |remembered: Option<bool>, given: time::Duration, default| match (remembered, given.to_std()) {
            (Some(false), _) => Duration::ZERO,
            (_, Duration::ZERO) => default,
            (_, given) => given,
        };
        Some(WebhookConfiguration {
            timeout: given.timeout.to_std(),
            authorized_ttl: ttl(given.cache_authorized_requests, given.authorized_ttl, AUTHORIZED_TTL),
            unauthorized_ttl: ttl(
                given.cache_unauthorized_requests,
                given.unauthorized_ttl,
                UNAUTHORIZED_TTL,
            ),
            version: version?,
            failure_policy: failure_policy?,
            connection: connection?,
            conditions: Arc::new(conditions),
        })
    }

    fn check_times(&self, path: &Path, errors: &mut ErrorList) {
        let (at, zero) = (path.child("timeout"), time::Duration::default());
        match self.0.timeout {
            given if given == zero => errors.push(FieldError::required(&at, "")),
            given if given < zero || given.to_std() > MAX_TIMEOUT => {
                errors.push(FieldError::invalid(&at, given.to_string(), "must be > 0s and <= 30s"));
            }
            _ => {}
        }
        let lives = [
            ("authorizedTTL", self.0.authorized_ttl),
            ("unauthorizedTTL", self.0.unauthorized_ttl),
        ];
        for (name, given) in lives.into_iter().filter(|(_, given)| *given < zero) {
            errors.push(FieldError::invalid(
                &path.child(name),
                given.to_string(),
                "must be > 0s",
            ));
        }
    }

    fn check_version(&self, path: &Path, errors: &mut ErrorList) -> Option<Version> {
        let at = path.child("subjectAccessReviewVersion");
        let version = Version::parse(&self.0.subject_access_review_version);
        match (self.0.subject_access_review_version.as_str(), version) {
            ("", _) => errors.push(FieldError::required(&at, "")),
            (given, None) => errors.push(FieldError::not_supported(&at, given, &["v1", "v1beta1"])),
            _ => {}
        }
        let at = path.child("matchConditionSubjectAccessReviewVersion");
        let given = self.0.match_condition_subject_access_review_version.as_str();
        match (given, self.0.match_conditions.is_empty()) {
            ("", true) | ("v1", _) => {}
            ("", false) => errors.push(FieldError::required(&at, "required if match conditions are specified")),
            (given, _) => errors.push(FieldError::not_supported(&at, given, &["v1"])),
        }
        version
    }

    fn check_policy(&self, at: &Path, errors: &mut ErrorList) -> Option<FailurePolicy> {
        match self.0.failure_policy.as_str() {
            "NoOpinion" => return Some(FailurePolicy::NoOpinion),
            "Deny" => return Some(FailurePolicy::Deny),
            "" => errors.push(FieldError::required(at, "")),
            given => errors.push(FieldError::not_supported(at, given, &["NoOpinion", "Deny"])),
        }
        None
    }

    fn check_connection(&self, path: &Path, errors: &mut ErrorList) -> Option<Connection> {
        let at = path.child("kubeConfigFile");
        let given = &self.0.connection_info;
        let file = given.kube_config_file.as_deref().unwrap_or_default();
        match (given.r#type.as_str(), &given.kube_config_file) {
            ("", _) => errors.push(FieldError::required(&path.child("type"), "")),
            ("InClusterConfig", None) => return Some(Connection::InCluster),
            ("InClusterConfig", Some(_)) => {
                errors.push(FieldError::invalid(
                    &at,
                    file,
                    "can only be set when type=KubeConfigFile",
                ));
            }
            ("KubeConfigFile", _) if file.is_empty() => errors.push(FieldError::required(&at, "")),
            ("KubeConfigFile", _) => match check_file(file) {
                Ok(()) => return Some(Connection::Kubeconfig(file.into())),
                Err(why) => errors.push(FieldError::invalid(&at, file, why.to_string())),
            },
            (given, file) => {
                let shown = serde_json::json!({"Type": given, "KubeConfigFile": file});
                let value = keelson_machinery::field::BadValue::json(shown.to_string());
                let known = ["InClusterConfig", "KubeConfigFile"];
                errors.push(FieldError::not_supported(&path.child("type"), value, &known));
            }
        }
        None
    }

    fn check_conditions(&self, path: &Path, errors: &mut ErrorList) -> MatchConditions {
        let mut conditions = MatchConditions::default();
        let given = &self.0.match_conditions;
        if given.len() > MAX_CONDITIONS {
            errors.push(FieldError::too_many(path, given.len(), MAX_CONDITIONS));
            return conditions;
        }
        let mut known = BTreeSet::new();
        for (n, condition) in given.iter().enumerate() {
            let expression = &condition.expression;
            let at = path.index(n).child("expression");
            if expression.trim().is_empty() {
                errors.push(FieldError::required(&at, ""));
            } else if !known.insert(expression) {
                errors.push(FieldError::duplicate(&at, expression));
            } else if let Err(error) = conditions.add(expression) {
                errors.push(FieldError::invalid(&at, expression, error.to_string()));
            }
        }
        conditions
    }
}

/// Why a path leads to no file that could be read.
#[derive(Debug, thiserror::Error)]
enum PathError {
    #[error("must be an absolute path")]
    Relative,
    #[error("error loading file: stat {0}: no such file or directory")]
    NotFound(String),
    #[error("error loading file: stat {path}: {error}")]
    Stat { path: String, error: std::io::Error },
    #[error("must be a regular file")]
    NotRegular,
}

fn check_file(path: &str) -> Result<(), PathError> {
    let file = FilePath::new(path);
    if !file.is_absolute() {
        return Err(PathError::Relative);
    }
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(PathError::NotFound(path.to_owned())),
        Err(error) => Err(PathError::Stat {
            path: path.to_owned(),
            error,
        }),
        Ok(found) if !found.is_file() => Err(PathError::NotRegular),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
