//! From checked settings to the parts of the server that know clients: TLS, authentication, authorization.

use std::sync::Arc;

use keelson_server::authn::certificate::ClientCertificates;
use keelson_server::authn::token_file::{NoTokens, StaticTokens};
use keelson_server::authn::token_issuer::TokenIssuer;
use keelson_server::authn::{Authentication, Authenticator};
use keelson_server::authz::{AlwaysAllow, AlwaysDeny, Authorization, Authorizer, Everybody, PrivilegedGroup};
use keelson_server::tls::{ServingCertificates, TlsError, TlsSettings, TlsState, certificates};

use crate::options::provision::Credentials;
use crate::options::{Mode, OptionError, ServingCertificate, Settings};

/// Client certificates, then static tokens, then anonymous.
pub(crate) fn authentication(settings: &Settings, credentials: &Credentials) -> Result<Authentication, OptionError> {
    let fault = |reason: String| OptionError::flag("--client-ca-file", reason);
    let authorities = certificates(&credentials.client_ca_pem).map_err(|error| fault(error.to_string()))?;
    let certificates = ClientCertificates::new(&authorities).map_err(fault)?;
    let tokens: Arc<dyn Authenticator> = match settings.tokens.users.is_empty() {
        true => Arc::new(NoTokens),
        false => Arc::new(StaticTokens::new(settings.tokens.users.clone())),
    };
    Ok(Authentication {
        chain: vec![Arc::new(certificates), tokens],
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
/// opinion on anything.
pub(crate) fn authorization(modes: &[Mode]) -> Authorization {
    let mut chain: Vec<Arc<dyn Authorizer>> = vec![Arc::new(PrivilegedGroup)];
    for mode in modes {
        match mode {
            Mode::AlwaysAllow => chain.push(Arc::new(AlwaysAllow)),
            Mode::AlwaysDeny => chain.push(Arc::new(AlwaysDeny)),
            // Of RBAC, what its default roles give to everybody.
            Mode::Rbac => chain.push(Arc::new(Everybody)),
            Mode::Abac | Mode::Webhook | Mode::Node => {}
        }
    }
    Authorization { chain }
}

/// What the listener serves with.
pub(crate) fn tls(settings: &Settings, credentials: &Credentials) -> Result<Arc<TlsState>, OptionError> {
    let fault = |error: TlsError| match &settings.serving {
        ServingCertificate::Given { certificate, .. } | ServingCertificate::Missing { certificate, .. } => {
            OptionError::folder(certificate, error)
        }
    };
    let certificates = ServingCertificates::new(&credentials.serving).map_err(fault)?;
    TlsState::new(certificates, &TlsSettings::default())
        .map(Arc::new)
        .map_err(fault)
}
