//! Options completed with defaults and checked, files included. Nothing is made or changed yet.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use keelson_access::authn::Anonymous;
use keelson_access::authz::configuration::AuthorizerKind;
use keelson_kube::{ServiceOptions, bootstrap};
use keelson_machinery::scheme::Scheme;
use keelson_net::client::Egress;
use keelson_net::tls::TlsSettings;
use keelson_server::audit::AuditSettings;
use keelson_server::discovery::RuntimeConfig;
use keelson_server::settings::RequestSettings;
use keelson_storage::StoreConfig;

use super::admission::AdmissionSettings;
use super::authentication::{FrontProxySettings, Issuers, ServiceAccounts, TokenWebhookSettings};
use super::authorization::AuthorizationSettings;
use super::encryption::EncryptionFile;
use super::etcd::PlacementSettings;
use super::misc::Cidr;
use super::secure_serving::{NamedCertificate, ServingCertificate};
use super::token_file::{Passwords, Tokens};
use super::{OptionError, Options, logs};

/// What the command line asks for, by subsystem.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the program: of its data folder, its cluster in the kubeconfig.
    pub program: String,
    /// The folder of everything that the server makes for itself.
    pub data_dir: PathBuf,
    /// The admin's kubeconfig; `None` when clients are vouched for by a given authority.
    pub kubeconfig: Option<PathBuf>,
    pub serving: ServingSettings,
    pub requests: RequestSettings,
    pub authentication: AuthenticationSettings,
    pub authorization: AuthorizationSettings,
    /// The ways of the server's own connections.
    pub egress: Egress,
    pub runtime: RuntimeConfig,
    /// Which admission plug-ins are on.
    pub admission: AdmissionSettings,
    pub storage: StorageSettings,
    pub kubernetes: KubernetesSettings,
    pub audit: AuditSettings,
    pub log: Log,
    /// Lines for the log, of things that are odd but no errors.
    pub warnings: Vec<String>,
    /// All flags by their names, with their values.
    pub flags: BTreeMap<String, String>,
    /// Flags that were given and checked, and that nothing uses yet.
    pub unused: Vec<&'static str>,
}

/// How clients reach the server.
#[derive(Clone, Debug)]
pub struct ServingSettings {
    pub address: SocketAddr,
    /// By which other machines reach the server; `None`: it finds out.
    pub advertised: Option<IpAddr>,
    pub certificate: ServingCertificate,
    /// Certificates for some names, the first that fits first.
    pub named: Vec<NamedCertificate>,
    pub tls: TlsSettings,
    /// Streams that a client may have open on one HTTP/2 connection; `None`: the default.
    pub http2_max_streams: Option<u32>,
    /// With which probability an answer on HTTP/2 ends its connection.
    pub goaway_chance: Option<f64>,
}

/// Whom the server believes.
#[derive(Clone, Debug)]
pub struct AuthenticationSettings {
    /// The file of the given authority of client certificates.
    pub client_ca_file: Option<PathBuf>,
    /// Its PEM text.
    pub client_ca_pem: Option<String>,
    pub tokens: Tokens,
    /// Names and passwords; `None`: they are not taken.
    pub passwords: Option<Passwords>,
    /// Requests without credentials that are let through to authorization.
    pub anonymous: Anonymous,
    /// Whose OpenID Connect tokens are believed.
    pub issuers: Issuers,
    /// Who is asked about tokens that nobody here knows.
    pub token_webhook: Option<TokenWebhookSettings>,
    pub service_accounts: ServiceAccounts,
    /// A proxy in front that says who sends requests.
    pub front_proxy: Option<FrontProxySettings>,
    /// Whether the tokens of secrets let nodes join.
    pub bootstrap_tokens: bool,
}

/// Where and how objects are kept.
#[derive(Clone, Debug)]
pub struct StorageSettings {
    pub store: StoreConfig,
    pub placement: PlacementSettings,
    /// How values are stored; `None`: as they are.
    pub encryption: Option<EncryptionFile>,
    /// What every key begins with: "" or a path without a slash at its end.
    pub prefix: String,
    /// Memory for objects as they were answered, in bytes.
    pub cache_bytes: usize,
}

/// What only servers of Kubernetes' own kinds know.
#[derive(Clone, Debug)]
pub struct KubernetesSettings {
    pub service_ranges: Vec<Cidr>,
    /// The first and the last port that services get on nodes.
    pub service_node_ports: (u16, u16),
    /// That of the service `kubernetes`; `None`: it has none.
    pub kubernetes_node_port: Option<u16>,
    /// How the endpoints of that service are known.
    pub endpoint_reconciler: bootstrap::EndpointReconciler,
    pub allow_privileged: bool,
    /// How long events are kept; `None`: for ever.
    pub event_time_to_live: Option<Duration>,
    /// Those of kube-controller-manager that run on this server.
    pub controllers: Vec<bootstrap::ManagedController>,
}

#[derive(Clone, Copy, Debug)]
pub struct Log {
    pub format: logs::Format,
    pub verbosity: i64,
}

impl Settings {
    /// What the addresses and ports of services depend on.
    pub fn services(&self) -> ServiceOptions {
        let mut options = ServiceOptions {
            node_ports: self.kubernetes.service_node_ports,
            ..ServiceOptions::default()
        };
        if !self.kubernetes.service_ranges.is_empty() {
            options.ranges = self.kubernetes.service_ranges.iter().map(|range| range.base).collect();
        }
        options
    }

    /// What the objects of a fresh server depend on.
    pub fn bootstrap(&self) -> bootstrap::Setting {
        let text = |range: &Cidr| (format!("{}/{}", range.base, range.prefix), range.base);
        let mut setting = bootstrap::Setting {
            // An authority that this server made for itself is no other server's business.
            client_ca_pem: self.authentication.client_ca_pem.clone().unwrap_or_default(),
            front_proxy: self
                .authentication
                .front_proxy
                .as_ref()
                .map(|proxy| bootstrap::FrontProxy {
                    client_ca_pem: proxy.client_ca_pem.clone(),
                    allowed_names: proxy.allowed_names.clone(),
                    headers: proxy.headers.clone(),
                }),
            flow_control: self.requests.priority_and_fairness,
            roles: self.authorization.has(AuthorizerKind::Rbac),
            node_ports: self.kubernetes.service_node_ports,
            kubernetes_node_port: self.kubernetes.kubernetes_node_port,
            endpoint_reconciler: self.kubernetes.endpoint_reconciler,
            controllers: self.kubernetes.controllers.clone(),
            ..bootstrap::Setting::default()
        };
        if !self.kubernetes.service_ranges.is_empty() {
            setting.service_ranges = self.kubernetes.service_ranges.iter().map(text).collect();
        }
        setting
    }
}

impl Options {
    /// Fills in defaults and checks everything that can be checked without changing anything. `lookup` reads an
    /// environment variable.
    ///
    /// # Errors
    /// The first flag or file that the server can't start with.
    pub fn complete(
        &self,
        program: &str,
        schemes: &[&'static Scheme],
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Settings, OptionError> {
        let data_dir = self.data_folder.folder(program, lookup)?;
        if data_dir.exists() && !data_dir.is_dir() {
            return Err(OptionError::file("--data-dir", &data_dir, "is not a folder"));
        }
        let mut warnings = Vec::new();
        let authorization = self.authorization.complete()?;
        let egress = self.egress.complete()?;
        let authentication = self.authenticators(&authorization, &egress, &mut warnings)?;
        Ok(Settings {
            program: program.to_owned(),
            kubeconfig: self.kubeconfig(&data_dir, authentication.client_ca_pem.is_some())?,
            serving: self.serving(&data_dir, &mut warnings)?,
            requests: self.features.requests(self.generic.requests()?)?,
            authentication,
            authorization,
            runtime: self.api_enablement.runtime_config(schemes)?,
            admission: self.admission.complete()?,
            storage: self.storage(&data_dir)?,
            kubernetes: self.kubernetes()?,
            log: Log {
                format: self.logs.format()?,
                verbosity: self.logs.v,
            },
            audit: self.audit(&egress, &mut warnings)?,
            egress,
            warnings,
            flags: self.shown.clone(),
            unused: self.unused(),
            data_dir,
        })
    }

    fn serving(&self, data_dir: &Path, warnings: &mut Vec<String>) -> Result<ServingSettings, OptionError> {
        Ok(ServingSettings {
            address: self.secure_serving.address()?,
            advertised: self.generic.advertise_address.filter(|ip| !ip.is_unspecified()),
            certificate: self.secure_serving.certificate(&data_dir.join("pki"))?,
            named: self.secure_serving.named()?,
            tls: self.secure_serving.tls(warnings)?,
            http2_max_streams: self.secure_serving.max_streams()?,
            goaway_chance: self.generic.goaway()?,
        })
    }

    fn authenticators(
        &self,
        authorization: &AuthorizationSettings,
        egress: &Egress,
        warnings: &mut Vec<String>,
    ) -> Result<AuthenticationSettings, OptionError> {
        let flags = &self.authentication;
        let client_ca_pem = flags.client_ca()?;
        let tokens = flags.tokens()?;
        warnings.extend(tokens.warnings.iter().cloned());
        let signing_key_file = self.misc.service_account_signing_key_file.clone();
        let service_accounts = flags.service_account.complete(signing_key_file)?;
        let issuers = flags.oidc.complete(&service_accounts.issuers, flags.anonymous_auth)?;
        let front_proxy = flags.request_header.complete(client_ca_pem.as_deref(), warnings)?;
        Ok(AuthenticationSettings {
            client_ca_file: flags.client_ca_path().cloned(),
            client_ca_pem,
            passwords: flags.passwords()?,
            tokens,
            anonymous: self.anonymous(&issuers, authorization, warnings),
            token_webhook: flags.webhook.complete(egress)?,
            issuers,
            service_accounts,
            front_proxy,
            bootstrap_tokens: flags.enable_bootstrap_token_auth,
        })
    }

    fn storage(&self, data_dir: &Path) -> Result<StorageSettings, OptionError> {
        Ok(StorageSettings {
            store: self.etcd.store(data_dir)?,
            placement: self.etcd.placement()?,
            encryption: self.etcd.encryption()?,
            prefix: self.etcd.prefix(),
            cache_bytes: self.etcd.cache_memory_limit,
        })
    }

    fn kubernetes(&self) -> Result<KubernetesSettings, OptionError> {
        let service_node_ports = self.misc.service_node_ports()?;
        let service_ranges = self.misc.service_ranges()?;
        let endpoint_reconciler = self.misc.endpoint_reconciler()?;
        self.check_families(&service_ranges, endpoint_reconciler)?;
        Ok(KubernetesSettings {
            service_ranges,
            endpoint_reconciler,
            service_node_ports,
            kubernetes_node_port: self.misc.kubernetes_node_port(service_node_ports)?,
            allow_privileged: self.misc.allow_privileged.unwrap_or(false),
            event_time_to_live: self.misc.event_time_to_live()?,
            controllers: self.misc.controllers(!self.etcd.etcd_servers.is_empty())?,
        })
    }

    /// The service `kubernetes` has an address of the first range, and leads to the address of this server.
    fn check_families(&self, ranges: &[Cidr], reconciler: bootstrap::EndpointReconciler) -> Result<(), OptionError> {
        match (ranges.first(), self.generic.advertise_address) {
            (Some(range), Some(address))
                if reconciler != bootstrap::EndpointReconciler::None
                    && range.base.is_ipv4() != address.is_ipv4()
                    && !address.is_unspecified() =>
            {
                let range = format!("{}/{}", range.base, range.prefix);
                let text = format!("service IP family {range:?} must match public address family \"{address}\"");
                Err(OptionError::flag("--advertise-address", text))
            }
            _ => Ok(()),
        }
    }

    fn audit(&self, egress: &Egress, warnings: &mut Vec<String>) -> Result<AuditSettings, OptionError> {
        let mut audit = self.audit.settings(warnings)?;
        if let Some(webhook) = &mut audit.webhook {
            webhook.dialer = egress.control_plane.clone();
        }
        Ok(audit)
    }

    fn kubeconfig(&self, data_dir: &Path, given_authority: bool) -> Result<Option<PathBuf>, OptionError> {
        match (given_authority, &self.data_folder.kubeconfig_out) {
            (true, Some(_)) => Err(OptionError::flag(
                "--kubeconfig-out",
                "can't be combined with --client-ca-file: only the server's own authority can vouch for an admin",
            )),
            (true, None) => Ok(None),
            (false, _) => self.data_folder.kubeconfig(data_dir).map(Some),
        }
    }

    /// Which anonymous requests are let through: none beside AlwaysAllow, under which they could do anything.
    fn anonymous(
        &self,
        issuers: &Issuers,
        authorization: &AuthorizationSettings,
        warnings: &mut Vec<String>,
    ) -> Anonymous {
        let wanted = match (&issuers.anonymous, self.authentication.anonymous_auth) {
            (Some(said), _) => said.clone(),
            (None, Some(false)) => Anonymous::Nowhere,
            (None, _) => Anonymous::Everywhere,
        };
        if wanted == Anonymous::Nowhere || !authorization.has(AuthorizerKind::AlwaysAllow) {
            return wanted;
        }
        warnings.push(
            "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should \
             use a different authorizer"
                .to_owned(),
        );
        Anonymous::Nowhere
    }

    /// The given flags whose effects come later.
    fn unused(&self) -> Vec<&'static str> {
        [("--allow-privileged", self.misc.allow_privileged.is_some())]
            .into_iter()
            .filter(|(_, given)| *given)
            .map(|(flag, _)| flag)
            .collect()
    }
}
