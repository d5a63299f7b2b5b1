//! Signs JSON Web Tokens, those of service accounts.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use p521::ecdsa::signature::Signer as _;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::SigningKey;
use serde_json::{Value, json};

use super::jwt::{VerifyingKey, p521_key, verifying_keys, without_leading_zeros};

/// What keys can sign with, and the size in bytes of one number of an ECDSA signature (0: RSA).
const ALGORITHMS: [(SignatureScheme, &str, usize); 3] = [
    (SignatureScheme::RSA_PKCS1_SHA256, "RS256", 0),
    (SignatureScheme::ECDSA_NISTP256_SHA256, "ES256", 32),
    (SignatureScheme::ECDSA_NISTP384_SHA384, "ES384", 48),
];

/// A private key and the name of who signs with it.
pub struct TokenIssuer {
    signer: Signer,
    /// The first part of every token, encoded.
    header: String,
    public: VerifyingKey,
    issuer: String,
    pub lifetimes: Lifetimes,
}

enum Signer {
    Ring {
        key: Arc<dyn SigningKey>,
        scheme: SignatureScheme,
        number_size: usize,
    },
    /// The one curve that ring does not have.
    P521(Box<p521::ecdsa::SigningKey>),
}

/// How long tokens live.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// The longest life in seconds, whatever is asked for (`--service-account-max-token-expiration`).
    pub longest: Option<i64>,
    /// Whether tokens that kubelets ask for on behalf of pods live on after they ought to have been replaced
    /// (`--service-account-extend-token-expiration`).
    pub extend: bool,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Lifetimes {
            longest: None,
            extend: true,
        }
    }
}

/// Why a key does not sign.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SigningError {
    /// No private key, or one that can't be read.
    #[error("{0}")]
    Key(String),
    #[error("the key does not tell its public key")]
    NoPublicKey,
    #[error("the key is neither RSA nor ECDSA over P-256, P-384 or P-521")]
    Algorithm,
    /// It was made for something else.
    #[error("the key can't sign")]
    Unfit,
    /// The signature did not come about.
    #[error("{0}")]
    Failed(String),
    #[error("the signature is malformed")]
    Malformed,
}

impl TokenIssuer {
    /// The first private key of a PEM text signs.
    ///
    /// # Errors
    /// There is none, or it can't sign tokens.
    pub fn new(pem: &str, issuer: &str) -> Result<TokenIssuer, SigningError> {
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|e| SigningError::Key(e.to_string()))?;
        let (signer, algorithm) = Signer::new(&der)?;
        let public = verifying_keys(pem).into_iter().next();
        let public = public.ok_or(SigningError::NoPublicKey)?;
        let header = json!({ "alg": algorithm, "kid": public.id() });
        Ok(TokenIssuer {
            header: BASE64.encode(header.to_string()),
            signer,
            public,
            issuer: issuer.to_owned(),
            lifetimes: Lifetimes::default(),
        })
    }

    /// What tokens say in `iss`.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// What others check tokens with.
    pub fn verifying_key(&self) -> &VerifyingKey {
        &self.public
    }

    /// A token with these claims.
    pub fn sign(&self, claims: &Value) -> Result<String, SigningError> {
        self.sign_text(&claims.to_string())
    }

    /// A token with claims that are written already.
    pub(super) fn sign_text(&self, claims: &str) -> Result<String, SigningError> {
        let signed = format!("{}.{}", self.header, BASE64.encode(claims));
        let signature = self.signer.sign(signed.as_bytes())?;
        Ok(format!("{signed}.{}", BASE64.encode(signature)))
    }
}

impl Signer {
    /// With the name of its algorithm.
    fn new(der: &PrivateKeyDer<'_>) -> Result<(Signer, &'static str), SigningError> {
        if let Some(key) = p521_key(der) {
            let key = p521::ecdsa::SigningKey::from_bytes(&key.to_bytes());
            let key = key.map_err(|e| SigningError::Key(e.to_string()))?;
            return Ok((Signer::P521(Box::new(key)), "ES512"));
        }
        let key = any_supported_type(der).map_err(|e| SigningError::Key(e.to_string()))?;
        let usable = |(scheme, _, _): &&(SignatureScheme, &str, usize)| key.choose_scheme(&[*scheme]).is_some();
        let (scheme, algorithm, number_size) = *ALGORITHMS.iter().find(usable).ok_or(SigningError::Algorithm)?;
        let signer = Signer::Ring {
            key,
            scheme,
            number_size,
        };
        Ok((signer, algorithm))
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SigningError> {
        let (key, scheme, number_size) = match self {
            Signer::P521(key) => {
                let signature: Result<p521::ecdsa::Signature, _> = key.try_sign(message);
                return signature
                    .map(|s| s.to_vec())
                    .map_err(|e| SigningError::Failed(e.to_string()));
            }
            Signer::Ring {
                key,
                scheme,
                number_size,
            } => (key, *scheme, *number_size),
        };
        let signer = key.choose_scheme(&[scheme]).ok_or(SigningError::Unfit)?;
        let signature = signer.sign(message).map_err(|e| SigningError::Failed(e.to_string()))?;
        match number_size {
            0 => Ok(signature),
            size => fixed_numbers(&signature, size).ok_or(SigningError::Malformed),
        }
    }
}

/// The two numbers of an ECDSA signature side by side, out of their DER form: SEQUENCE { INTEGER, INTEGER }.
fn fixed_numbers(der: &[u8], size: usize) -> Option<Vec<u8>> {
    let (sequence, _) = der_value(der, 0x30)?;
    let (r, rest) = der_value(sequence, 0x02)?;
    let (s, _) = der_value(rest, 0x02)?;
    let mut out = Vec::with_capacity(2 * size);
    for number in [r, s] {
        let digits = without_leading_zeros(number);
        out.resize(out.len() + size.checked_sub(digits.len())?, 0);
        out.extend_from_slice(digits);
    }
    Some(out)
}

/// The contents of a DER element with this tag, and what follows it. Lengths of signatures have one or two bytes.
fn der_value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = der.split_first()?;
    let (length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0x81 => rest.split_first()?,
        short => (short, rest),
    };
    if *found != tag {
        return None;
    }
    rest.split_at_checked(usize::from(*length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::jwt::Token;
    use keelson_net::tls::certs::KeyPem;

    fn part(token: &str, index: usize) -> Vec<u8> {
        BASE64.decode(token.split('.').nth(index).unwrap()).unwrap()
    }

    #[test]
    fn a_token_can_be_checked_with_the_public_key() {
        let pem = KeyPem::create().unwrap();
        let issuer = TokenIssuer::new(&pem.private_pem, "https://a").unwrap();
        for round in 0..20 {
            let token = issuer.sign(&json!({ "iss": issuer.issuer(), "n": round })).unwrap();
            let header: Value = serde_json::from_slice(&part(&token, 0)).unwrap();
            assert_eq!(header["alg"], "ES256");
            let claims: Value = serde_json::from_slice(&part(&token, 1)).unwrap();
            assert_eq!(claims["iss"], "https://a");
            assert_eq!(header["kid"], issuer.verifying_key().id());
            assert!(Token::parse(&token).unwrap().is_signed_by(issuer.verifying_key()));
        }
        assert!(TokenIssuer::new("no key", "").is_err());
    }

    #[test]
    fn numbers_are_padded() {
        let der = [0x30, 0x08, 0x02, 0x02, 0x00, 0x81, 0x02, 0x02, 0x12, 0x34];
        assert_eq!(fixed_numbers(&der, 4).unwrap(), [0, 0, 0, 0x81, 0, 0, 0x12, 0x34]);
        assert_eq!(fixed_numbers(&der[..9], 4), None);
        assert_eq!(fixed_numbers(&der, 1), None);
    }
}
