//! JSON Web Tokens: reading them, and checking their signatures.

mod algorithm;
mod claims;
mod key;
mod pem;

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use serde::Deserialize;
use serde_json::Value;
use x509_parser::prelude::{FromDer, X509Certificate};

pub use algorithm::Algorithm;
pub use claims::{Audience, Moment, RegisteredClaims, Untimely, null_is_none};
pub(super) use key::without_leading_zeros;
pub use key::{KeySet, VerifyingKey};
pub(super) use pem::p521_key;
pub use pem::verifying_keys;

/// A token in its compact form, taken apart. Nothing of it is to be believed before its signature was checked.
pub struct Token<'a> {
    pub header: Header,
    /// What was signed: the first two parts as they stand.
    signed: &'a str,
    /// JSON text.
    pub claims: Vec<u8>,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
pub struct Header {
    pub alg: String,
    #[serde(default)]
    pub kid: String,
    /// Extensions that must be understood. None is here.
    #[serde(default)]
    crit: Option<serde::de::IgnoredAny>,
    /// Whether what was signed is in base64 (RFC 7797). It always is here.
    #[serde(default = "yes")]
    b64: bool,
    /// The sender's idea of the key, which nobody asks for; a token with one that is none is none either.
    #[serde(default)]
    jwk: Option<Value>,
    #[serde(default)]
    nonce: Option<Value>,
    /// A chain of certificates, likewise.
    #[serde(default)]
    x5c: Option<Value>,
}

impl Header {
    /// Whether what is passed over could be what it says.
    fn is_sound(&self) -> bool {
        let certificates = |chain: &Value| {
            let chain = chain.as_array()?.iter().map(Value::as_str);
            chain
                .collect::<Option<Vec<&str>>>()
                .map(|chain| chain.iter().all(|one| is_certificate(one)))
        };
        self.jwk.as_ref().is_none_or(is_public_key)
            && self.nonce.as_ref().is_none_or(Value::is_string)
            && self.x5c.as_ref().is_none_or(|chain| certificates(chain) == Some(true))
    }
}

/// Whether this is a public key, and no private one.
fn is_public_key(jwk: &Value) -> bool {
    let has = |name: &str| jwk.get(name).is_some_and(|value| !value.is_null());
    // A key of the kind that signs no token here, but may stand there.
    let is_edwards = || {
        let x = jwk.get("x").and_then(Value::as_str);
        let length = x.and_then(|x| BASE64.decode(x).ok()).map(|x| x.len());
        jwk["kty"] == "OKP" && jwk["crv"] == "Ed25519" && length == Some(32)
    };
    !has("d") && (VerifyingKey::from_jwk(jwk).is_some() || is_edwards())
}

fn is_certificate(base64: &str) -> bool {
    let der = base64::engine::general_purpose::STANDARD.decode(base64);
    der.is_ok_and(|der| X509Certificate::from_der(&der).is_ok())
}

fn yes() -> bool {
    true
}

/// Base64 as Go reads it: bits that no byte needs may be anything.
const BASE64: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// What is wrong with a signature. Which key or algorithm it was is nobody's business.
pub const BAD_SIGNATURE: &str = "go-jose/go-jose: error in cryptographic primitive";

impl<'a> Token<'a> {
    /// `None`: it is no such token.
    pub fn parse(text: &'a str) -> Option<Token<'a>> {
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        if claims.contains('.') {
            return None;
        }
        let header: Header = serde_json::from_slice(&BASE64.decode(header).ok()?).ok()?;
        if !header.is_sound() {
            return None;
        }
        Some(Token {
            header,
            signed,
            claims: BASE64.decode(claims).ok()?,
            signature: BASE64.decode(signature).ok()?,
        })
    }

    /// Whether the key made this signature, by an algorithm that is its own.
    pub fn is_signed_by(&self, key: &VerifyingKey) -> bool {
        let algorithm = Algorithm::named(&self.header.alg);
        self.header.crit.is_none()
            && self.header.b64
            && algorithm.is_some_and(|one| key.verifies(one, self.signed.as_bytes(), &self.signature))
    }
}

/// What a token says of its issuer, read without a look at the rest of it; `None`: it is no token, or says nothing.
pub fn unverified_issuer(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Issuer {
        iss: String,
    }
    let (signed, _) = text.rsplit_once('.')?;
    let (_, claims) = signed.split_once('.')?;
    let claims = BASE64.decode(claims).ok()?;
    Some(serde_json::from_slice::<Issuer>(&claims).ok()?.iss)
}

#[cfg(test)]
mod tests;
