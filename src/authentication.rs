//! From checked settings to the authenticators of the server.

use std::sync::Arc;

use keelson_server::authn::bootstrap_token::BootstrapTokens;
use keelson_server::authn::jwt::KeySet;
use keelson_server::authn::service_account::{ServiceAccountTokens, Trust};
use keelson_server::authn::token_cache::TokenCache;
use keelson_server::authn::token_file::StaticTokens;
use keelson_server::authn::token_issuer::TokenIssuer;
use keelson_server::authn::tokens::{ForAudiences, Tokens, WebSocketTokens};
use keelson_server::authn::{Anonymous, Authentication, Authenticator, TokenAuthenticator};

use crate::access::Certificates;
use crate::options::provision::Credentials;
use crate::options::{OptionError, Settings};

/// How long it is remembered whom a token stands for, in milliseconds, as kube-apiserver does.
const TOKEN_MS: u64 = 10_000;

/// The authenticators in kube-apiserver's order: a proxy in front, client certificates, bearer tokens; what none of them
/// knows is anonymous.
pub(crate) fn authentication(
    settings: &Settings,
    credentials: &Credentials,
    certificates: &Certificates,
) -> Result<Authentication, OptionError> {
    let accounts = &settings.service_accounts;
    let keys = accounts.keys(&credentials.signing_key_file)?;
    let cache = TokenCache::new(TOKEN_MS, 0).map_err(OptionError::CommandLine)?;
    let tokens = Tokens::new(tokens(settings, &keys), Some(cache));
    let proxy = certificates.proxy.clone().map(|proxy| proxy as Arc<dyn Authenticator>);
    let mut chain: Vec<Arc<dyn Authenticator>> = proxy.into_iter().collect();
    chain.push(certificates.clients.clone());
    chain.push(tokens.clone());
    chain.push(Arc::new(WebSocketTokens(tokens)));
    let anonymous = match settings.anonymous {
        true => Anonymous::Everywhere,
        false => Anonymous::Nowhere,
    };
    Ok(Authentication {
        chain,
        audiences: accounts.audiences.clone(),
        issuer: Some(Arc::new(issuer(settings, credentials)?)),
        keys,
        keys_url: accounts.keys_url.clone(),
        ..Authentication::default()
    }
    .with_anonymous(anonymous))
}

/// The kinds of bearer tokens in kube-apiserver's order.
fn tokens(settings: &Settings, keys: &KeySet) -> Vec<Arc<dyn TokenAuthenticator>> {
    let accounts = &settings.service_accounts;
    let own = || accounts.audiences.clone();
    let trust = Arc::new(Trust {
        keys: keys.clone(),
        issuers: accounts.issuers.clone(),
        audiences: own(),
        lookup: accounts.lookup,
    });
    let mut chain: Vec<Arc<dyn TokenAuthenticator>> = Vec::new();
    if !settings.tokens.users.is_empty() {
        chain.push(Arc::new(ForAudiences {
            own: own(),
            tokens: StaticTokens::new(settings.tokens.users.clone()),
        }));
    }
    chain.push(Arc::new(ServiceAccountTokens::legacy(trust.clone())));
    chain.push(Arc::new(ServiceAccountTokens::bound(trust)));
    if settings.bootstrap_tokens {
        chain.push(Arc::new(ForAudiences {
            own: own(),
            tokens: BootstrapTokens::default(),
        }));
    }
    chain
}

/// What signs the tokens of service accounts.
fn issuer(settings: &Settings, credentials: &Credentials) -> Result<TokenIssuer, OptionError> {
    const FLAG: &str = "--service-account-signing-key-file";
    let path = &credentials.signing_key_file;
    let pem = std::fs::read_to_string(path).map_err(|error| OptionError::file(FLAG, path, error))?;
    let accounts = &settings.service_accounts;
    let name = accounts.issuers.first().map_or("", String::as_str);
    let mut issuer = TokenIssuer::new(&pem, name).map_err(|reason| OptionError::file(FLAG, path, reason))?;
    issuer.lifetimes = accounts.lifetimes;
    Ok(issuer)
}
