//! Groups that the token does not hold itself: it names another endpoint, which has them in a token of its own
//! (distributed claims of OpenID Connect).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderValue;
use http::header::AUTHORIZATION;
use keelson_machinery::env::Clock;
use keelson_machinery::field::text::quote;
use keelson_net::client::{Call, CallError, Client};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::OidcSettings;
use super::id_token::{IdToken, UnfitToken};
use super::provider::{Provider, Unverified};
use crate::authn::AuthenticationMetrics;
use crate::authn::jwt::{Token, unverified_issuer};

const NAMES: &str = "_claim_names";
const SOURCES: &str = "_claim_sources";
/// Issuers of such tokens whose keys are kept.
const MAX_ISSUERS: usize = 16;

/// Why a claim that is elsewhere can't be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum DistributedError {
    /// A member of the token that is not as it should be.
    #[error("oidc: error parsing {0}")]
    Member(&'static str),
    #[error("oidc: no source {} of a distributed claim", quote(.0))]
    NoSource(String),
    #[error("oidc: {} is not asked: no https", quote(.0))]
    NoHttps(String),
    #[error("oidc: the access token of a distributed claim is no header")]
    AccessToken,
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("oidc: {}: status {status}", quote(.url))]
    Status { url: String, status: u16 },
    #[error("oidc: a distributed claim is no text")]
    NoText,
    #[error("oidc: verify distributed claim token: {0}")]
    Unfit(UnfitClaim),
    #[error("oidc: could not find distributed claim {}", quote(.0))]
    Absent(String),
}

/// Why the token of an endpoint is not believed.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnfitClaim {
    #[error("malformed jwt")]
    Malformed,
    #[error("it names no issuer")]
    NoIssuer,
    #[error("{} is not asked: no https", quote(.0))]
    NoHttps(String),
    #[error(transparent)]
    Token(#[from] UnfitToken),
    #[error(transparent)]
    Unverified(#[from] Unverified),
    #[error(transparent)]
    Claims(#[from] serde_json::Error),
}

/// Finds one claim elsewhere.
pub(super) struct Distributed {
    claim: String,
    client: Client,
    /// Whose tokens endpoints answered with, by their URL.
    issuers: Mutex<BTreeMap<String, Arc<Provider>>>,
}

#[derive(Deserialize)]
struct Endpoint {
    #[serde(default)]
    endpoint: String,
    #[serde(default)]
    access_token: String,
}

impl Distributed {
    /// `client` asks the endpoints, and the issuers of what they answer, as it asks the issuer of the first token.
    pub fn new(claim: String, client: Client) -> Distributed {
        Distributed {
            claim,
            client,
            issuers: Mutex::default(),
        }
    }

    /// Adds the claim to those of a believed token that lacks it and says who has it.
    ///
    /// # Errors
    /// Nobody could be asked, or what was answered is not to be believed.
    pub async fn expand(
        &self,
        claims: &mut Map<String, Value>,
        settings: &OidcSettings,
        clock: &Arc<dyn Clock>,
        metrics: &AuthenticationMetrics,
    ) -> Result<(), DistributedError> {
        if claims.contains_key(&self.claim) {
            return Ok(());
        }
        let Some(endpoint) = self.endpoint(claims)? else {
            return Ok(());
        };
        let text = self.fetch(&endpoint).await?;
        let believed = self.believed(&text, settings, clock, metrics).await;
        let found = believed.map_err(DistributedError::Unfit)?;
        let found = found.ok_or_else(|| DistributedError::Absent(self.claim.clone()))?;
        claims.insert(self.claim.clone(), found);
        Ok(())
    }

    /// Who has it; `None`: nobody, or the token's own part, which is not supported.
    fn endpoint(&self, claims: &Map<String, Value>) -> Result<Option<Endpoint>, DistributedError> {
        let Some(name) = claims.get(NAMES).and_then(|names| names.get(&self.claim)) else {
            return Ok(None);
        };
        let name = name.as_str().ok_or(DistributedError::Member(NAMES))?;
        let source = claims.get(SOURCES).and_then(|sources| sources.get(name));
        let source = source.ok_or_else(|| DistributedError::NoSource(name.to_owned()))?;
        let endpoint = Endpoint::deserialize(source).map_err(|_| DistributedError::Member(SOURCES))?;
        Ok(Some(endpoint).filter(|one| !one.endpoint.is_empty()))
    }

    async fn fetch(&self, endpoint: &Endpoint) -> Result<String, DistributedError> {
        let url = endpoint.endpoint.as_str();
        if !url.starts_with("https://") {
            return Err(DistributedError::NoHttps(url.to_owned()));
        }
        let mut call = Call::get(url);
        if !endpoint.access_token.is_empty() {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", endpoint.access_token))
                .map_err(|_| DistributedError::AccessToken)?;
            value.set_sensitive(true);
            call = call.header(AUTHORIZATION, value);
        }
        let answer = self.client.call(&call).await?;
        if !answer.is_success() {
            return Err(DistributedError::Status {
                url: url.to_owned(),
                status: answer.status,
            });
        }
        let text = std::str::from_utf8(&answer.body).map_err(|_| DistributedError::NoText)?;
        Ok(text.trim().to_owned())
    }

    /// The claim of a token whose issuer vouches for it, if it has that.
    async fn believed(
        &self,
        text: &str,
        settings: &OidcSettings,
        clock: &Arc<dyn Clock>,
        metrics: &AuthenticationMetrics,
    ) -> Result<Option<Value>, UnfitClaim> {
        let token = Token::parse(text).ok_or(UnfitClaim::Malformed)?;
        let issuer = unverified_issuer(text).ok_or(UnfitClaim::NoIssuer)?;
        let provider = self.issuer(&issuer)?;
        let id_token = IdToken::read(&token.claims)?;
        id_token.check(settings, clock.now())?;
        settings.check_algorithm(&token.header.alg)?;
        provider.verify(&token, clock, metrics).await?;
        let mut claims: Map<String, Value> = serde_json::from_slice(&token.claims)?;
        Ok(claims.remove(&self.claim))
    }

    fn issuer(&self, url: &str) -> Result<Arc<Provider>, UnfitClaim> {
        let mut issuers = self.issuers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = issuers.get(url) {
            return Ok(known.clone());
        }
        if !url.starts_with("https://") {
            return Err(UnfitClaim::NoHttps(url.to_owned()));
        }
        if issuers.len() >= MAX_ISSUERS {
            issuers.clear();
        }
        let provider = Arc::new(Provider::of(url, None, self.client.clone()));
        issuers.insert(url.to_owned(), provider.clone());
        Ok(provider)
    }
}
