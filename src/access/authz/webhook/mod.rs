//! Another server decides: it is sent a SubjectAccessReview and fills in its status.

mod answers;
mod conditions;
mod review;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use keelson_net::client::{Webhook, WebhookError};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::metrics::{AuthorizationMetrics, Called, Label};
use super::{Answer, Authorizer, Decision, Rules};
use crate::request_info::RequestInfo;
use crate::user::User;

use answers::Answers;
use conditions::Undecided;
pub use conditions::{ConditionError, MAX_CONDITIONS, MatchConditions};
pub use review::Version;

/// Bytes of a question that is remembered with its answer; who sends longer ones must not fill the memory.
const MAX_REMEMBERED_BYTES: usize = 10_000;

/// What a failure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The other authorizers decide.
    NoOpinion,
    Deny,
}

/// How a webhook is asked.
#[derive(Clone)]
pub struct WebhookSettings {
    pub name: String,
    pub version: Version,
    /// How long it is remembered that something is allowed; zero: not at all.
    pub authorized_ttl: Duration,
    /// The same of everything else that the webhook said.
    pub unauthorized_ttl: Duration,
    pub failure_policy: FailurePolicy,
    /// What has to be true of a request for the webhook to be asked.
    pub conditions: Arc<MatchConditions>,
}

/// Asks a webhook.
pub struct WebhookAuthorizer {
    webhook: Webhook,
    settings: WebhookSettings,
    label: Label,
    answers: Answers,
    metrics: AuthorizationMetrics,
}

impl WebhookAuthorizer {
    pub fn new(webhook: Webhook, settings: WebhookSettings, metrics: AuthorizationMetrics) -> WebhookAuthorizer {
        WebhookAuthorizer {
            webhook,
            label: Label {
                name: settings.name.clone(),
                kind: "Webhook",
            },
            settings,
            answers: Answers::default(),
            metrics,
        }
    }

    async fn decide(&self, user: &User, info: &RequestInfo) -> Decision {
        match self.matches(user, info) {
            Ok(true) => {}
            Ok(false) => return Decision::NoOpinion(String::new()),
            Err(error) => return self.failed(error.to_string()),
        }
        let question = self.settings.version.question(user, info);
        let key: [u8; 32] = Sha256::digest(&question.spec).into();
        if let Some(decision) = self.answers.get(&key, Instant::now()) {
            return decision;
        }
        let short = question.spec.len() <= MAX_REMEMBERED_BYTES;
        match self.ask(question.document).await {
            Ok(decision) => {
                let ttl = match decision {
                    Decision::Allow(_) => self.settings.authorized_ttl,
                    _ => self.settings.unauthorized_ttl,
                };
                if short && !ttl.is_zero() {
                    self.answers.put(key, decision.clone(), Instant::now() + ttl);
                }
                decision
            }
            Err(Failure::Unanswered(error)) => self.failed(error),
            // Allowed and refused at once: whoever says that must not have it read as the first.
            Err(Failure::Contradiction(error)) => Decision::FailedClosed(error),
        }
    }

    fn matches(&self, user: &User, info: &RequestInfo) -> Result<bool, Undecided> {
        let conditions = &self.settings.conditions;
        if conditions.is_empty() {
            return Ok(true);
        }
        let begin = Instant::now();
        let request = review::variable(user, info);
        let matched = conditions.evaluate(&request);
        self.metrics.matched(&self.label, begin.elapsed());
        match &matched {
            Ok(true) => {}
            Ok(false) => self.metrics.excluded(&self.label),
            Err(_) => self.metrics.condition_failed(&self.label),
        }
        matched
    }

    async fn ask(&self, document: Vec<u8>) -> Result<Decision, Failure> {
        let begin = Instant::now();
        let answer = self.webhook.ask(document).await;
        let called = match &answer {
            Ok(_) => Called::Success,
            Err(error) => called(error),
        };
        self.metrics.called(&self.settings.name, called, begin.elapsed());
        if self.settings.failure_policy == FailurePolicy::NoOpinion && called != Called::Success {
            self.metrics.failed_open(&self.settings.name, called);
        }
        let answer = answer.map_err(|error| {
            tracing::error!(name = self.settings.name, %error, "an authorization webhook failed");
            Failure::Unanswered(error.to_string())
        })?;
        self.settings.version.decision(&answer)
    }

    fn failed(&self, error: String) -> Decision {
        match self.settings.failure_policy {
            FailurePolicy::NoOpinion => Decision::Failed(error),
            FailurePolicy::Deny => Decision::FailedClosed(error),
        }
    }
}

fn called(error: &WebhookError) -> Called {
    match error.is_deadline() {
        true => Called::Timeout,
        false => Called::Error,
    }
}

/// Why a webhook did not decide.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    Unanswered(String),
    Contradiction(String),
}

impl Authorizer for WebhookAuthorizer {
    fn authorize<'a>(&'a self, user: &'a User, info: &'a RequestInfo) -> Answer<'a> {
        Answer::Later(Box::pin(self.decide(user, info)))
    }

    fn label(&self) -> Option<&Label> {
        Some(&self.label)
    }

    fn rules(&self, _user: &User, _namespace: &str) -> Rules {
        Rules {
            incomplete: true,
            errors: vec!["webhook authorizer does not support user rule resolution".to_owned()],
            ..Rules::default()
        }
    }
}
