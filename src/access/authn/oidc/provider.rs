//! An issuer's configuration and keys, asked for when a token needs them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use keelson_machinery::env::Clock;
use keelson_machinery::field::text::quote;
use keelson_net::client::{Call, CallError, Client, ClientSettings, ClientTls, Egress, Roots, TlsConfigError};
use serde::Deserialize;
use serde_json::Value;

use super::OidcSettings;
use crate::authn::AuthenticationMetrics;
use crate::authn::jwt::{KeySet, Token, VerifyingKey};

/// Below an issuer's URL.
const CONFIGURATION: &str = "/.well-known/openid-configuration";
/// Keys of one issuer that are taken.
const MAX_KEYS: usize = 256;
/// So many times an issuer is asked within that time, whatever tokens come.
const MAX_FETCHES: usize = 10;
const FETCH_WINDOW: Duration = Duration::from_secs(10);

/// What asks an issuer: with its authorities, on its way.
pub(super) fn client(settings: &OidcSettings, egress: &Egress) -> Result<Client, TlsConfigError> {
    let roots = settings.authorities.clone().map_or(Roots::System, Roots::Pem);
    Client::new(ClientSettings {
        tls: ClientTls {
            roots,
            ..ClientTls::default()
        },
        dialer: egress.dialer(settings.way),
        ..ClientSettings::default()
    })
}

pub(super) struct Provider {
    client: Client,
    issuer: String,
    discovery_url: String,
    state: Mutex<State>,
    /// Held by whoever asks the issuer; the others wait and use what comes.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    keys_url: Option<String>,
    keys: Arc<KeySet>,
    fetches: VecDeque<Instant>,
}

/// Why a token's signature is not believed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unverified {
    /// The issuer has not said yet where its keys are.
    #[error("oidc: authenticator not initialized")]
    NotReady,
    #[error("oidc: verify token: failed to verify signature: failed to verify id token signature")]
    Signature,
    #[error("oidc: verify token: failed to verify signature: fetching keys {0}")]
    Keys(FetchError),
}

/// Why the keys of an issuer can't be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("was tried often enough for now")]
    TooOften,
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("{url}: status {status}")]
    Status { url: String, status: u16 },
    #[error("{url}: {error}")]
    Json { url: String, error: serde_json::Error },
    #[error(
        "oidc: issuer URL provided to client ({}) did not match the issuer URL returned by provider ({})",
        quote(.wanted),
        quote(.got)
    )]
    OtherIssuer { wanted: String, got: String },
    #[error("oidc: keys at {} are not read: no https", quote(.0))]
    NoHttps(String),
}

#[derive(Deserialize)]
struct Configuration {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct Keys {
    keys: Vec<Value>,
}

impl Provider {
    /// An issuer that is asked by this client. `discovery_url`: where its configuration is, if not where the standard
    /// says.
    pub fn of(issuer: &str, discovery_url: Option<&str>, client: Client) -> Provider {
        let standard = || format!("{}{CONFIGURATION}", issuer.trim_end_matches('/'));
        Provider {
            client,
            issuer: issuer.to_owned(),
            discovery_url: discovery_url.map_or_else(standard, str::to_owned),
            state: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Whether one of the issuer's keys signed the token. If none that is known did, its keys are read anew: issuers
    /// change them.
    pub async fn verify(
        &self,
        token: &Token<'_>,
        clock: &Arc<dyn Clock>,
        metrics: &AuthenticationMetrics,
    ) -> Result<(), Unverified> {
        let known = self.state().keys.clone();
        if signed_by(token, &known) {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        let current = self.state().keys.clone();
        if !Arc::ptr_eq(&known, &current) && signed_by(token, &current) {
            return Ok(());
        }
        let fetched = self.fetch().await;
        metrics
            .jwt
            .fetched(&self.issuer, fetched.is_ok(), clock.now().unix_seconds());
        let keys = fetched.map_err(|error| {
            tracing::warn!(issuer = self.issuer, %error, "an issuer's keys can't be read");
            match self.state().keys_url.is_some() {
                true => Unverified::Keys(error),
                false => Unverified::NotReady,
            }
        })?;
        match signed_by(token, &keys) {
            true => Ok(()),
            false => Err(Unverified::Signature),
        }
    }

    async fn fetch(&self) -> Result<Arc<KeySet>, FetchError> {
        self.begin_fetch()?;
        let known = self.state().keys_url.clone();
        let url = match known {
            Some(url) => url,
            None => self.discover().await?,
        };
        let keys: Keys = self.get(&url).await?;
        let keys = keys.keys.iter().take(MAX_KEYS).filter_map(VerifyingKey::from_jwk);
        let keys = Arc::new(KeySet::new(keys));
        let mut state = self.state();
        state.keys_url = Some(url);
        state.keys = keys.clone();
        Ok(keys)
    }

    /// Tokens can be made up by anybody; the issuer must not suffer from that.
    fn begin_fetch(&self) -> Result<(), FetchError> {
        let now = Instant::now();
        let fetches = &mut self.state().fetches;
        while fetches
            .front()
            .is_some_and(|then| now.duration_since(*then) > FETCH_WINDOW)
        {
            fetches.pop_front();
        }
        if fetches.len() >= MAX_FETCHES {
            return Err(FetchError::TooOften);
        }
        fetches.push_back(now);
        Ok(())
    }

    async fn discover(&self) -> Result<String, FetchError> {
        let configuration: Configuration = self.get(&self.discovery_url).await?;
        if configuration.issuer != self.issuer {
            return Err(FetchError::OtherIssuer {
                wanted: self.issuer.clone(),
                got: configuration.issuer,
            });
        }
        match configuration.jwks_uri.starts_with("https://") {
            true => Ok(configuration.jwks_uri),
            false => Err(FetchError::NoHttps(configuration.jwks_uri)),
        }
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, url: &str) -> Result<T, FetchError> {
        let answer = self.client.call(&Call::get(url)).await?;
        let url = url.to_owned();
        match answer.status {
            200 => serde_json::from_slice(&answer.body).map_err(|error| FetchError::Json { url, error }),
            status => Err(FetchError::Status { url, status }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn signed_by(token: &Token<'_>, keys: &KeySet) -> bool {
    keys.candidates(&token.header.kid).any(|key| token.is_signed_by(key))
}
