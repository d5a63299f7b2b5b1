//! All authenticators of a server as one.

use std::sync::Arc;

use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use arc_swap::ArcSwap;
use keelson_machinery::env::Clock;

use super::jwt::KeySet;
use super::token_issuer::TokenIssuer;
use super::{
    Anonymous, Attachment, AuthenticationMetrics, Authenticator, Credentials, INVALID_TOKEN, Identity, Refusal,
    request_header,
};
use crate::lister::Listers;
use crate::user::User;

/// The authenticators in their order, then anonymous.
#[derive(Clone, Default)]
pub struct Authentication {
    pub chain: Vec<Arc<dyn Authenticator>>,
    /// Requests without credentials that get an identity of their own. May be replaced while the server runs.
    pub anonymous: Arc<ArcSwap<Anonymous>>,
    /// What tokens of this server are for.
    pub audiences: Vec<String>,
    /// Signs the tokens of service accounts.
    pub issuer: Option<Arc<TokenIssuer>>,
    /// The keys of all its tokens that are believed, published for others who check them.
    pub keys: KeySet,
    /// Where others are told to look for the keys; empty: at this server.
    pub keys_url: String,
    pub metrics: Arc<AuthenticationMetrics>,
}

impl Authentication {
    /// Takes anonymous requests.
    #[must_use]
    pub fn with_anonymous(self, anonymous: Anonymous) -> Authentication {
        self.anonymous.store(Arc::new(anonymous));
        self
    }

    /// The sender, with the group that all authenticated users are in. An error means 401: credentials that are wrong,
    /// or none where anonymous requests are not taken.
    pub async fn authenticate(&self, credentials: &Credentials<'_>) -> Result<Arc<Identity>, Refusal> {
        let mut refusal = Refusal::default();
        for authenticator in &self.chain {
            match authenticator.authenticate(credentials).outcome().await {
                Ok(Some(identity)) => return Ok(identity.with_group()),
                Ok(None) => {}
                Err(error) => refusal.append(error),
            }
        }
        if !refusal.0.is_empty() {
            return Err(refusal);
        }
        match self.anonymous.load().admits(credentials.path) {
            true => Ok(Identity::of(User::anonymous())),
            // Nothing is wrong but that there is nothing.
            false => Err(Refusal::default()),
        }
    }

    /// Whom a token stands for, as [`Authentication::authenticate`] of a request with it would say. It must be for one
    /// of `audiences`, or if there are none, for this server.
    pub async fn review(&self, token: &str, audiences: &[String]) -> Result<Arc<Identity>, Refusal> {
        let audiences = match audiences {
            [] => &self.audiences,
            wanted => wanted,
        };
        let text = format!("Bearer {token}");
        let value = HeaderValue::from_str(text.trim_end()).map_err(|_| INVALID_TOKEN)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value);
        let credentials = Credentials {
            headers: &headers,
            connection: None,
            path: "",
            audiences,
        };
        self.authenticate(&credentials).await
    }

    /// Takes all credentials out of a request whose sender is known, and whatever else claims an identity.
    pub fn strip(&self, headers: &mut HeaderMap) {
        headers.remove(header::AUTHORIZATION);
        request_header::strip_usual(headers);
        for authenticator in &self.chain {
            authenticator.strip(headers);
        }
    }

    /// Hands what the server has to all authenticators.
    pub fn attach(&self, listers: &dyn Listers, clock: &Arc<dyn Clock>) {
        let attachment = Attachment {
            listers,
            clock,
            metrics: &self.metrics,
        };
        self.chain.iter().for_each(|one| one.attach(&attachment));
    }
}

/// Removes the headers whose names fit.
pub(super) fn remove_headers(headers: &mut HeaderMap, fits: impl Fn(&str) -> bool) {
    let names: Vec<HeaderName> = headers.keys().filter(|name| fits(name.as_str())).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::authn::{Answer, Outcome};

    struct Says(Outcome);

    impl Authenticator for Says {
        fn authenticate<'a>(&'a self, _credentials: &'a Credentials<'a>) -> Answer<'a> {
            let outcome = self.0.clone();
            Answer::Later(Box::pin(async move { outcome }))
        }
    }

    fn ask(chain: Vec<Outcome>, anonymous: Anonymous, path: &str) -> Result<Vec<String>, String> {
        let says = |outcome| Arc::new(Says(outcome)) as Arc<dyn Authenticator>;
        let union = Authentication {
            chain: chain.into_iter().map(says).collect(),
            ..Authentication::default()
        }
        .with_anonymous(anonymous);
        let headers = HeaderMap::new();
        let credentials = Credentials {
            headers: &headers,
            connection: None,
            path,
            audiences: &[],
        };
        let outcome = union.authenticate(&credentials).now_or_never().unwrap();
        outcome
            .map(|identity| {
                let user = &identity.user;
                [vec![user.name.clone()], user.groups.clone()].concat()
            })
            .map_err(|refusal| refusal.to_string())
    }

    fn named(name: &str) -> Outcome {
        Ok(Some(Identity::of(User {
            name: name.into(),
            ..User::default()
        })))
    }

    #[test]
    fn the_first_identity_counts_and_what_was_wrong_before_does_not() {
        let got = ask(
            vec![Ok(None), Err("bad".into()), named("ann"), named("bob")],
            Anonymous::Nowhere,
            "/",
        );
        assert_eq!(got.unwrap(), ["ann", "system:authenticated"]);
    }

    #[test]
    fn wrong_credentials_are_not_anonymous() {
        let got = ask(
            vec![Err("a".into()), Err("b".into()), Err("a".into())],
            Anonymous::Everywhere,
            "/",
        );
        assert_eq!(got.unwrap_err(), "[a, b]");
        let got = ask(vec![Ok(None)], Anonymous::Everywhere, "/");
        assert_eq!(got.unwrap(), ["system:anonymous", "system:unauthenticated"]);
        let paths = || Anonymous::On(vec!["/livez".into()]);
        assert!(ask(vec![Ok(None)], paths(), "/livez").is_ok());
        assert!(ask(vec![Ok(None)], paths(), "/api").is_err());
    }

    #[test]
    fn no_credentials_are_left_in_a_request() {
        let mut headers = HeaderMap::new();
        let names = [
            "authorization",
            "x-remote-user",
            "x-remote-uid",
            "x-remote-group",
            "x-remote-extra-a",
            "accept",
        ];
        for name in names {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static("x"));
        }
        Authentication::default().strip(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["accept"]);
    }
}
