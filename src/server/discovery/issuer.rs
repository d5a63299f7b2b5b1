//! Discovery of the service account issuer: the configuration for OpenID Connect clients and its public keys.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{HeaderValue, Response, StatusCode};
use keelson_machinery::status::StatusError;
use serde_json::{Value, json};

use super::Ask;
use crate::document::with_body;
use crate::negotiate::route;

const CONFIGURATION: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";
const JWK_SET: &[&str] = &["application/jwk-set+json"];

/// The two documents.
pub struct IssuerDocuments {
    configuration: Bytes,
    keys: Bytes,
}

impl IssuerDocuments {
    /// Of an issuer whose public keys are `keys`, as JSON Web Keys. Clients find these at `keys_url`; if that is empty,
    /// at `address` (`host:port`). `None` if the issuer is no URL of https: clients could not look for its documents.
    pub fn new(issuer: &str, keys: &[Value], keys_url: &str, address: &str) -> Option<IssuerDocuments> {
        if !issuer.starts_with("https://") {
            return None;
        }
        let algorithms: BTreeSet<&str> = keys.iter().filter_map(|key| key.get("alg")?.as_str()).collect();
        let keys_url = match keys_url {
            "" => format!("https://{address}{KEYS}"),
            given => given.to_owned(),
        };
        let configuration = json!({
            "issuer": issuer,
            "jwks_uri": keys_url,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        });
        Some(IssuerDocuments {
            configuration: configuration.to_string().into(),
            keys: json!({ "keys": keys }).to_string().into(),
        })
    }

    /// The paths of the documents, for the list at `/`. The keys are not in it.
    pub(super) fn path(&self) -> &'static str {
        CONFIGURATION
    }

    /// 200, 405 or 406; `None` for another path.
    pub(super) fn answer(&self, ask: Ask<'_>) -> Option<Result<Response<Bytes>, StatusError>> {
        let (body, makes) = match ask.path.strip_suffix('/').unwrap_or(ask.path) {
            CONFIGURATION => (&self.configuration, route::JSON),
            KEYS => (&self.keys, JWK_SET),
            _ => return None,
        };
        let answer = ask.routed_to(makes).map(|()| {
            let content_type = makes.first().copied().unwrap_or_default();
            let mut response = with_body(StatusCode::OK, content_type, body.clone());
            let cache = HeaderValue::from_static("public, max-age=3600");
            response.headers_mut().insert(CACHE_CONTROL, cache);
            response
        });
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use http::header::ACCEPT;

    use super::*;

    #[test]
    fn documents_of_an_issuer() {
        let keys = [json!({"kty": "RSA", "alg": "RS256"})];
        assert!(IssuerDocuments::new("kubernetes", &keys, "", "a:1").is_none());
        let documents = IssuerDocuments::new("https://issuer", &keys, "", "192.0.2.2:6443").unwrap();
        let get = |path, accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            let ask = Ask {
                method: "GET",
                path,
                query: "",
                headers: &headers,
            };
            let answer = documents.answer(ask)?;
            Some(answer.map_or_else(
                |e| (e.code, String::new()),
                |response| {
                    let text = String::from_utf8(response.body().to_vec()).unwrap();
                    (response.status().as_u16(), text)
                },
            ))
        };
        let configuration = "{\"issuer\":\"https://issuer\",\"jwks_uri\":\"https://192.0.2.2:6443/openid/v1/jwks\",\
                             \"response_types_supported\":[\"id_token\"],\"subject_types_supported\":[\"public\"],\
                             \"id_token_signing_alg_values_supported\":[\"RS256\"]}";
        let keys = "{\"keys\":[{\"kty\":\"RSA\",\"alg\":\"RS256\"}]}";
        for (path, accept, want) in [
            (CONFIGURATION, "application/json", Some((200, configuration))),
            (KEYS, "*/*", Some((200, keys))),
            ("/openid/v1/jwks/", "application/jwk-set+json", Some((200, keys))),
            (KEYS, "application/json", Some((406, ""))),
            ("/openid/v1", "*/*", None),
        ] {
            assert_eq!(
                get(path, accept),
                want.map(|(code, text)| (code, text.to_owned())),
                "{path} {accept}"
            );
        }
    }
}
