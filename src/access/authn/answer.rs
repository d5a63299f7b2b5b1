//! Answers of authenticators.

use std::fmt;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;

use crate::authz::aggregate;
use crate::lister::GetterError;
use crate::user::{GROUP_AUTHENTICATED, GROUP_UNAUTHENTICATED, USER_ANONYMOUS, User};

/// Whom credentials stand for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    pub user: Arc<User>,
    /// For which of the audiences that were asked for; empty where credentials have no audience (certificates).
    pub audiences: Vec<String>,
    /// What the audit log should say of them, by annotation.
    pub notes: Vec<(&'static str, String)>,
}

impl Identity {
    pub fn of(user: User) -> Arc<Identity> {
        Arc::new(Identity {
            user: Arc::new(user),
            ..Identity::default()
        })
    }

    /// With the group that all authenticated users are in, unless it is there, or the user is nobody: a proxy in front
    /// may say so. An authenticator that remembers identities does well to remember them with it.
    pub(super) fn with_group(mut self: Arc<Self>) -> Arc<Identity> {
        let has_status = |g: &String| g == GROUP_AUTHENTICATED || g == GROUP_UNAUTHENTICATED;
        if !self.user.groups.iter().any(has_status) && self.user.name != USER_ANONYMOUS {
            let identity = Arc::make_mut(&mut self);
            Arc::make_mut(&mut identity.user)
                .groups
                .push(GROUP_AUTHENTICATED.into());
        }
        self
    }
}

/// Why credentials prove nothing, one text for each authenticator that says so. They are for the log and for
/// TokenReview; the sender of a request learns nothing of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Refusal(pub Vec<String>);

impl Refusal {
    pub fn append(&mut self, mut other: Refusal) {
        self.0.append(&mut other.0);
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Refusal(vec![text])
    }
}

impl From<GetterError> for Refusal {
    fn from(error: GetterError) -> Self {
        Refusal(vec![error.to_string()])
    }
}

impl From<&str> for Refusal {
    fn from(text: &str) -> Self {
        Refusal(vec![text.to_owned()])
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&aggregate(&self.0))
    }
}

/// `Ok(None)`: there is nothing that the authenticator knows. An error: there is, and it is wrong.
pub type Outcome = Result<Option<Arc<Identity>>, Refusal>;

/// An outcome, or the way to it.
pub enum Answer<'a> {
    Now(Outcome),
    /// A store or somebody else has to be asked.
    Later(LocalBoxFuture<'a, Outcome>),
}

impl Answer<'_> {
    /// The outcome, waited for if need be.
    pub async fn outcome(self) -> Outcome {
        match self {
            Answer::Now(outcome) => outcome,
            Answer::Later(outcome) => outcome.await,
        }
    }

    /// Nothing that the authenticator knows.
    pub fn nothing() -> Self {
        Answer::Now(Ok(None))
    }
}

impl From<Outcome> for Answer<'_> {
    fn from(outcome: Outcome) -> Self {
        Answer::Now(outcome)
    }
}
