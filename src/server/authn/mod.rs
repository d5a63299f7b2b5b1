//! Who sends a request: authenticators, asked one after the other.

pub mod bearer;
pub mod certificate;
pub mod token_file;
pub mod token_issuer;

use std::sync::Arc;

use actix_web::http::header::{self, HeaderMap, HeaderValue};

use crate::listener::Connection;
use crate::user::{GROUP_AUTHENTICATED, User};
use token_issuer::TokenIssuer;

/// What an authenticator may look at.
pub struct Credentials<'a> {
    pub headers: &'a HeaderMap,
    pub connection: Option<&'a Connection>,
}

/// One way to prove an identity.
pub trait Authenticator: Send + Sync {
    /// `Ok(None)`: the request carries nothing that this authenticator knows. An error: it does, and it is wrong.
    fn authenticate(&self, credentials: &Credentials<'_>) -> Result<Option<Arc<User>>, String>;
}

/// The authenticators in their order, then anonymous.
#[derive(Clone, Default)]
pub struct Authentication {
    pub chain: Vec<Arc<dyn Authenticator>>,
    /// Requests without credentials get an identity of their own.
    pub anonymous: bool,
    /// What tokens of this server are for.
    pub audiences: Vec<String>,
    /// Signs the tokens of service accounts.
    pub issuer: Option<Arc<TokenIssuer>>,
}

/// Whom a token stands for, and for which of the audiences that were asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenHolder {
    pub user: Arc<User>,
    pub audiences: Vec<String>,
}

impl Authentication {
    /// The sender, with the group that all authenticated users are in. An error means 401: credentials that are wrong,
    /// or none where anonymous requests are not taken.
    pub fn authenticate(&self, credentials: &Credentials<'_>) -> Result<Arc<User>, String> {
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
            Ok(Arc::new(User::anonymous()))
        } else {
            Err("no credentials".into())
        }
    }
}

impl Authentication {
    /// Whom a token stands for; `Ok(None)`: no authenticator knows tokens. It must be for one of `audiences`, or if there
    /// are none, for this server.
    pub fn token_holder(&self, token: &str, audiences: &[String]) -> Result<Option<TokenHolder>, String> {
        let audiences: Vec<String> = match audiences {
            [] => self.audiences.clone(),
            wanted => wanted.iter().filter(|a| self.audiences.contains(a)).cloned().collect(),
        };
        if audiences.is_empty() && !self.audiences.is_empty() {
            return Err(INVALID_TOKEN.into());
        }
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| INVALID_TOKEN.to_owned())?;
        headers.insert(header::AUTHORIZATION, value);
        let credentials = Credentials {
            headers: &headers,
            connection: None,
        };
        let mut errors = Vec::new();
        for authenticator in &self.chain {
            match authenticator.authenticate(&credentials) {
                Ok(Some(user)) => {
                    let user = with_group(user);
                    return Ok(Some(TokenHolder { user, audiences }));
                }
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Ok(None)
        } else {
            Err(errors.join(", "))
        }
    }
}

/// Why a token is refused.
pub(crate) const INVALID_TOKEN: &str = "invalid bearer token";

/// Adds the group, unless it is there: an authenticator that remembers users does well to remember them with it.
fn with_group(mut user: Arc<User>) -> Arc<User> {
    let has_status = |g: &String| g == GROUP_AUTHENTICATED || g == crate::user::GROUP_UNAUTHENTICATED;
    if !user.groups.iter().any(has_status) {
        Arc::make_mut(&mut user).groups.push(GROUP_AUTHENTICATED.into());
    }
    user
}
