//! Who sends a request: authenticators, asked one after the other.

pub mod bearer;
pub mod certificate;
pub mod token_file;

use std::sync::Arc;

use actix_web::http::header::HeaderMap;

use crate::listener::Connection;
use crate::user::{GROUP_AUTHENTICATED, User};

/// What an authenticator may look at.
pub struct Credentials<'a> {
    pub headers: &'a HeaderMap,
    pub connection: Option<&'a Connection>,
}

/// One way to prove an identity.
pub trait Authenticator: Send + Sync {
    /// `Ok(None)`: the request carries nothing that this authenticator knows. An error: it does, and it is wrong.
    fn authenticate(&self, credentials: &Credentials<'_>) -> Result<Option<User>, String>;
}

/// The authenticators in their order, then anonymous.
#[derive(Clone, Default)]
pub struct Authentication {
    pub chain: Vec<Arc<dyn Authenticator>>,
    /// Requests without credentials get an identity of their own.
    pub anonymous: bool,
}

impl Authentication {
    /// The sender, with the group that all authenticated users are in. An error means 401: credentials that are wrong,
    /// or none where anonymous requests are not taken.
    pub fn authenticate(&self, credentials: &Credentials<'_>) -> Result<User, String> {
        let mut errors = Vec::new();
        for authenticator in &self.chain {
            match authenticator.authenticate(credentials) {
                Ok(Some(user)) => return Ok(with_group(user)),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            return Err(errors.join(", "));
        }
        if self.anonymous {
            Ok(User::anonymous())
        } else {
            Err("no credentials".into())
        }
    }
}

fn with_group(mut user: User) -> User {
    let has_status = |g: &String| g == GROUP_AUTHENTICATED || g == crate::user::GROUP_UNAUTHENTICATED;
    if !user.groups.iter().any(has_status) {
        user.groups.push(GROUP_AUTHENTICATED.into());
    }
    user
}
