//! Tokens that somebody else knows: a webhook is asked, with a TokenReview.

use std::sync::Arc;

use keelson_net::client::{Answer, Webhook, document};
use serde::Deserialize;
use serde_json::json;

use super::{Identity, Outcome, Refusal, TokenAuthenticator, intersection};
use crate::user::User;

/// In which version reviews are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReviewVersion {
    V1,
    V1beta1,
}

impl ReviewVersion {
    fn name(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "v1",
            ReviewVersion::V1beta1 => "v1beta1",
        }
    }
}

/// Asks a webhook.
pub struct WebhookTokens {
    pub webhook: Webhook,
    pub version: ReviewVersion,
    /// The audiences of a webhook that names none.
    pub audiences: Vec<String>,
}

const GROUP: &str = "authentication.k8s.io";

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    authenticated: bool,
    error: String,
    audiences: Option<Vec<String>>,
    user: Option<UserInfo>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct UserInfo {
    username: String,
    uid: String,
    groups: Option<Vec<String>>,
    extra: Option<std::collections::BTreeMap<String, Vec<String>>>,
}

impl WebhookTokens {
    async fn ask(&self, token: &str, wanted: &[String]) -> Outcome {
        let answer = self.webhook.ask(self.question(token, wanted)).await;
        let answer = answer.map_err(|error| {
            tracing::error!(url = self.webhook.url(), %error, "asking a webhook about a token failed");
            Refusal::from(error.to_string())
        })?;
        self.read(&answer, wanted)
    }

    fn question(&self, token: &str, wanted: &[String]) -> Vec<u8> {
        let mut review = json!({
            "kind": "TokenReview",
            "apiVersion": format!("{GROUP}/{}", self.version.name()),
            "metadata": {},
            "spec": { "token": token },
            "status": { "user": {} },
        });
        if !wanted.is_empty() {
            review["spec"]["audiences"] = json!(wanted);
        }
        format!("{review}\n").into_bytes()
    }

    fn read(&self, answer: &Answer, wanted: &[String]) -> Outcome {
        let review = document(answer, GROUP, self.version.name(), "TokenReview");
        let mut review = review.map_err(|error| Refusal::from(error.to_string()))?;
        let status = review.remove("status").unwrap_or_default();
        let status: Option<Status> =
            serde_json::from_value(status).map_err(|error| Refusal::from(format!("json: {error}")))?;
        let status = status.unwrap_or_default();
        let given = status.audiences.filter(|audiences| !audiences.is_empty());
        // In the webhook's order.
        let audiences = intersection(wanted, &given.unwrap_or_else(|| self.audiences.clone()));
        if audiences.is_empty() && !wanted.is_empty() {
            return Ok(None);
        }
        if !status.authenticated {
            return match status.error.as_str() {
                "" => Ok(None),
                error => Err(error.into()),
            };
        }
        let user = status.user.unwrap_or_default();
        let user = User {
            name: user.username,
            uid: user.uid,
            groups: user.groups.unwrap_or_default(),
            extra: user.extra.unwrap_or_default(),
        };
        Ok(Some(Arc::new(Identity {
            user: Arc::new(user),
            audiences,
            notes: Vec::new(),
        })))
    }
}

impl TokenAuthenticator for WebhookTokens {
    fn authenticate<'a>(&'a self, token: &'a str, audiences: &'a [String]) -> super::Answer<'a> {
        super::Answer::Later(Box::pin(self.ask(token, audiences)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::token_cache::TokenCache;
    use crate::authn::tokens::Remembered;
    use keelson_net::client::stub::{Reply, Stub};
    use keelson_net::client::{Backoff, Client, ClientSettings};

    fn webhook() -> WebhookTokens {
        let client = Client::new(ClientSettings::default()).unwrap();
        WebhookTokens {
            webhook: Webhook::new(client, "https://a", Backoff::ONCE),
            version: ReviewVersion::V1,
            audiences: vec!["own".into()],
        }
    }

    fn answer_of(body: &str) -> Answer {
        Answer {
            status: 200,
            headers: http::HeaderMap::new(),
            body: bytes::Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    fn read(answer: &str, wanted: &[&str]) -> Result<Option<(String, Vec<String>)>, String> {
        let wanted: Vec<String> = wanted.iter().map(|a| (*a).to_owned()).collect();
        let outcome = webhook().read(&answer_of(answer), &wanted).map_err(|e| e.to_string())?;
        Ok(outcome.map(|identity| (identity.user.name.clone(), identity.audiences.clone())))
    }

    #[tokio::test]
    async fn answers_are_remembered_and_failures_are_not() {
        let stub = Stub::https(|seen| match seen.json()["spec"]["token"].as_str() {
            Some("broken") => Reply::new(400, ""),
            token => {
                let status = json!({"authenticated": token == Some("good"), "user": {"username": "ann"}});
                let review = json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "status": status});
                Reply::new(200, review.to_string())
            }
        })
        .await;
        let client = Client::new(stub.trusted()).unwrap();
        let tokens = Remembered {
            tokens: WebhookTokens {
                webhook: Webhook::new(client, stub.url("/"), Backoff::ONCE),
                ..webhook()
            },
            cache: TokenCache::new(60_000, 60_000).unwrap(),
        };
        for (token, want, calls) in [
            ("good", Ok(true), 1),
            ("good", Ok(true), 1),
            ("bad", Ok(false), 2),
            ("bad", Ok(false), 2),
            ("broken", Err(()), 3),
            ("broken", Err(()), 4),
        ] {
            let outcome = tokens.authenticate(token, &["own".into()]).outcome().await;
            let got = outcome.map(|found| found.is_some()).map_err(|_| ());
            assert_eq!((got, stub.seen().len()), (want, calls), "{token}");
        }
    }

    #[test]
    fn the_question_is_a_review() {
        let question = |version, wanted: &[String]| {
            let webhook = WebhookTokens { version, ..webhook() };
            String::from_utf8(webhook.question("t", wanted)).unwrap()
        };
        assert_eq!(
            question(ReviewVersion::V1, &["a".into()]),
            "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\",\"metadata\":{},\
             \"spec\":{\"token\":\"t\",\"audiences\":[\"a\"]},\"status\":{\"user\":{}}}\n"
        );
        let beta = question(ReviewVersion::V1beta1, &[]);
        assert!(beta.contains("/v1beta1\"") && !beta.contains("audiences"), "{beta}");
    }

    #[test]
    fn answers_are_believed_as_far_as_they_go() {
        let answer = |status: &str| {
            format!("{{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\",\"status\":{status}}}")
        };
        let of = |name: &str, audiences: &[&str]| {
            let audiences = audiences.iter().map(|a| (*a).to_owned()).collect();
            Ok(Some((name.to_owned(), audiences)))
        };
        let ann = answer("{\"authenticated\":true,\"user\":{\"username\":\"ann\",\"groups\":null}}");
        assert_eq!(read(&ann, &["own", "x"]), of("ann", &["own"]));
        assert_eq!(read(&ann, &["x"]), Ok(None));
        assert_eq!(read(&ann, &[]), of("ann", &[]));
        let x = answer("{\"authenticated\":true,\"audiences\":[\"x\"],\"user\":{\"username\":\"bob\"}}");
        assert_eq!(read(&x, &["own", "x"]), of("bob", &["x"]));
        assert_eq!(read(&x, &["own"]), Ok(None));
        assert_eq!(read(&answer("{\"authenticated\":false}"), &["own"]), Ok(None));
        assert_eq!(read(&answer("{\"error\":\"no way\"}"), &["own"]).unwrap_err(), "no way");
        for wrong in [
            "hello",
            "{\"kind\":\"Pod\",\"apiVersion\":\"authentication.k8s.io/v1\"}",
            "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1beta1\",\
             \"status\":{\"authenticated\":true}}",
        ] {
            assert!(read(wrong, &["own"]).is_err(), "{wrong}");
        }
    }
}
