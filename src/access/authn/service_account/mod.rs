//! Tokens of service accounts: those that TokenRequest issues, and the older ones that stand in Secrets.

mod bound;
mod legacy;
mod mark;

use std::sync::{Arc, OnceLock};

use keelson_machinery::env::Clock;
use keelson_machinery::field::text::quote;
use keelson_machinery::object::Object;
use serde::de::DeserializeOwned;

use super::jwt::{BAD_SIGNATURE, KeySet, RegisteredClaims, Token, unverified_issuer};
use super::objects::Source;
use super::{Answer, Attachment, AuthenticationMetrics, Identity, Outcome, Refusal, TokenAuthenticator, intersection};
use crate::user::{ACCOUNT_PREFIX, User};

/// The issuer of tokens in Secrets.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// Objects that were to be deleted so many seconds ago are gone for tokens.
const DELETION_LEEWAY: i64 = 60;
const INVALIDATED: &str = "service account token has been invalidated";

/// What tokens of service accounts are checked against.
pub struct Trust {
    pub keys: KeySet,
    /// Of issued tokens.
    pub issuers: Vec<String>,
    /// The audiences of tokens that name none.
    pub audiences: Vec<String>,
    /// Whether a token in a Secret dies with it (`--service-account-lookup`).
    pub lookup: bool,
}

/// Believes the tokens of service accounts.
pub struct ServiceAccountTokens {
    trust: Arc<Trust>,
    kind: Kind,
    server: OnceLock<(Arc<dyn Clock>, Arc<AuthenticationMetrics>)>,
    accounts: Source,
    secrets: Source,
    pods: Source,
    nodes: Source,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Legacy,
    Bound,
}

impl ServiceAccountTokens {
    /// Tokens out of Secrets.
    pub fn legacy(trust: Arc<Trust>) -> ServiceAccountTokens {
        ServiceAccountTokens::of(trust, Kind::Legacy)
    }

    /// Tokens that TokenRequest issued.
    pub fn bound(trust: Arc<Trust>) -> ServiceAccountTokens {
        ServiceAccountTokens::of(trust, Kind::Bound)
    }

    fn of(trust: Arc<Trust>, kind: Kind) -> ServiceAccountTokens {
        ServiceAccountTokens {
            trust,
            kind,
            server: OnceLock::new(),
            accounts: Source::of("serviceaccounts"),
            secrets: Source::of("secrets"),
            pods: Source::of("pods"),
            nodes: Source::of("nodes"),
        }
    }

    fn issued(&self, token: &str) -> bool {
        unverified_issuer(token).is_some_and(|issuer| match self.kind {
            Kind::Legacy => issuer == LEGACY_ISSUER,
            Kind::Bound => self.trust.issuers.contains(&issuer),
        })
    }

    async fn judge(&self, text: &str, wanted: &[String]) -> Outcome {
        let Some(token) = Token::parse(text) else {
            return Ok(None);
        };
        let registered = self.registered_claims(&token)?;
        let mut notes = Vec::new();
        let audiences = match registered.aud.0.as_slice() {
            [] => {
                notes.push(("authentication.k8s.io/legacy-token", registered.sub.clone()));
                if let Some((_, metrics)) = self.server.get() {
                    metrics.service_accounts.legacy.inc();
                }
                &self.trust.audiences
            }
            given => given,
        };
        let wanted = if wanted.is_empty() {
            &self.trust.audiences
        } else {
            wanted
        };
        let fitting = intersection(audiences, wanted);
        if fitting.is_empty() && !self.trust.audiences.is_empty() {
            return Err(wrong_audience(audiences, wanted).into());
        }
        let user = match self.kind {
            Kind::Legacy => self.legacy_user(text, &registered, read(&token)?, &mut notes).await?,
            Kind::Bound => self.bound_user(&registered, read(&token)?, &mut notes).await?,
        };
        let identity = Identity {
            user: Arc::new(user),
            audiences: fitting,
            notes,
        };
        Ok(Some(Arc::new(identity)))
    }

    /// The claims, by the first key that made the signature and under which they can be read. An error says what every
    /// key has against it.
    fn registered_claims(&self, token: &Token<'_>) -> Result<RegisteredClaims, Refusal> {
        let mut faults = Vec::new();
        for key in self.trust.keys.candidates(&token.header.kid) {
            if !token.is_signed_by(key) {
                faults.push(BAD_SIGNATURE.to_owned());
                continue;
            }
            match read(token) {
                Ok(claims) => return Ok(claims),
                Err(fault) => faults.extend(fault.0),
            }
        }
        match faults.is_empty() {
            true => Err("invalid signature, no keys found".into()),
            false => Err(Refusal(faults)),
        }
    }

    /// Seconds since 1970. Before the server is there nothing is in its time.
    fn now(&self) -> i64 {
        self.server
            .get()
            .map_or(i64::MAX, |(clock, _)| clock.now().unix_seconds())
    }

    fn count(
        &self,
        which: impl FnOnce(&super::metrics::ServiceAccountMetrics) -> &prometheus_client::metrics::counter::Counter,
    ) {
        if let Some((_, metrics)) = self.server.get() {
            which(&metrics.service_accounts).inc();
        }
    }

    /// Whether an object was to be gone long enough ago.
    fn is_gone(&self, object: &dyn Object) -> bool {
        let before = self.now().saturating_sub(DELETION_LEEWAY);
        let deletion = object.meta().deletion_timestamp;
        deletion.is_some_and(|time| time.unix_seconds() < before)
    }
}

impl TokenAuthenticator for ServiceAccountTokens {
    fn authenticate<'a>(&'a self, token: &'a str, audiences: &'a [String]) -> Answer<'a> {
        match self.issued(token) {
            true => Answer::Later(Box::pin(self.judge(token, audiences))),
            false => Answer::nothing(),
        }
    }

    fn attach(&self, attachment: &Attachment<'_>) {
        let _ = self.server.set((attachment.clock.clone(), attachment.metrics.clone()));
        let sources = match self.kind {
            Kind::Legacy => vec![&self.accounts, &self.secrets],
            Kind::Bound => vec![&self.accounts, &self.secrets, &self.pods, &self.nodes],
        };
        sources.iter().for_each(|source| source.attach(attachment));
    }
}

fn read<T: DeserializeOwned>(token: &Token<'_>) -> Result<T, Refusal> {
    serde_json::from_slice(&token.claims).map_err(|error| {
        let text = error.to_string();
        // Where in the text it is, is our reader's knowledge.
        let text = text.split(" at line ").next().unwrap_or_default();
        Refusal::from(format!("go-jose/go-jose/jwt: {text}"))
    })
}

fn wrong_audience(audiences: &[String], wanted: &[String]) -> String {
    let list = |texts: &[String]| texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" ");
    format!(
        "token audiences [{}] is invalid for the target audiences [{}]",
        list(audiences),
        list(wanted)
    )
}

/// The account as a user.
fn account_user(namespace: &str, name: &str, uid: &str) -> User {
    User {
        name: format!("{ACCOUNT_PREFIX}{namespace}:{name}"),
        uid: uid.to_owned(),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ],
        ..User::default()
    }
}

/// What cannot be looked up, as a client of the original hears of it.
fn check_reference(namespace: &str, name: &str) -> Result<(), Refusal> {
    match (namespace.is_empty(), name.is_empty()) {
        (_, true) => Err("resource name may not be empty".into()),
        (true, false) => Err("the server could not find the requested resource".into()),
        (false, false) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
