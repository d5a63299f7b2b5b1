//! JSON Web Tokens: reading them, and checking their signatures.

mod algorithm;
mod claims;
mod key;
mod pem;

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use serde::Deserialize;

pub use algorithm::Algorithm;
pub use claims::{Audience, Moment, RegisteredClaims, Untimely};
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
        Some(Token {
            header: serde_json::from_slice(&BASE64.decode(header).ok()?).ok()?,
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
