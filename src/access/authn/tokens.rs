//! All kinds of bearer tokens: whoever knows a token says whom it stands for, and that is remembered for a while.

use std::sync::{Arc, OnceLock};

use actix_web::http::header::HeaderMap;
use arc_swap::ArcSwap;
use keelson_machinery::env::Clock;

use super::bearer::{self, Bearer};
use super::oidc::OidcTokens;
use super::token_cache::TokenCache;
use super::{
    Answer, Attachment, AuthenticationMetrics, Authenticator, Credentials, INVALID_TOKEN, Outcome, Refusal,
    TokenAuthenticator, intersection,
};

/// The authenticators of tokens in their order, behind one cache.
pub struct Tokens {
    chain: Vec<Arc<dyn TokenAuthenticator>>,
    cache: Option<TokenCache>,
}

impl Tokens {
    /// Without a cache every token is judged every time.
    pub fn new(chain: Vec<Arc<dyn TokenAuthenticator>>, cache: Option<TokenCache>) -> Arc<Tokens> {
        Arc::new(Tokens { chain, cache })
    }

    /// A token that nobody knows is wrong: it is not as if there were none.
    fn judge<'a>(&'a self, token: std::borrow::Cow<'a, str>, audiences: &'a [String]) -> Answer<'a> {
        let Some(cache) = &self.cache else {
            return Answer::Later(Box::pin(async move { known(self.ask(&token, audiences).await) }));
        };
        let key = cache.key(&token, audiences);
        match cache.get(&key) {
            Some(outcome) => Answer::Now(known(outcome)),
            None => Answer::Later(Box::pin(async move {
                known(cache.fetch(key, self.ask(&token, audiences)).await)
            })),
        }
    }

    async fn ask(&self, token: &str, audiences: &[String]) -> Outcome {
        let mut refusal = Refusal::default();
        for one in &self.chain {
            match one.authenticate(token, audiences).outcome().await {
                Ok(Some(identity)) => return Ok(Some(identity.with_group())),
                Ok(None) => {}
                Err(error) => refusal.append(error),
            }
        }
        match refusal.0.is_empty() {
            true => Ok(None),
            false => Err(refusal),
        }
    }
}

fn known(outcome: Outcome) -> Outcome {
    match outcome {
        Ok(None) => Err(INVALID_TOKEN.into()),
        Ok(found) => Ok(found),
        Err(why) => {
            let mut refusal = Refusal::from(INVALID_TOKEN);
            refusal.append(why);
            Err(refusal)
        }
    }
}

impl Authenticator for Tokens {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a> {
        match bearer::token(credentials.headers) {
            Bearer::Token(token) => self.judge(token.into(), credentials.audiences),
            Bearer::None | Bearer::ExtraSpace => Answer::nothing(),
        }
    }

    fn attach(&self, attachment: &Attachment<'_>) {
        if let Some(cache) = &self.cache {
            cache.count_in(attachment.metrics);
        }
        self.chain.iter().for_each(|one| one.attach(attachment));
    }
}

/// Tokens among the protocols that a WebSocket client offers.
pub struct WebSocketTokens(pub Arc<Tokens>);

impl Authenticator for WebSocketTokens {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a> {
        match bearer::websocket_token(credentials.headers) {
            Ok(Some(token)) => self.0.judge(token.into(), credentials.audiences),
            Ok(None) => Answer::nothing(),
            Err(error) => Answer::Now(Err(error.into())),
        }
    }

    fn strip(&self, headers: &mut HeaderMap) {
        bearer::strip_protocols(headers);
    }
}

/// Tokens that are for the server as a whole: whoever asks for one of its audiences gets these.
pub struct ForAudiences<T> {
    pub own: Vec<String>,
    pub tokens: T,
}

impl<T: TokenAuthenticator> TokenAuthenticator for ForAudiences<T> {
    fn authenticate<'a>(&'a self, token: &'a str, audiences: &'a [String]) -> Answer<'a> {
        if audiences.is_empty() {
            return self.tokens.authenticate(token, audiences);
        }
        let audiences = intersection(&self.own, audiences);
        if audiences.is_empty() {
            return Answer::nothing();
        }
        let add = |outcome: Outcome| {
            outcome.map(|found| {
                found.map(|mut identity| {
                    Arc::make_mut(&mut identity).audiences = audiences;
                    identity
                })
            })
        };
        match self.tokens.authenticate(token, &[]) {
            Answer::Now(outcome) => Answer::Now(add(outcome)),
            Answer::Later(outcome) => Answer::Later(Box::pin(async move { add(outcome.await) })),
        }
    }

    fn attach(&self, attachment: &Attachment<'_>) {
        self.tokens.attach(attachment);
    }
}

/// Tokens of one kind behind a cache of their own, whose times differ from those of all.
pub struct Remembered<T> {
    pub tokens: T,
    pub cache: TokenCache,
}

impl<T: TokenAuthenticator> TokenAuthenticator for Remembered<T> {
    fn authenticate<'a>(&'a self, token: &'a str, audiences: &'a [String]) -> Answer<'a> {
        let key = self.cache.key(token, audiences);
        match self.cache.get(&key) {
            Some(outcome) => Answer::Now(outcome),
            None => Answer::Later(Box::pin(async move {
                let look = async { self.tokens.authenticate(token, audiences).outcome().await };
                self.cache.fetch(key, look).await
            })),
        }
    }

    fn attach(&self, attachment: &Attachment<'_>) {
        self.tokens.attach(attachment);
    }
}

/// Issuers that can be replaced while the server runs.
#[derive(Default)]
pub struct Issuers {
    current: ArcSwap<Vec<Arc<OidcTokens>>>,
    server: OnceLock<(Arc<dyn Clock>, Arc<AuthenticationMetrics>)>,
}

impl Issuers {
    /// Believes these and no others from the next token on that is not remembered.
    pub fn replace(&self, issuers: Vec<OidcTokens>) {
        let issuers: Vec<Arc<OidcTokens>> = issuers.into_iter().map(Arc::new).collect();
        if let Some((clock, metrics)) = self.server.get() {
            for one in &issuers {
                one.attach_to(clock, metrics);
            }
        }
        self.current.store(Arc::new(issuers));
    }
}

impl TokenAuthenticator for Arc<Issuers> {
    fn authenticate<'a>(&'a self, token: &'a str, audiences: &'a [String]) -> Answer<'a> {
        let issuers = self.current.load_full();
        if issuers.is_empty() {
            return Answer::nothing();
        }
        Answer::Later(Box::pin(async move {
            let mut refusal = Refusal::default();
            for one in issuers.iter() {
                match one.authenticate(token, audiences).outcome().await {
                    Ok(None) => {}
                    Ok(found) => return Ok(found),
                    Err(error) => refusal.append(error),
                }
            }
            if refusal.0.is_empty() { Ok(None) } else { Err(refusal) }
        }))
    }

    fn attach(&self, attachment: &Attachment<'_>) {
        let _ = self.server.set((attachment.clock.clone(), attachment.metrics.clone()));
        let issuers = self.current.load();
        issuers.iter().for_each(|one| one.attach(attachment));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::authn::token_file::StaticTokens;
    use crate::user::User;

    fn tokens() -> Arc<Tokens> {
        let user = |name: &str| User {
            name: name.into(),
            ..User::default()
        };
        let tokens = StaticTokens::new([("t1".to_owned(), user("ann")), ("t2".to_owned(), user("bob"))]);
        let own = vec!["a".to_owned(), "b".to_owned()];
        Tokens::new(
            vec![Arc::new(ForAudiences { own, tokens })],
            Some(TokenCache::new(10_000, 0).unwrap()),
        )
    }

    fn ask(tokens: &Tokens, token: &str, audiences: &[&str]) -> Result<(String, Vec<String>), String> {
        let audiences: Vec<String> = audiences.iter().map(|a| (*a).to_owned()).collect();
        let outcome = tokens.judge(token.into(), &audiences).outcome().now_or_never().unwrap();
        let identity = outcome.map_err(|refusal| refusal.to_string())?.unwrap();
        assert!(identity.user.in_group("system:authenticated"));
        Ok((identity.user.name.clone(), identity.audiences.clone()))
    }

    #[test]
    fn tokens_stand_for_users_and_audiences() {
        let tokens = tokens();
        for _ in 0..2 {
            let of = |name: &str, audiences: &[&str]| {
                Ok((name.to_owned(), audiences.iter().map(|a| (*a).to_owned()).collect()))
            };
            assert_eq!(ask(&tokens, "t1", &["a", "b"]), of("ann", &["a", "b"]));
            assert_eq!(ask(&tokens, "t2", &["z", "b", "b"]), of("bob", &["b", "b"]));
            assert_eq!(ask(&tokens, "t1", &[]), of("ann", &[]));
            assert_eq!(ask(&tokens, "t1", &["z"]).unwrap_err(), INVALID_TOKEN);
            assert_eq!(ask(&tokens, "t3", &["a"]).unwrap_err(), INVALID_TOKEN);
        }
    }
}
