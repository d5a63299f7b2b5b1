//! Signatures of every algorithm, made by another program.

use serde_json::{Value, json};

use super::*;

/// Tokens and the keys that made them.
fn samples() -> Value {
    serde_json::from_str(include_str!("../testdata/tokens.json")).unwrap()
}

#[test]
fn signatures_of_all_algorithms_are_checked() {
    let samples = samples();
    for sample in samples["tokens"].as_array().unwrap() {
        let key = VerifyingKey::from_jwk(&samples["keys"][sample["key"].as_str().unwrap()]).unwrap();
        let text = sample["token"].as_str().unwrap();
        let token = Token::parse(text).unwrap();
        let algorithm = sample["alg"].as_str().unwrap();
        assert_eq!(token.header.alg, algorithm);
        assert!(token.is_signed_by(&key), "{algorithm}");
        // Another claim under the same signature.
        let mut parts: Vec<String> = text.split('.').map(str::to_owned).collect();
        parts[1] = BASE64.encode("{\"iss\":\"https://b\"}");
        let forged = parts.join(".");
        assert!(!Token::parse(&forged).unwrap().is_signed_by(&key), "{algorithm}");
    }
}

#[test]
fn a_key_signs_by_its_own_algorithms_alone() {
    let samples = samples();
    let key = |name: &str| VerifyingKey::from_jwk(&samples["keys"][name]).unwrap();
    for sample in samples["tokens"].as_array().unwrap() {
        for other in ["rsa", "p256", "p384", "p521"] {
            let token = Token::parse(sample["token"].as_str().unwrap()).unwrap();
            assert_eq!(
                token.is_signed_by(&key(other)),
                sample["key"] == other,
                "{sample} {other}"
            );
        }
    }
}

#[test]
fn the_header_cannot_choose_how_it_is_checked() {
    let samples = samples();
    let key = VerifyingKey::from_jwk(&samples["keys"]["rsa"]).unwrap();
    let sample = samples["tokens"][0]["token"].as_str().unwrap();
    let parts: Vec<&str> = sample.split('.').collect();
    for header in [
        json!({"alg": "none"}),
        json!({"alg": "HS256"}),
        json!({"alg": "ES256"}),
        json!({"alg": "RS512"}),
        json!({"alg": ""}),
        json!({"alg": "RS256", "crit": ["b64"], "b64": false}),
    ] {
        let forged = format!("{}.{}.{}", BASE64.encode(header.to_string()), parts[1], parts[2]);
        assert!(!Token::parse(&forged).unwrap().is_signed_by(&key), "{header}");
        let unsigned = format!("{}.{}.", BASE64.encode(header.to_string()), parts[1]);
        assert!(!Token::parse(&unsigned).unwrap().is_signed_by(&key), "{header}");
    }
}

#[test]
fn what_is_no_token_is_none() {
    for text in [
        "",
        "a",
        "a.b",
        "a.b.c",
        "..",
        "a.b.c.d",
        "e30.e30.",
        "e30.e30.e30.e30.e30",
    ] {
        assert!(Token::parse(text).is_none(), "{text:?}");
        assert_eq!(unverified_issuer(text), None, "{text:?}");
    }
    let token = format!("{}.{}.", BASE64.encode("{}"), BASE64.encode("{\"iss\":\"x\"}"));
    assert_eq!(unverified_issuer(&token).unwrap(), "x");
}

#[test]
fn keys_of_files_are_those_that_signed() {
    let samples = samples();
    for (name, texts) in samples["files"].as_object().unwrap() {
        let want = VerifyingKey::from_jwk(&samples["keys"][name.as_str()]).unwrap();
        for text in texts.as_array().unwrap() {
            let found = verifying_keys(text.as_str().unwrap());
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].to_jwk(), want.to_jwk(), "{text}");
        }
    }
    assert!(verifying_keys("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n").is_empty());
}

#[test]
fn a_named_key_is_the_only_candidate() {
    let samples = samples();
    let key = |name: &str| VerifyingKey::from_jwk(&samples["keys"][name]).unwrap();
    let set = KeySet::new([key("rsa"), key("p256"), key("rsa")]);
    assert_eq!(set.iter().count(), 2);
    assert_eq!(set.candidates("").count(), 2);
    assert_eq!(set.candidates(key("rsa").id()).count(), 1);
    assert_eq!(set.candidates("other").count(), 0);
}

#[test]
fn what_a_header_brings_along_is_what_it_says_or_there_is_no_token() {
    let samples = samples();
    let sample = samples["tokens"][0]["token"].as_str().unwrap();
    let parts: Vec<&str> = sample.split('.').collect();
    let key = &samples["keys"]["rsa"];
    let mut private = key.clone();
    private["d"] = "AQAB".into();
    let edwards = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    for (more, is_token) in [
        (json!({"jwk": key}), true),
        (json!({"jwk": null, "nonce": null, "x5c": null}), true),
        (
            json!({"jwk": edwards, "nonce": "n", "x5c": [], "other": {"a": [1]}}),
            true,
        ),
        (json!({"jwk": private}), false),
        (json!({"jwk": {"kty": "oct", "k": "AQAB"}}), false),
        (json!({"jwk": {"kty": "RSA"}}), false),
        (json!({"jwk": "x"}), false),
        (json!({"jwk": {}}), false),
        (json!({"nonce": 5}), false),
        (json!({"x5c": "x"}), false),
        (json!({"x5c": ["AAAA"]}), false),
        (json!({"kid": 5}), false),
    ] {
        let mut header = more.clone();
        header["alg"] = "RS256".into();
        let token = format!("{}.{}.{}", BASE64.encode(header.to_string()), parts[1], parts[2]);
        assert_eq!(Token::parse(&token).is_some(), is_token, "{more}");
    }
}
