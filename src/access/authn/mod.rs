//! Authentication: authenticators, asked one after the other.
//!
//! Those of requests look at headers and the connection; those of tokens get the text of a bearer token. Whatever they
//! look at is removed from the request behind them. Texts of refusals never hold credentials.

mod anonymous;
mod answer;
mod authorities;
pub mod basic;
pub mod bearer;
pub mod bootstrap_token;
pub mod certificate;
pub mod jwt;
mod metrics;
mod objects;
pub mod oidc;
pub mod request_header;
mod secret;
pub mod service_account;
pub mod structured;
pub mod token_cache;
pub mod token_file;
pub mod token_issuer;
pub mod tokens;
mod union;
pub mod webhook;

use std::sync::Arc;

use actix_web::http::header::HeaderMap;
use keelson_machinery::env::Clock;
use keelson_net::listener::Connection;

use crate::lister::Listers;

pub use anonymous::Anonymous;
pub use answer::{Answer, Identity, Outcome, Refusal};
pub use authorities::CertificateError;
pub use metrics::AuthenticationMetrics;
pub use union::Authentication;

/// What an authenticator may look at.
pub struct Credentials<'a> {
    pub headers: &'a HeaderMap,
    pub connection: Option<&'a Connection>,
    /// The path of the request.
    pub path: &'a str,
    /// Tokens must be for one of these.
    pub audiences: &'a [String],
}

/// What authenticators get of the server that they serve.
pub struct Attachment<'a> {
    pub listers: &'a dyn Listers,
    pub clock: &'a Arc<dyn Clock>,
    pub metrics: &'a Arc<AuthenticationMetrics>,
}

/// One way to prove an identity with a request.
pub trait Authenticator: Send + Sync {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a>;

    /// Takes away what it reads, whoever authenticated the request: nobody further on needs it.
    fn strip(&self, _headers: &mut HeaderMap) {}

    /// Hands over what the server has, once, before anybody is asked.
    fn attach(&self, _attachment: &Attachment<'_>) {}
}

/// One kind of bearer token.
pub trait TokenAuthenticator: Send + Sync {
    /// Whom a token stands for, and for which of `audiences`.
    fn authenticate<'a>(&'a self, token: &'a str, audiences: &'a [String]) -> Answer<'a>;

    /// As [`Authenticator::attach`].
    fn attach(&self, _attachment: &Attachment<'_>) {}
}

/// Why a token is refused.
pub(crate) const INVALID_TOKEN: &str = "invalid bearer token";

/// Those of `wanted` that are among `own`.
pub(crate) fn intersection(own: &[String], wanted: &[String]) -> Vec<String> {
    wanted.iter().filter(|one| own.contains(one)).cloned().collect()
}
