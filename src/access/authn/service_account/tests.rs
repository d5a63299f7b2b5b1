//! Tests of refusals before any object is looked at. Tokens that are good are tested with a whole server.

use futures_util::FutureExt;
use keelson_net::tls::certs::KeyPem;
use serde_json::{Value, json};

use super::*;
use crate::authn::jwt::verifying_keys;
use crate::authn::token_issuer::TokenIssuer;

struct Setting {
    issuer: TokenIssuer,
    trust: Arc<Trust>,
}

fn setting() -> Setting {
    let pem = KeyPem::create().unwrap();
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    Setting {
        issuer: TokenIssuer::new(&pem.private_pem, "https://a").unwrap(),
        trust: Arc::new(Trust {
            keys: KeySet::new(verifying_keys(&pem.public_pem)),
            issuers: texts(&["https://a", "https://b"]),
            audiences: texts(&["https://a", "own"]),
            lookup: true,
        }),
    }
}

fn ask(tokens: &ServiceAccountTokens, token: &str, audiences: &[&str]) -> Result<bool, String> {
    let audiences: Vec<String> = audiences.iter().map(|a| (*a).to_owned()).collect();
    let answer = tokens.authenticate(token, &audiences).outcome().now_or_never().unwrap();
    answer
        .map(|found| found.is_some())
        .map_err(|refusal| refusal.to_string())
}

fn claims(issuer: &str, audience: &str) -> Value {
    json!({
        "iss": issuer, "aud": [audience], "sub": "system:serviceaccount:n:s",
        "kubernetes.io": {"namespace": "n", "serviceaccount": {"name": "s", "uid": "u"}},
    })
}

#[test]
fn tokens_of_other_issuers_are_left_to_others() {
    let Setting { issuer, trust } = setting();
    let (bound, legacy) = (
        ServiceAccountTokens::bound(trust.clone()),
        ServiceAccountTokens::legacy(trust),
    );
    for name in ["https://c", ""] {
        let token = issuer.sign(&claims(name, "own")).unwrap();
        assert_eq!(ask(&bound, &token, &[]), Ok(false), "{name}");
    }
    let token = issuer.sign(&claims("https://b", "own")).unwrap();
    assert!(ask(&bound, &token, &[]).is_err());
    assert_eq!(ask(&legacy, &token, &[]), Ok(false));
    assert_eq!(ask(&bound, "abc", &[]), Ok(false));
    let token = issuer.sign(&claims(LEGACY_ISSUER, "own")).unwrap();
    assert_eq!(ask(&bound, &token, &[]), Ok(false));
    assert_eq!(ask(&legacy, &token, &[]).unwrap_err(), "namespace claim is missing");
}

#[test]
fn keys_and_audiences_are_checked_first() {
    let Setting { issuer, trust } = setting();
    let tokens = ServiceAccountTokens::bound(trust);
    let foreign = setting().issuer.sign(&claims("https://a", "own")).unwrap();
    let own = issuer.sign(&claims("https://a", "own")).unwrap();
    let (body, _) = own.rsplit_once('.').unwrap();
    let (_, signature) = foreign.rsplit_once('.').unwrap();
    let other = issuer.sign(&claims("https://a", "other")).unwrap();
    for (token, audiences, want) in [
        (foreign.clone(), &[][..], "invalid signature, no keys found"),
        (format!("{body}.{signature}"), &[], BAD_SIGNATURE),
        (
            other.clone(),
            &[],
            "token audiences [\"other\"] is invalid for the target audiences [\"https://a\" \"own\"]",
        ),
        (
            own.clone(),
            &["x"],
            "token audiences [\"own\"] is invalid for the target audiences [\"x\"]",
        ),
        (own.clone(), &["x", "own"], "serviceaccounts \"s\" not found"),
    ] {
        assert_eq!(ask(&tokens, &token, audiences).unwrap_err(), want);
    }
}
