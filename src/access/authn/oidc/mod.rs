//! Tokens of OpenID Connect issuers.

mod distributed;
mod expression;
mod id_token;
mod identity;
mod provider;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use keelson_machinery::env::Clock;
use keelson_net::client::{Egress, TlsConfigError};
use serde_json::{Map, Value};

use super::jwt::{Token, unverified_issuer};
use super::{Answer, Attachment, AuthenticationMetrics, Identity, Outcome, Refusal, TokenAuthenticator};
use distributed::{Distributed, DistributedError};
use id_token::{IdToken, UnfitToken};
use identity::MappingError;
use provider::{Provider, Unverified};

pub use expression::{claims_environment, user_environment};
pub use settings::{ClaimRule, Mapping, OidcSettings, Rule};

/// Why a token of an issuer stands for nobody, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
enum OidcError {
    #[error("oidc: the server has not started")]
    NotStarted,
    #[error("oidc: verify token: oidc: malformed jwt")]
    Malformed,
    #[error("oidc: verify token: {0}")]
    Unfit(#[from] UnfitToken),
    #[error(transparent)]
    Unverified(#[from] Unverified),
    #[error("oidc: parse claims: {0}")]
    Claims(serde_json::Error),
    #[error(transparent)]
    Distributed(#[from] DistributedError),
    #[error(transparent)]
    Mapping(#[from] MappingError),
}

/// Believes the tokens of one issuer.
pub struct OidcTokens {
    settings: OidcSettings,
    provider: Provider,
    /// Finds the groups of tokens that say who has them.
    groups: Option<Distributed>,
    server: OnceLock<(Arc<dyn Clock>, Arc<AuthenticationMetrics>)>,
}

impl OidcTokens {
    /// Nothing is asked of the issuer before the first token comes.
    ///
    /// # Errors
    /// Authorities that can't be used.
    pub fn new(settings: OidcSettings, egress: &Egress) -> Result<OidcTokens, TlsConfigError> {
        let client = provider::client(&settings, egress)?;
        let groups = match &settings.groups {
            Some(Mapping::Claim { name, .. }) => Some(Distributed::new(name.clone(), client.clone())),
            _ => None,
        };
        Ok(OidcTokens {
            provider: Provider::of(&settings.url, settings.discovery_url.as_deref(), client),
            groups,
            settings,
            server: OnceLock::new(),
        })
    }

    /// Hands over what the server has, to one that was made while it runs.
    pub fn attach_to(&self, clock: &Arc<dyn Clock>, metrics: &Arc<AuthenticationMetrics>) {
        let _ = self.server.set((clock.clone(), metrics.clone()));
    }

    async fn judge(&self, text: &str) -> Outcome {
        let begin = Instant::now();
        let outcome = self.user(text).await;
        if let Some((_, metrics)) = self.server.get() {
            metrics
                .jwt
                .observe(&self.settings.url, outcome.is_ok(), begin.elapsed());
        }
        outcome.map(Some).map_err(|error| Refusal::from(error.to_string()))
    }

    async fn user(&self, text: &str) -> Result<Arc<Identity>, OidcError> {
        let token = Token::parse(text).ok_or(OidcError::Malformed)?;
        let (clock, metrics) = self.server.get().ok_or(OidcError::NotStarted)?;
        let id_token = IdToken::read(&token.claims)?;
        id_token.check(&self.settings, clock.now())?;
        self.settings.check_algorithm(&token.header.alg)?;
        self.provider.verify(&token, clock, metrics).await?;
        let mut claims: Map<String, Value> = serde_json::from_slice(&token.claims).map_err(OidcError::Claims)?;
        if let Some(groups) = &self.groups {
            groups.expand(&mut claims, &self.settings, clock, metrics).await?;
        }
        let user = self.settings.user_of(claims)?;
        Ok(Identity::of(user))
    }
}

impl TokenAuthenticator for OidcTokens {
    fn authenticate<'a>(&'a self, token: &'a str, _audiences: &'a [String]) -> Answer<'a> {
        match unverified_issuer(token).is_some_and(|issuer| issuer == self.settings.url) {
            true => Answer::Later(Box::pin(self.judge(token))),
            false => Answer::nothing(),
        }
    }

    fn attach(&self, attachment: &Attachment<'_>) {
        self.attach_to(attachment.clock, attachment.metrics);
    }
}
