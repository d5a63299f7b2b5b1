//! The authenticators of the server, made of checked settings.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keelson_access::authn::basic::Passwords;
use keelson_access::authn::bootstrap_token::BootstrapTokens;
use keelson_access::authn::jwt::KeySet;
use keelson_access::authn::oidc::{OidcSettings, OidcTokens};
use keelson_access::authn::service_account::{ServiceAccountTokens, Trust};
use keelson_access::authn::structured::{AuthenticationConfiguration, AuthenticationConfigurationError};
use keelson_access::authn::token_cache::TokenCache;
use keelson_access::authn::token_file::StaticTokens;
use keelson_access::authn::token_issuer::TokenIssuer;
use keelson_access::authn::tokens::{ForAudiences, Issuers, Remembered, Tokens, WebSocketTokens};
use keelson_access::authn::webhook::WebhookTokens;
use keelson_access::authn::{Anonymous, Authentication, Authenticator, TokenAuthenticator};
use keelson_access::authz::configuration::AuthorizerKind;
use keelson_base::env::SystemClock;
use keelson_machinery::env::Clock;
use keelson_net::client::{Egress, TlsConfigError};
use keelson_net::listener::Shutdown;
use keelson_net::tls::follow;

use crate::certificates::Certificates;
use keelson_options::provision::Credentials;
use keelson_options::{OptionError, Settings, read_authorities};

/// How often the file of issuers is looked at.
const LOOK: Duration = Duration::from_secs(2);
const FILE: &str = "--authentication-config";
/// How long it is remembered whom a token stands for, in milliseconds, as kube-apiserver does.
const TOKEN_MS: u64 = 10_000;

/// The authenticators in kube-apiserver's order: a proxy in front, passwords, client certificates, bearer tokens; what
/// none of them knows is anonymous.
pub(crate) fn authentication(
    settings: &Settings,
    credentials: &Credentials,
    certificates: &Certificates,
) -> Result<Authenticators, OptionError> {
    let accounts = &settings.authentication.service_accounts;
    let keys = accounts.keys(&credentials.signing_key_file)?;
    let cache = TokenCache::new(TOKEN_MS, 0).map_err(|error| OptionError::CommandLine(error.to_string()))?;
    let issuers = Arc::new(Issuers::default());
    issuers.replace(
        oidc(&settings.authentication.issuers.settings, &settings.egress)
            .map_err(|reason| OptionError::flag(FILE, reason))?,
    );
    let tokens = Tokens::new(tokens(settings, &keys, &issuers)?, Some(cache));
    let proxy = certificates.proxy.clone().map(|proxy| proxy as Arc<dyn Authenticator>);
    let mut chain: Vec<Arc<dyn Authenticator>> = proxy.into_iter().collect();
    if let Some(passwords) = &settings.authentication.passwords {
        chain.push(Arc::new(Passwords::new(passwords.0.clone())));
    }
    chain.push(certificates.clients.clone());
    chain.push(tokens.clone());
    chain.push(Arc::new(WebSocketTokens(tokens)));
    let authentication = Authentication {
        chain,
        audiences: accounts.audiences.clone(),
        issuer: Some(Arc::new(issuer(settings, credentials)?)),
        keys,
        keys_url: accounts.keys_url.clone(),
        ..Authentication::default()
    }
    .with_anonymous(settings.authentication.anonymous.clone());
    if let Some((_, text)) = &settings.authentication.issuers.file {
        authentication.metrics.configured(text.as_bytes());
    }
    Ok(Authenticators {
        authentication,
        issuers,
    })
}

/// The kinds of bearer tokens in kube-apiserver's order.
fn tokens(
    settings: &Settings,
    keys: &KeySet,
    issuers: &Arc<Issuers>,
) -> Result<Vec<Arc<dyn TokenAuthenticator>>, OptionError> {
    let accounts = &settings.authentication.service_accounts;
    let own = || accounts.audiences.clone();
    let trust = Arc::new(Trust {
        keys: keys.clone(),
        issuers: accounts.issuers.clone(),
        audiences: own(),
        lookup: accounts.lookup,
    });
    let mut chain: Vec<Arc<dyn TokenAuthenticator>> = Vec::new();
    if !settings.authentication.tokens.users.is_empty() {
        chain.push(Arc::new(ForAudiences {
            own: own(),
            tokens: StaticTokens::new(settings.authentication.tokens.users.clone()),
        }));
    }
    chain.push(Arc::new(ServiceAccountTokens::legacy(trust.clone())));
    chain.push(Arc::new(ServiceAccountTokens::bound(trust)));
    if settings.authentication.bootstrap_tokens {
        chain.push(Arc::new(ForAudiences {
            own: own(),
            tokens: BootstrapTokens::default(),
        }));
    }
    chain.push(Arc::new(ForAudiences {
        own: own(),
        tokens: issuers.clone(),
    }));
    if let Some(given) = &settings.authentication.token_webhook {
        let tokens = WebhookTokens {
            webhook: given.webhook.clone(),
            version: given.version,
            audiences: own(),
        };
        let cache = TokenCache::new(given.remember_ms, given.remember_ms)
            .map_err(|error| OptionError::CommandLine(error.to_string()))?;
        chain.push(Arc::new(Remembered { tokens, cache }));
    }
    Ok(chain)
}

fn oidc(settings: &[OidcSettings], egress: &Egress) -> Result<Vec<OidcTokens>, TlsConfigError> {
    let settings = settings.iter().cloned();
    settings.map(|one| OidcTokens::new(one, egress)).collect()
}

/// A changed file that can't be used.
#[derive(Debug, thiserror::Error)]
enum ReloadError {
    #[error(transparent)]
    Authorities(#[from] OptionError),
    #[error(transparent)]
    Read(#[from] std::io::Error),
    #[error(transparent)]
    Configuration(#[from] AuthenticationConfigurationError),
    #[error(transparent)]
    Issuer(#[from] TlsConfigError),
}

/// The authenticators, and those of them that a file describes.
pub(crate) struct Authenticators {
    pub authentication: Authentication,
    issuers: Arc<Issuers>,
}

impl Authenticators {
    /// Goes on with files that have changed until the shutdown.
    pub(crate) fn follow(self, settings: &Settings, shutdown: &Shutdown) {
        match (
            &settings.authentication.issuers.file,
            &settings.authentication.issuers.authorities_file,
        ) {
            (Some((path, text)), _) => self.follow_file(path.clone(), text.clone(), settings, shutdown),
            (None, Some(path)) => self.follow_authorities(path.clone(), settings, shutdown),
            (None, None) => {}
        }
    }

    /// The authorities of the issuer that flags describe.
    fn follow_authorities(self, path: PathBuf, settings: &Settings, shutdown: &Shutdown) {
        let egress = settings.egress.clone();
        let known = Mutex::new(settings.authentication.issuers.settings.clone());
        let reload = move || {
            let text = read_authorities(&path)?;
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.iter().all(|one| one.authorities.as_ref() == Some(&text)) {
                return Ok(false);
            }
            for one in known.iter_mut() {
                one.authorities = Some(text.clone());
            }
            self.issuers.replace(oidc(&known, &egress)?);
            Ok::<_, ReloadError>(true)
        };
        tokio::task::spawn_local(follow("authorities of the OIDC issuer", reload, LOOK, shutdown.clone()));
    }

    /// The file of issuers.
    fn follow_file(self, path: PathBuf, text: String, settings: &Settings, shutdown: &Shutdown) {
        let egress = settings.egress.clone();
        let taken = settings.authentication.service_accounts.issuers.clone();
        let open = settings.authorization.has(AuthorizerKind::AlwaysAllow);
        let flag = settings.authentication.anonymous.clone();
        let said = settings.authentication.issuers.anonymous.is_some();
        let known = Mutex::new(text);
        let reload = move || {
            let text = std::fs::read_to_string(&path)?;
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            if *known == text {
                return Ok(false);
            }
            // One that can't be used is told once, not every time it is looked at.
            known.clone_from(&text);
            let metrics = &self.authentication.metrics;
            let now = SystemClock.now().unix_seconds();
            let taken = self.take(&text, &taken, &egress);
            metrics.reloaded(taken.is_ok(), now);
            let anonymous = taken?.unwrap_or(if said { Anonymous::Everywhere } else { flag.clone() });
            metrics.configured(text.as_bytes());
            let anonymous = if open { Anonymous::Nowhere } else { anonymous };
            self.authentication.anonymous.store(Arc::new(anonymous));
            Ok::<_, ReloadError>(true)
        };
        tokio::task::spawn_local(follow("authentication configuration", reload, LOOK, shutdown.clone()));
    }

    /// Believes the issuers of this text; what it says of anonymous requests.
    fn take(&self, text: &str, taken: &[String], egress: &Egress) -> Result<Option<Anonymous>, ReloadError> {
        let read = AuthenticationConfiguration::read(text.as_bytes(), taken)?;
        self.issuers.replace(oidc(&read.issuers, egress)?);
        Ok(read.anonymous)
    }
}

/// What signs the tokens of service accounts.
fn issuer(settings: &Settings, credentials: &Credentials) -> Result<TokenIssuer, OptionError> {
    const FLAG: &str = "--service-account-signing-key-file";
    let path = &credentials.signing_key_file;
    let pem = std::fs::read_to_string(path).map_err(|error| OptionError::file(FLAG, path, error))?;
    let accounts = &settings.authentication.service_accounts;
    let name = accounts.issuers.first().map_or("", String::as_str);
    let mut issuer = TokenIssuer::new(&pem, name).map_err(|reason| OptionError::file(FLAG, path, reason))?;
    issuer.lifetimes = accounts.lifetimes;
    Ok(issuer)
}
