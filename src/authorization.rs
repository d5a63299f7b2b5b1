//! The authorizers of the server, made of checked settings, and anew of a changed file.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keelson_access::authz::configuration::{
    AuthorizationConfiguration, AuthorizationConfigurationError, AuthorizerConfiguration, AuthorizerKind, Connection,
    WebhookConfiguration,
};
use keelson_access::authz::node::NodeAuthorizer;
use keelson_access::authz::rbac::Rbac;
use keelson_access::authz::webhook::{WebhookAuthorizer, WebhookSettings};
use keelson_access::authz::{
    Abac, AlwaysAllow, AlwaysDeny, Authorization, AuthorizationMetrics, Authorizer, DefaultRoles, Labeled,
    PrivilegedGroup,
};
use keelson_configuration::{FileError, read_file};
use keelson_net::client::{Backoff, Egress, Kubeconfig, KubeconfigError, Webhook};
use keelson_net::listener::Shutdown;
use keelson_net::tls::follow;

use keelson_kube::DataError;
use keelson_options::{AuthorizationSettings, OptionError};

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(10);

const WITHOUT_ROLES: &str = "mode RBAC needs roles, and this server has none: leave it out (administrators may do \
    everything then, others read what the server says of itself), take ABAC or Webhook, or add `.rbac()` to the server";

type Chain = Vec<Arc<dyn Authorizer>>;

/// An authorizer that this server can't have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum AuthorizerError {
    #[error("{WITHOUT_ROLES}")]
    NoRoles,
    #[error("ABAC needs --authorization-policy-file")]
    NoPolicies,
    #[error("mode Node needs nodes, and this server has none: leave it out")]
    NoNodes,
    #[error("invalid authorization config: {0}")]
    Kubeconfig(#[from] KubeconfigError),
}

/// A changed file that can't be used.
#[derive(Debug, thiserror::Error)]
enum ReloadError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Configuration(#[from] AuthorizationConfigurationError),
    #[error(transparent)]
    Authorizer(#[from] AuthorizerError),
}

/// What authorizers are made of. Those that follow objects are made once, and stay when the configuration changes.
struct Parts {
    roles: Option<Arc<Rbac>>,
    node: Option<Arc<NodeAuthorizer>>,
    policies: Option<Arc<Abac>>,
    /// Nobody said who decides.
    by_default: bool,
    egress: Egress,
    metrics: AuthorizationMetrics,
}

impl Parts {
    /// The authorizers of a configuration, behind the group that may do everything.
    fn chain(&self, configuration: &AuthorizationConfiguration) -> Result<Chain, AuthorizerError> {
        let mut chain: Chain = vec![Arc::new(PrivilegedGroup)];
        for one in &configuration.authorizers {
            let authorizer: Arc<dyn Authorizer> = match one.kind {
                AuthorizerKind::AlwaysAllow => Arc::new(AlwaysAllow),
                AuthorizerKind::AlwaysDeny => Arc::new(AlwaysDeny),
                AuthorizerKind::Rbac => match &self.roles {
                    Some(roles) => roles.clone(),
                    None if self.by_default => Arc::new(DefaultRoles),
                    None => return Err(AuthorizerError::NoRoles),
                },
                AuthorizerKind::Abac => self.policies.clone().ok_or(AuthorizerError::NoPolicies)?,
                AuthorizerKind::Webhook => {
                    chain.extend(self.webhook(one)?);
                    continue;
                }
                AuthorizerKind::Node => match &self.node {
                    Some(node) => node.clone(),
                    None => return Err(AuthorizerError::NoNodes),
                },
            };
            chain.push(Arc::new(Labeled::new(one.kind.name(), authorizer)));
        }
        Ok(chain)
    }

    fn webhook(&self, one: &AuthorizerConfiguration) -> Result<Option<Arc<dyn Authorizer>>, AuthorizerError> {
        let Some(configuration) = &one.webhook else {
            return Ok(None);
        };
        let webhook = connect(configuration, &self.egress)?;
        let settings = WebhookSettings {
            name: one.name.clone(),
            version: configuration.version,
            authorized_ttl: configuration.authorized_ttl,
            unauthorized_ttl: configuration.unauthorized_ttl,
            failure_policy: configuration.failure_policy,
            conditions: configuration.conditions.clone(),
        };
        let authorizer = WebhookAuthorizer::new(webhook, settings, self.metrics.clone());
        Ok(Some(Arc::new(authorizer)))
    }
}

fn connect(configuration: &WebhookConfiguration, egress: &Egress) -> Result<Webhook, KubeconfigError> {
    let mut file = match &configuration.connection {
        Connection::Kubeconfig(path) => Kubeconfig::read(path)?,
        Connection::InCluster => Kubeconfig::in_cluster(|name| std::env::var(name).ok())?,
    };
    file.client.dialer = egress.control_plane.clone();
    Webhook::of(file, configuration.timeout, Backoff::WEBHOOK)
}

/// Makes what decides for nodes.
pub(crate) type MakeNodeAuthorizer = fn() -> Result<Arc<NodeAuthorizer>, DataError>;

/// What a server has that authorizers look at.
#[derive(Default)]
pub(crate) struct Authorized {
    /// Roles, as objects.
    pub roles: Option<Arc<Rbac>>,
    /// What decides for nodes, of a server that has them.
    pub nodes: Option<MakeNodeAuthorizer>,
}

/// The authorizers, and the file that may change them.
pub(crate) struct Authorizers {
    pub authorization: Authorization,
    parts: Parts,
    file: Option<(PathBuf, Vec<u8>)>,
}

impl Authorizers {
    pub(crate) fn new(
        settings: &AuthorizationSettings,
        egress: &Egress,
        about: Authorized,
    ) -> Result<Authorizers, OptionError> {
        let Authorized { roles, nodes } = about;
        let has_node = settings.has(AuthorizerKind::Node);
        // A file that changes may want what it does not want yet.
        let nodes = nodes.filter(|_| has_node || settings.file.is_some());
        let node = nodes.map(|make| make()).transpose();
        let node = node.map_err(|error| OptionError::CommandLine(error.to_string()))?;
        let metrics = AuthorizationMetrics::default();
        let parts = Parts {
            roles: roles.clone(),
            node,
            policies: settings.policies.clone(),
            by_default: settings.by_default,
            egress: egress.clone(),
            metrics: metrics.clone(),
        };
        let fault = |why: AuthorizerError| OptionError::flag("--authorization-mode, --authorization-config", why);
        let chain = parts.chain(&settings.configuration).map_err(fault)?;
        let spare = parts.node.clone().filter(|_| !has_node);
        let spare = spare.map(|node| node as Arc<dyn Authorizer>).into_iter().collect();
        if let Some((_, text)) = &settings.file {
            metrics.use_configuration(text);
        }
        Ok(Authorizers {
            authorization: Authorization::with_spare(chain, roles, spare, metrics),
            parts,
            file: settings.file.clone(),
        })
    }

    /// Goes on with changed files until the shutdown.
    pub(crate) fn follow(self, shutdown: &Shutdown) {
        if let Some(file) = self.file() {
            let what = "authorization configuration";
            let look = move || file.look();
            tokio::task::spawn_local(follow(what, look, LOOK, shutdown.clone()));
        }
    }

    fn file(self) -> Option<File> {
        let (path, text) = self.file?;
        Some(File {
            path,
            seen: Mutex::new(text),
            parts: self.parts,
            authorization: self.authorization,
        })
    }
}

/// The file of the configuration, which may change.
struct File {
    path: PathBuf,
    /// Its text when it was looked at last, whether or not it could be used.
    seen: Mutex<Vec<u8>>,
    parts: Parts,
    authorization: Authorization,
}

impl File {
    /// Looks whether the file has changed, and takes over what it says now. What is wrong with it leaves everything as
    /// it was.
    fn look(&self) -> Result<bool, ReloadError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let text = read_file(&self.path).map_err(ReloadError::File);
        if text.as_ref().is_ok_and(|text| *text == *seen) {
            return Ok(false);
        }
        let replaced = text.and_then(|text| {
            seen.clone_from(&text);
            let configuration = AuthorizationConfiguration::read(&text)?;
            let chain = self.parts.chain(&configuration)?;
            self.authorization.replace(chain);
            self.parts.metrics.use_configuration(&text);
            Ok(true)
        });
        self.parts.metrics.reloaded(replaced.is_ok());
        replaced
    }
}

#[cfg(test)]
mod tests {
    use keelson_access::request_info::RequestInfo;
    use keelson_access::user::User;

    use super::*;
    use keelson_options::AuthorizationSettings;

    const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n";

    fn list(authorizers: &str) -> String {
        format!("{HEAD}{authorizers}\n")
    }

    async fn allowed(authorization: &Authorization) -> bool {
        authorization.allows(&User::anonymous(), &RequestInfo::default()).await
    }

    #[tokio::test]
    async fn a_changed_file_takes_effect_and_a_broken_one_does_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |text: &str| std::fs::write(file.path(), text).unwrap();
        let deny = list("- {type: AlwaysDeny, name: alwaysdeny}");
        write(&deny);
        let settings = AuthorizationSettings {
            configuration: AuthorizationConfiguration::read(deny.as_bytes()).unwrap(),
            file: Some((file.path().to_owned(), deny.into_bytes())),
            policies: None,
            by_default: false,
        };
        let authorizers = Authorizers::new(&settings, &Egress::default(), Authorized::default()).unwrap();
        let authorization = authorizers.authorization.clone();
        let file = authorizers.file().unwrap();
        assert!(!allowed(&authorization).await);
        assert!(!file.look().unwrap());
        write(&list("- {type: AlwaysAllow, name: alwaysallow}"));
        assert!(file.look().unwrap());
        assert!(allowed(&authorization).await);
        for (broken, why) in [
            (list("- {type: AlwaysDeny, name: x}"), "expected name alwaysdeny"),
            (
                list("- {type: ABAC, name: abac}"),
                "ABAC needs --authorization-policy-file",
            ),
            ("a: [".to_owned(), "failed to load AuthorizationConfiguration"),
        ] {
            write(&broken);
            let error = file.look().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
            assert!(allowed(&authorization).await);
            // It is told once.
            assert!(!file.look().unwrap());
        }
        std::fs::remove_file(&file.path).unwrap();
        assert!(file.look().is_err());
        assert!(allowed(&authorization).await);
    }

    #[tokio::test]
    async fn modes_need_what_they_look_at() {
        let of = |kind: AuthorizerKind, by_default| AuthorizationSettings {
            configuration: AuthorizationConfiguration {
                authorizers: vec![AuthorizerConfiguration {
                    kind,
                    name: kind.name().to_lowercase(),
                    webhook: None,
                }],
            },
            file: None,
            policies: None,
            by_default,
        };
        let made = |settings: &AuthorizationSettings| {
            let made = Authorizers::new(settings, &Egress::default(), Authorized::default());
            made.map(|_| ()).map_err(|error| error.to_string())
        };
        let flags = "--authorization-mode, --authorization-config";
        assert_eq!(made(&of(AuthorizerKind::Rbac, true)), Ok(()));
        assert_eq!(
            made(&of(AuthorizerKind::Rbac, false)),
            Err(format!("{flags}: {WITHOUT_ROLES}"))
        );
        assert_eq!(
            made(&of(AuthorizerKind::Node, false)),
            Err(format!(
                "{flags}: mode Node needs nodes, and this server has none: leave it out"
            ))
        );
    }

    #[test]
    fn a_webhook_needs_its_kubeconfig() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let connection = format!("{{type: KubeConfigFile, kubeConfigFile: {}}}", file.path().display());
        let webhook = format!(
            "- type: Webhook\n  name: hook\n  webhook: {{timeout: 3s, subjectAccessReviewVersion: v1, \
             failurePolicy: Deny, connectionInfo: {connection}}}"
        );
        let settings = AuthorizationSettings {
            configuration: AuthorizationConfiguration::read(list(&webhook).as_bytes()).unwrap(),
            file: None,
            policies: None,
            by_default: false,
        };
        let error = Authorizers::new(&settings, &Egress::default(), Authorized::default())
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("invalid authorization config: invalid configuration: no current-context"),
            "{error}"
        );
    }
}
