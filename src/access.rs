//! From checked settings to the parts of the server that know clients: TLS, authentication, authorization.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keelson_server::authn::certificate::ClientCertificates;
use keelson_server::authn::token_file::{NoTokens, StaticTokens};
use keelson_server::authn::token_issuer::TokenIssuer;
use keelson_server::authn::{Authentication, Authenticator};
use keelson_server::authz::node::NodeAuthorizer;
use keelson_server::authz::rbac::Rbac;
use keelson_server::authz::{AlwaysAllow, AlwaysDeny, Authorization, Authorizer, Everybody, PrivilegedGroup};
use keelson_server::listener::Shutdown;
use keelson_server::tls::certs::CertifiedKeyPem;
use keelson_server::tls::{ServingCertificates, TlsError, TlsState, certificates, files, follow};

use crate::kube::{NodeGraph, node_rules};
use crate::options::provision::Credentials;
use crate::options::{Mode, NamedCertificate, OptionError, ServingCertificate, Settings};

/// Client certificates, then static tokens, then anonymous.
pub(crate) fn authentication(
    settings: &Settings,
    credentials: &Credentials,
    certificates: Arc<ClientCertificates>,
) -> Result<Authentication, OptionError> {
    let tokens: Arc<dyn Authenticator> = match settings.tokens.users.is_empty() {
        true => Arc::new(NoTokens),
        false => Arc::new(StaticTokens::new(settings.tokens.users.clone())),
    };
    Ok(Authentication {
        chain: vec![certificates, tokens],
        anonymous: settings.anonymous,
        audiences: settings.service_accounts.audiences.clone(),
        issuer: Some(Arc::new(issuer(settings, credentials)?)),
    })
}

/// What signs the tokens of service accounts.
fn issuer(settings: &Settings, credentials: &Credentials) -> Result<TokenIssuer, OptionError> {
    const FLAG: &str = "--service-account-signing-key-file";
    let path = &credentials.signing_key_file;
    let pem = std::fs::read_to_string(path).map_err(|error| OptionError::file(FLAG, path, error))?;
    let name = settings.service_accounts.issuers.first().map_or("", String::as_str);
    TokenIssuer::new(&pem, name).map_err(|reason| OptionError::file(FLAG, path, reason))
}

/// The authorizers of the modes, behind the group that may do everything. Modes that are not built yet have no
/// opinion on anything. `roles`: those of a server that has roles as objects.
pub(crate) fn authorization(settings: &Settings, roles: Option<Arc<Rbac>>) -> Result<Authorization, OptionError> {
    let mut chain: Vec<Arc<dyn Authorizer>> = vec![Arc::new(PrivilegedGroup)];
    for mode in &settings.modes {
        match mode {
            Mode::AlwaysAllow => chain.push(Arc::new(AlwaysAllow)),
            Mode::AlwaysDeny => chain.push(Arc::new(AlwaysDeny)),
            Mode::Rbac => chain.push(match &roles {
                Some(roles) => roles.clone(),
                None => Arc::new(Everybody),
            }),
            Mode::Abac => chain.extend(settings.policies.clone().map(|abac| abac as Arc<dyn Authorizer>)),
            // A server without the kinds of Kubernetes has no nodes.
            Mode::Node if roles.is_some() => {
                let common = node_rules().map_err(OptionError::CommandLine)?;
                chain.push(Arc::new(NodeAuthorizer::new(NodeGraph, common)));
            }
            Mode::Node | Mode::Webhook => {}
        }
    }
    Ok(Authorization::with_roles(chain, roles))
}

/// How often the files of certificates are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// What the server shows to clients, and what it wants to see of them. Both can be replaced while it runs.
pub(crate) struct Certificates {
    pub tls: Arc<TlsState>,
    pub clients: Arc<ClientCertificates>,
}

impl Certificates {
    /// Reads the files.
    pub(crate) fn load(settings: &Settings, credentials: &Credentials) -> Result<Certificates, OptionError> {
        let fault = |error: TlsError| OptionError::folder(settings.serving.files().0, error);
        let serving = serving_certificates(&settings.serving, &settings.named).map_err(fault)?;
        let tls = TlsState::new(serving, &settings.tls).map_err(fault)?;
        let fault = |reason: String| OptionError::flag("--client-ca-file", reason);
        let authorities = certificates(&credentials.client_ca_pem).map_err(|error| fault(error.to_string()))?;
        let clients = ClientCertificates::new(&authorities).map_err(fault)?;
        Ok(Certificates {
            tls: Arc::new(tls),
            clients: Arc::new(clients),
        })
    }

    /// Goes on with renewed files until the shutdown.
    pub(crate) fn follow(self, settings: &Settings, shutdown: &Shutdown) {
        let (serving, named) = (settings.serving.clone(), settings.named.clone());
        let load = move || serving_certificates(&serving, &named);
        tokio::task::spawn_local(self.tls.follow(load, LOOK, shutdown.clone()));
        let Some(path) = settings.client_ca_file.clone() else {
            return;
        };
        let known = Mutex::new(settings.client_ca_pem.clone().unwrap_or_default());
        let clients = self.clients;
        let reload = move || {
            let text = files::read_pem(&path).map_err(|error| error.to_string())?;
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            if *known == text {
                return Ok(false);
            }
            clients.replace(&certificates(&text).map_err(|error| error.to_string())?)?;
            *known = text;
            Ok::<_, String>(true)
        };
        tokio::task::spawn_local(follow("authorities of clients", reload, LOOK, shutdown.clone()));
    }
}

/// Reads the certificates that are served. Names that somebody gave come before those that certificates are for.
fn serving_certificates(
    serving: &ServingCertificate,
    named: &[NamedCertificate],
) -> Result<ServingCertificates, TlsError> {
    let (certificate, key) = serving.files();
    let mut set = ServingCertificates::new(&CertifiedKeyPem::read(certificate, key)?)?;
    let (given, own): (Vec<_>, Vec<_>) = named.iter().partition(|named| !named.names.is_empty());
    for named in given {
        let pair = CertifiedKeyPem::read(&named.certificate, &named.key)?;
        let names: Vec<&str> = named.names.iter().map(String::as_str).collect();
        set = set.with_named(&names, &pair)?;
    }
    for named in own {
        set = set.with_own_names(&CertifiedKeyPem::read(&named.certificate, &named.key)?)?;
    }
    Ok(set)
}
