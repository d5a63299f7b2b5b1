//! Groups that the token does not hold itself: it names another endpoint, which has them in a token of its own
//! (distributed claims of OpenID Connect).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderValue;
use http::header::AUTHORIZATION;
use keelson_machinery::env::Clock;
use keelson_machinery::field::text::quote;
use keelson_net::client::{Call, Client};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::OidcSettings;
use super::id_token::IdToken;
use super::provider::Provider;
use crate::authn::AuthenticationMetrics;
use crate::authn::jwt::{Token, unverified_issuer};

const NAMES: &str = "_claim_names";
const SOURCES: &str = "_claim_sources";
/// Issuers of such tokens whose keys are kept.
const MAX_ISSUERS: usize = 16;

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
    ) -> Result<(), String> {
        if claims.contains_key(&self.claim) {
            return Ok(());
        }
        let Some(endpoint) = self.endpoint(claims)? else {
            return Ok(());
        };
        let text = self.fetch(&endpoint).await?;
        let found = self.believed(&text, settings, clock, metrics).await?;
        claims.insert(self.claim.clone(), found);
        Ok(())
    }

    /// Who has it; `None`: nobody, or the token's own part, which is not supported.
    fn endpoint(&self, claims: &Map<String, Value>) -> Result<Option<Endpoint>, String> {
        let Some(name) = claims.get(NAMES).and_then(|names| names.get(&self.claim)) else {
            return Ok(None);
        };
        let wrong = |what: &str| format!("oidc: error parsing {what}");
        let name = name.as_str().ok_or_else(|| wrong(NAMES))?;
        let source = claims.get(SOURCES).and_then(|sources| sources.get(name));
        let source = source.ok_or_else(|| format!("oidc: no source {} of a distributed claim", quote(name)))?;
        let endpoint = Endpoint::deserialize(source).map_err(|_| wrong(SOURCES))?;
        Ok(Some(endpoint).filter(|one| !one.endpoint.is_empty()))
    }

    async fn fetch(&self, endpoint: &Endpoint) -> Result<String, String> {
        let url = endpoint.endpoint.as_str();
        if !url.starts_with("https://") {
            return Err(format!("oidc: {} is not asked: no https", quote(url)));
        }
        let mut call = Call::get(url);
        if !endpoint.access_token.is_empty() {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", endpoint.access_token))
                .map_err(|_| "oidc: the access token of a distributed claim is no header".to_owned())?;
            value.set_sensitive(true);
            call = call.header(AUTHORIZATION, value);
        }
        let answer = self.client.call(&call).await.map_err(|error| error.to_string())?;
        if !answer.is_success() {
            return Err(format!("oidc: {}: status {}", quote(url), answer.status));
        }
        let text = std::str::from_utf8(&answer.body).map_err(|_| "oidc: a distributed claim is no text".to_owned())?;
        Ok(text.trim().to_owned())
    }

    /// The claim of a token whose issuer vouches for it.
    async fn believed(
        &self,
        text: &str,
        settings: &OidcSettings,
        clock: &Arc<dyn Clock>,
        metrics: &AuthenticationMetrics,
    ) -> Result<Value, String> {
        let unfit = |why: String| format!("oidc: verify distributed claim token: {why}");
        let token = Token::parse(text).ok_or_else(|| unfit("malformed jwt".to_owned()))?;
        let issuer = unverified_issuer(text).ok_or_else(|| unfit("it names no issuer".to_owned()))?;
        let provider = self.issuer(&issuer).map_err(unfit)?;
        let id_token = IdToken::read(&token.claims).map_err(unfit)?;
        id_token.check(settings, clock.now()).map_err(unfit)?;
        settings.check_algorithm(&token.header.alg).map_err(unfit)?;
        let verified = provider.verify(&token, clock, metrics).await;
        verified.map_err(|why| unfit(why.to_string()))?;
        let mut claims: Map<String, Value> =
            serde_json::from_slice(&token.claims).map_err(|error| unfit(error.to_string()))?;
        let found = claims.remove(&self.claim);
        found.ok_or_else(|| format!("oidc: could not find distributed claim {}", quote(&self.claim)))
    }

    fn issuer(&self, url: &str) -> Result<Arc<Provider>, String> {
        let mut issuers = self.issuers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = issuers.get(url) {
            return Ok(known.clone());
        }
        if !url.starts_with("https://") {
            return Err(format!("{} is not asked: no https", quote(url)));
        }
        if issuers.len() >= MAX_ISSUERS {
            issuers.clear();
        }
        let provider = Arc::new(Provider::of(url, None, self.client.clone()));
        issuers.insert(url.to_owned(), provider.clone());
        Ok(provider)
    }
}
