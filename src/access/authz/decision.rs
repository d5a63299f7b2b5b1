//! Decisions of authorizers.

use futures_util::future::LocalBoxFuture;

/// What an authorizer says. Each text is the reason, which may be empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    Allow(String),
    /// Nobody else is asked.
    Deny(String),
    /// The next one decides; the text says why this one did not.
    NoOpinion(String),
    /// It could not be found out, for this reason; the next one decides.
    Failed(String),
    /// It could not be found out, for this reason, and that is as good as a refusal.
    FailedClosed(String),
}

/// A decision, or the way to it.
pub enum Answer<'a> {
    Now(Decision),
    /// Somebody else has to be asked.
    Later(LocalBoxFuture<'a, Decision>),
}

impl Answer<'_> {
    /// The decision, waited for if need be.
    pub async fn decision(self) -> Decision {
        match self {
            Answer::Now(decision) => decision,
            Answer::Later(decision) => decision.await,
        }
    }
}

impl From<Decision> for Answer<'_> {
    fn from(decision: Decision) -> Self {
        Answer::Now(decision)
    }
}

/// What all authorizers come to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    pub allowed: bool,
    /// An authorizer refused, whatever the others say.
    pub denied: bool,
    pub reason: String,
    /// What kept the one that refused, or those that did not decide, from finding out, whose text may be empty; `None`:
    /// nothing did, or another one decided.
    pub error: Option<String>,
}

impl Verdict {
    pub(super) fn allow(reason: String) -> Verdict {
        Verdict {
            allowed: true,
            reason,
            ..Verdict::default()
        }
    }

    pub(super) fn deny(reason: String, error: Option<String>) -> Verdict {
        Verdict {
            denied: true,
            reason,
            error,
            ..Verdict::default()
        }
    }
}
