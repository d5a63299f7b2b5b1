//! Authorization options.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use keelson_access::authz::Abac;
use keelson_access::authz::configuration::{
    AuthorizationConfiguration, AuthorizerConfiguration, AuthorizerKind, Connection, WebhookConfiguration,
};
use keelson_access::authz::webhook::{FailurePolicy, Version};
use keelson_configuration::read_file;
use keelson_machinery::time;

use super::{OptionError, values};

pub(super) const SECTION: &str = "Authorization flags";

/// How long a call of the webhook of `--authorization-webhook-config-file` may take.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);
const AUTHORIZED_TTL: Duration = Duration::from_secs(5 * 60);
const UNAUTHORIZED_TTL: Duration = Duration::from_secs(30);

#[derive(clap::Args, Debug, Default, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Authorization {
    /// The authorizers, asked in this order: AlwaysAllow, AlwaysDeny, ABAC, Webhook, RBAC or Node. Members of
    /// system:masters may do everything under any of them but AlwaysDeny alone. Default: RBAC; on a server without
    /// roles, only those members may do what is not open to everybody.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub authorization_mode: Option<Vec<String>>,

    /// A file that says which authorizers are asked, in which order, and how webhooks among them are: kind
    /// AuthorizationConfiguration of apiserver.config.k8s.io/v1. It is read again when it changes; what is wrong then
    /// is logged, and the old order stays. Not beside --authorization-mode and --authorization-webhook-*.
    #[arg(long, value_name = "string")]
    pub authorization_config: Option<PathBuf>,

    /// A file with the policies of ABAC, one JSON object a line.
    #[arg(long, value_name = "string")]
    pub authorization_policy_file: Option<PathBuf>,

    /// A kubeconfig file whose current context is the webhook of mode Webhook. It is sent a SubjectAccessReview; while
    /// it cannot be asked, the other authorizers decide.
    #[arg(long, value_name = "string")]
    pub authorization_webhook_config_file: Option<PathBuf>,

    /// The version of the reviews that the webhook is sent: v1 or v1beta1. Default: v1beta1.
    #[arg(long, value_name = "string")]
    pub authorization_webhook_version: Option<String>,

    /// How long it is remembered that the webhook allowed something; 0 means not at all. Default: 5m0s.
    #[arg(long, value_name = "duration", value_parser = values::duration)]
    pub authorization_webhook_cache_authorized_ttl: Option<time::Duration>,

    /// How long it is remembered that the webhook did not allow something; 0 means not at all. Default: 30s.
    #[arg(long, value_name = "duration", value_parser = values::duration)]
    pub authorization_webhook_cache_unauthorized_ttl: Option<time::Duration>,
}

/// Who decides.
#[derive(Clone, Debug)]
pub struct AuthorizationSettings {
    pub configuration: AuthorizationConfiguration,
    /// The file that it was read from, and its text; `None`: from flags.
    pub file: Option<(PathBuf, Vec<u8>)>,
    /// The policies of ABAC.
    pub policies: Option<Arc<Abac>>,
    /// Neither flag nor file says it.
    pub by_default: bool,
}

impl AuthorizationSettings {
    pub fn has(&self, kind: AuthorizerKind) -> bool {
        self.configuration.authorizers.iter().any(|one| one.kind == kind)
    }
}

impl Authorization {
    pub(super) fn complete(&self) -> Result<AuthorizationSettings, OptionError> {
        match &self.authorization_config {
            Some(path) => self.of_file(path),
            None => self.of_flags(),
        }
    }

    fn of_file(&self, path: &Path) -> Result<AuthorizationSettings, OptionError> {
        const FLAG: &str = "--authorization-config";
        if self.authorization_mode.is_some() || self.has_webhook_flags() {
            return Err(OptionError::CommandLine(format!(
                "{FLAG} can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"
            )));
        }
        let text = read_file(path).map_err(|error| OptionError::file(FLAG, path, error))?;
        let configuration = AuthorizationConfiguration::read(&text);
        let configuration = configuration.map_err(|error| OptionError::file(FLAG, path, error))?;
        let kinds: Vec<AuthorizerKind> = configuration.authorizers.iter().map(|one| one.kind).collect();
        Ok(AuthorizationSettings {
            policies: match &self.authorization_policy_file {
                // It may be that a later version of the file wants them.
                Some(path) => Some(read_policies(path)?),
                None => self.policies(&kinds)?,
            },
            configuration,
            file: Some((path.to_owned(), text)),
            by_default: false,
        })
    }

    fn has_webhook_flags(&self) -> bool {
        self.authorization_webhook_config_file.is_some()
            || self.authorization_webhook_version.is_some()
            || self.authorization_webhook_cache_authorized_ttl.is_some()
            || self.authorization_webhook_cache_unauthorized_ttl.is_some()
    }

    fn of_flags(&self) -> Result<AuthorizationSettings, OptionError> {
        let kinds = self.modes()?;
        let webhook = self.webhook(&kinds)?;
        let authorizers = kinds.iter().map(|kind| AuthorizerConfiguration {
            kind: *kind,
            name: kind.name().to_lowercase(),
            webhook: webhook.clone().filter(|_| *kind == AuthorizerKind::Webhook),
        });
        Ok(AuthorizationSettings {
            configuration: AuthorizationConfiguration {
                authorizers: authorizers.collect(),
            },
            file: None,
            policies: self.policies(&kinds)?,
            by_default: self.authorization_mode.is_none(),
        })
    }

    /// The modes in order. Without the flag RBAC; kube-apiserver's AlwaysAllow would open a server that was started
    /// without a thought.
    fn modes(&self) -> Result<Vec<AuthorizerKind>, OptionError> {
        const FLAG: &str = "--authorization-mode";
        let Some(names) = &self.authorization_mode else {
            return Ok(vec![AuthorizerKind::Rbac]);
        };
        let mut modes = Vec::new();
        for name in names {
            let mode = AuthorizerKind::parse(name)
                .ok_or_else(|| OptionError::flag(FLAG, format!("authorization-mode {name:?} is not a valid mode")))?;
            if modes.contains(&mode) {
                return Err(OptionError::flag(
                    FLAG,
                    format!("authorization-mode {name:?} has mode specified more than once"),
                ));
            }
            modes.push(mode);
        }
        match modes.is_empty() {
            true => Err(OptionError::flag(
                FLAG,
                "at least one authorization-mode must be passed",
            )),
            false => Ok(modes),
        }
    }

    /// The webhook of the flags, which that mode alone may have.
    fn webhook(&self, modes: &[AuthorizerKind]) -> Result<Option<WebhookConfiguration>, OptionError> {
        const FLAG: &str = "--authorization-webhook-config-file";
        let asked = modes.contains(&AuthorizerKind::Webhook);
        let Some(path) = &self.authorization_webhook_config_file else {
            return match asked {
                true => Err(OptionError::flag(
                    FLAG,
                    "authorization-mode Webhook's authorization config file not passed",
                )),
                false => Ok(None),
            };
        };
        if !asked {
            let text = "cannot specify --authorization-webhook-config-file without mode Webhook";
            return Err(OptionError::flag(FLAG, text));
        }
        let version = self.authorization_webhook_version.as_deref().unwrap_or("v1beta1");
        let unknown = || {
            let text = format!(
                "unsupported webhook authorizer version {version:?}, supported versions are \"v1\", \"v1beta1\""
            );
            OptionError::flag("--authorization-webhook-version", text)
        };
        let ttl = |given: Option<time::Duration>, default| given.map_or(default, time::Duration::to_std);
        Ok(Some(WebhookConfiguration {
            timeout: WEBHOOK_TIMEOUT,
            authorized_ttl: ttl(self.authorization_webhook_cache_authorized_ttl, AUTHORIZED_TTL),
            unauthorized_ttl: ttl(self.authorization_webhook_cache_unauthorized_ttl, UNAUTHORIZED_TTL),
            version: Version::parse(version).ok_or_else(unknown)?,
            failure_policy: FailurePolicy::NoOpinion,
            connection: Connection::Kubeconfig(path.clone()),
            conditions: Arc::default(),
        }))
    }

    /// The policies of ABAC; `None` without that mode, which alone may have the file.
    fn policies(&self, modes: &[AuthorizerKind]) -> Result<Option<Arc<Abac>>, OptionError> {
        const FLAG: &str = "--authorization-policy-file";
        let asked = modes.contains(&AuthorizerKind::Abac);
        match (&self.authorization_policy_file, asked) {
            (None, false) => Ok(None),
            (None, true) => Err(OptionError::flag(
                FLAG,
                "authorization-mode ABAC's authorization policy file not passed",
            )),
            (Some(_), false) => {
                let text = "cannot specify --authorization-policy-file without mode ABAC";
                Err(OptionError::flag(FLAG, text))
            }
            (Some(path), true) => read_policies(path).map(Some),
        }
    }
}

fn read_policies(path: &Path) -> Result<Arc<Abac>, OptionError> {
    const FLAG: &str = "--authorization-policy-file";
    let text = std::fs::read_to_string(path).map_err(|error| OptionError::file(FLAG, path, error))?;
    let abac = Abac::parse(&text).map_err(|why| OptionError::file(FLAG, path, why))?;
    Ok(Arc::new(abac))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(flags: &Authorization) -> Result<AuthorizationSettings, String> {
        flags.complete().map_err(|error| error.to_string())
    }

    fn kinds(names: &[&str]) -> Result<Vec<AuthorizerKind>, String> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let settings = complete(&Authorization {
            authorization_mode: Some(names),
            ..Authorization::default()
        })?;
        Ok(settings.configuration.authorizers.iter().map(|one| one.kind).collect())
    }

    #[test]
    fn modes_are_checked() {
        let both = [AuthorizerKind::Node, AuthorizerKind::Rbac];
        assert_eq!(kinds(&["Node", "RBAC"]).unwrap(), both);
        assert!(complete(&Authorization::default()).unwrap().has(AuthorizerKind::Rbac));
        assert!(
            kinds(&["rbac"])
                .unwrap_err()
                .ends_with(r#"authorization-mode "rbac" is not a valid mode"#)
        );
        assert!(kinds(&["Node", "Node"]).unwrap_err().contains("more than once"));
        assert!(kinds(&["Webhook"]).unwrap_err().ends_with("config file not passed"));
    }

    #[test]
    fn policies_and_their_mode_need_each_other() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let policies = |path: Option<PathBuf>, mode: &str| {
            let settings = complete(&Authorization {
                authorization_mode: Some(vec![mode.to_owned()]),
                authorization_policy_file: path,
                ..Authorization::default()
            })?;
            Ok::<_, String>(settings.policies.is_some())
        };
        let path = || Some(file.path().to_owned());
        assert_eq!(policies(path(), "ABAC"), Ok(true));
        assert_eq!(policies(None, "RBAC"), Ok(false));
        assert!(policies(None, "ABAC").unwrap_err().contains("policy file not passed"));
        assert!(policies(path(), "RBAC").unwrap_err().contains("without mode ABAC"));
        std::fs::write(file.path(), "{").unwrap();
        assert!(policies(path(), "ABAC").unwrap_err().contains("line 1: "));
    }

    #[test]
    fn the_webhook_and_its_mode_need_each_other() {
        let webhook = |mode: &str, version: Option<&str>| {
            let settings = complete(&Authorization {
                authorization_mode: Some(vec![mode.to_owned()]),
                authorization_webhook_config_file: Some("/x".into()),
                authorization_webhook_version: version.map(str::to_owned),
                authorization_webhook_cache_unauthorized_ttl: Some(time::Duration::default()),
                ..Authorization::default()
            })?;
            Ok::<_, String>(settings.configuration.authorizers[0].webhook.clone().unwrap())
        };
        let read = webhook("Webhook", None).unwrap();
        assert_eq!(
            (
                read.version,
                read.failure_policy,
                read.authorized_ttl,
                read.unauthorized_ttl
            ),
            (
                Version::V1Beta1,
                FailurePolicy::NoOpinion,
                AUTHORIZED_TTL,
                Duration::ZERO
            )
        );
        assert_eq!(webhook("Webhook", Some("v1")).unwrap().version, Version::V1);
        assert!(
            webhook("Webhook", Some("v2"))
                .err()
                .unwrap()
                .contains("unsupported webhook authorizer version \"v2\"")
        );
        assert!(webhook("RBAC", None).err().unwrap().contains("without mode Webhook"));
    }

    #[test]
    fn a_file_stands_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
                    authorizers: [{type: Node, name: node}, {type: RBAC, name: rbac}]\n";
        std::fs::write(file.path(), text).unwrap();
        let flags = Authorization {
            authorization_config: Some(file.path().to_owned()),
            ..Authorization::default()
        };
        let settings = complete(&flags).unwrap();
        assert!(settings.has(AuthorizerKind::Node) && settings.file.is_some());
        let more = Authorization {
            authorization_mode: Some(vec!["RBAC".to_owned()]),
            ..flags.clone()
        };
        let error = complete(&more).err().unwrap();
        let why = "can not be specified when --authorization-mode or --authorization-webhook-* flags are defined";
        assert_eq!(error, format!("--authorization-config {why}"));
        std::fs::write(file.path(), text.replace("rbac", "roles")).unwrap();
        assert!(
            complete(&flags)
                .err()
                .unwrap()
                .ends_with("expected name rbac for authorizer RBAC instead of roles")
        );
    }
}
