//! Tokens that cases sign: JSON Web Tokens with RSA and SHA-256, or none at all.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustls::SignatureScheme;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Map, Value, json};

use crate::client::signing_key;
use crate::fault::Fault;

/// A token. Claims like `@+60` are seconds from now.
pub fn signed(key: &Path, header: &Map<String, Value>, claims: &Map<String, Value>) -> Result<String, Fault> {
    let mut full = Map::from_iter([("alg".to_owned(), json!("RS256")), ("typ".to_owned(), json!("JWT"))]);
    full.extend(header.clone());
    let unsigned = full["alg"] == "none";
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(Fault::unusable)?
        .as_secs();
    let claims = claims.iter().map(|(name, claim)| (name.clone(), since(now, claim)));
    let claims: Map<String, Value> = claims.collect();
    let text = format!("{}.{}", encoded(&full.into()), encoded(&claims.into()));
    let signature = if unsigned {
        String::new()
    } else {
        sign(key, text.as_bytes())?
    };
    Ok(format!("{text}.{signature}"))
}

fn encoded(part: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(part.to_string())
}

fn since(now: u64, claim: &Value) -> Value {
    let seconds = claim.as_str().and_then(|text| text.strip_prefix('@'));
    let seconds = seconds.filter(|text| text.starts_with(['+', '-']));
    match seconds.and_then(|text| text.parse::<i64>().ok()) {
        Some(seconds) => now.saturating_add_signed(seconds).into(),
        None => claim.clone(),
    }
}

fn sign(file: &Path, text: &[u8]) -> Result<String, Fault> {
    let wrong = |error: &dyn std::fmt::Display| Fault::unusable(format!("{}: {error}", file.display()));
    let der = PrivateKeyDer::from_pem_file(file).map_err(|error| wrong(&error))?;
    let key = signing_key(&der).map_err(|error| wrong(&error))?;
    let signer = key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]);
    let signer = signer.ok_or_else(|| wrong(&"no key of RSA"))?;
    let signature = signer.sign(text).map_err(|error| wrong(&error))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(signature))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_may_be_seconds_from_now() {
        assert_eq!(since(1000, &json!("@+60")), 1060);
        assert_eq!(since(1000, &json!("@-60")), 940);
        assert_eq!(since(1000, &json!("@60")), "@60");
        assert_eq!(since(1000, &json!(["@+1"])), json!(["@+1"]));
    }

    #[test]
    fn an_unsigned_token_needs_no_key() {
        let header = Map::from_iter([("alg".to_owned(), json!("none"))]);
        let token = signed(Path::new("no such file"), &header, &Map::new()).unwrap();
        assert_eq!(token, "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.e30.");
        assert!(signed(Path::new("no such file"), &Map::new(), &Map::new()).is_err());
    }
}
