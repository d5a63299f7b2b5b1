//! An issuer's configuration and keys, asked for when a token needs them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use keelson_machinery::env::Clock;
use keelson_machinery::field::text::quote;
use keelson_net::client::{Call, Client, ClientSettings, ClientTls, Egress, Roots};
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
pub(super) fn client(settings: &OidcSettings, egress: &Egress) -> Result<Client, String> {
    let roots = settings.authorities.clone().map_or(Roots::System, Roots::Pem);
    let client = Client::new(ClientSettings {
        tls: ClientTls {
            roots,
            ..ClientTls::default()
        },
        dialer: egress.dialer(settings.way),
        ..ClientSettings::default()
    });
    client.map_err(|error| error.to_string())
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
    #[error("oidc: verify token: failed to verify signature: {0}")]
    Signature(String),
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
            tracing::warn!(issuer = self.issuer, error, "an issuer's keys can't be read");
            match self.state().keys_url.is_some() {
                true => Unverified::Signature(format!("fetching keys {error}")),
                false => Unverified::NotReady,
            }
        })?;
        match signed_by(token, &keys) {
            true => Ok(()),
            false => Err(Unverified::Signature("failed to verify id token signature".to_owned())),
        }
    }

    async fn fetch(&self) -> Result<Arc<KeySet>, String> {
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
    fn begin_fetch(&self) -> Result<(), String> {
        let now = Instant::now();
        let fetches = &mut self.state().fetches;
        while fetches
            .front()
            .is_some_and(|then| now.duration_since(*then) > FETCH_WINDOW)
        {
            fetches.pop_front();
        }
        if fetches.len() >= MAX_FETCHES {
            return Err("was tried often enough for now".to_owned());
        }
        fetches.push_back(now);
        Ok(())
    }

    async fn discover(&self) -> Result<String, String> {
        let configuration: Configuration = self.get(&self.discovery_url).await?;
        if configuration.issuer != self.issuer {
            return Err(format!(
                "oidc: issuer URL provided to client ({}) did not match the issuer URL returned by provider ({})",
                quote(&self.issuer),
                quote(&configuration.issuer)
            ));
        }
        match configuration.jwks_uri.starts_with("https://") {
            true => Ok(configuration.jwks_uri),
            false => Err(format!(
                "oidc: keys at {} are not read: no https",
                quote(&configuration.jwks_uri)
            )),
        }
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, url: &str) -> Result<T, String> {
        let answer = self
            .client
            .call(&Call::get(url))
            .await
            .map_err(|error| error.to_string())?;
        if answer.status != 200 {
            return Err(format!("{url}: status {}", answer.status));
        }
        serde_json::from_slice(&answer.body).map_err(|error| format!("{url}: {error}"))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn signed_by(token: &Token<'_>, keys: &KeySet) -> bool {
    keys.candidates(&token.header.kid).any(|key| token.is_signed_by(key))
}
