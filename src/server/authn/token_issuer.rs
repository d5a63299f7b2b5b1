//! Signs JSON Web Tokens, those of service accounts.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::SigningKey;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// What keys can sign with, and the size in bytes of one number of an ECDSA signature (0: RSA).
const ALGORITHMS: [(SignatureScheme, &str, usize); 3] = [
    (SignatureScheme::RSA_PKCS1_SHA256, "RS256", 0),
    (SignatureScheme::ECDSA_NISTP256_SHA256, "ES256", 32),
    (SignatureScheme::ECDSA_NISTP384_SHA384, "ES384", 48),
];

/// A private key and the name of who signs with it.
pub struct TokenIssuer {
    key: Arc<dyn SigningKey>,
    scheme: SignatureScheme,
    /// The first part of every token, encoded.
    header: String,
    number_size: usize,
    issuer: String,
}

impl TokenIssuer {
    /// The first private key of a PEM text signs. The error says why it can't.
    pub fn new(pem: &str, issuer: &str) -> Result<TokenIssuer, String> {
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|e| e.to_string())?;
        let key = any_supported_type(&der).map_err(|e| e.to_string())?;
        let usable = |(scheme, _, _): &&(SignatureScheme, &str, usize)| key.choose_scheme(&[*scheme]).is_some();
        let (scheme, algorithm, number_size) = *ALGORITHMS
            .iter()
            .find(usable)
            .ok_or("the key is neither RSA nor ECDSA over P-256 or P-384")?;
        let public = key.public_key().ok_or("the key does not tell its public key")?;
        let kid = BASE64.encode(Sha256::digest(public.as_ref()));
        let header = json!({ "alg": algorithm, "kid": kid });
        Ok(TokenIssuer {
            header: BASE64.encode(header.to_string()),
            key,
            scheme,
            number_size,
            issuer: issuer.to_owned(),
        })
    }

    /// What tokens say in `iss`.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The public key as a JSON Web Key, by which others check tokens; `None` for a key that does not tell it.
    pub fn public_jwk(&self) -> Option<Value> {
        let der = self.key.public_key()?;
        let (_, spki) = SubjectPublicKeyInfo::from_der(der.as_ref()).ok()?;
        let mut jwk = json!({
            "use": "sig",
            "kty": "",
            "kid": BASE64.encode(Sha256::digest(der.as_ref())),
        });
        let algorithm = ALGORITHMS.iter().find(|(scheme, _, _)| *scheme == self.scheme)?.1;
        match spki.parsed().ok()? {
            PublicKey::RSA(key) => {
                let digits = |number: &[u8]| BASE64.encode(without_leading_zeros(number));
                jwk["kty"] = "RSA".into();
                jwk["alg"] = algorithm.into();
                jwk["n"] = digits(key.modulus).into();
                jwk["e"] = digits(key.exponent).into();
            }
            // An uncompressed point: 4, then both coordinates.
            PublicKey::EC(point) => {
                let (x, y) = point.data().strip_prefix(&[4])?.split_at_checked(self.number_size)?;
                jwk["kty"] = "EC".into();
                jwk["crv"] = if self.number_size == 32 { "P-256" } else { "P-384" }.into();
                jwk["alg"] = algorithm.into();
                jwk["x"] = BASE64.encode(x).into();
                jwk["y"] = BASE64.encode(y).into();
            }
            _ => return None,
        }
        Some(jwk)
    }

    /// A token with these claims.
    pub fn sign(&self, claims: &Value) -> Result<String, String> {
        let signed = format!("{}.{}", self.header, BASE64.encode(claims.to_string()));
        let signer = self.key.choose_scheme(&[self.scheme]).ok_or("the key can't sign")?;
        let signature = signer.sign(signed.as_bytes()).map_err(|e| e.to_string())?;
        let signature = match self.number_size {
            0 => signature,
            size => fixed_numbers(&signature, size).ok_or("the signature is malformed")?,
        };
        Ok(format!("{signed}.{}", BASE64.encode(signature)))
    }
}

fn without_leading_zeros(number: &[u8]) -> &[u8] {
    let start = number.iter().position(|b| *b != 0).unwrap_or(number.len());
    number.get(start..).unwrap_or_default()
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
    use crate::tls::certs::KeyPem;

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
            let public = issuer.key.public_key().unwrap();
            // The key itself stands at the end of its SubjectPublicKeyInfo, 65 bytes of an uncompressed point.
            let point = &public.as_ref()[public.as_ref().len() - 65..];
            let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ECDSA_P256_SHA256_FIXED, point);
            let signed = token.rsplit_once('.').unwrap().0;
            key.verify(signed.as_bytes(), &part(&token, 2)).unwrap();
        }
        assert!(TokenIssuer::new("no key", "").is_err());
    }

    #[test]
    fn the_public_key_as_others_read_it() {
        let pem = KeyPem::create().unwrap();
        let issuer = TokenIssuer::new(&pem.private_pem, "https://a").unwrap();
        let jwk = issuer.public_jwk().unwrap();
        let number = |name: &str| BASE64.decode(jwk[name].as_str().unwrap()).unwrap();
        let public = issuer.key.public_key().unwrap();
        let point = [&[4][..], &number("x"), &number("y")].concat();
        assert!(public.as_ref().ends_with(&point));
        assert_eq!(
            (&jwk["kty"], &jwk["crv"], &jwk["alg"]),
            (&json!("EC"), &json!("P-256"), &json!("ES256"))
        );
        let token = issuer.sign(&json!({})).unwrap();
        let header: Value = serde_json::from_slice(&part(&token, 0)).unwrap();
        assert_eq!(header["kid"], jwk["kid"]);
    }

    #[test]
    fn numbers_are_padded() {
        let der = [0x30, 0x08, 0x02, 0x02, 0x00, 0x81, 0x02, 0x02, 0x12, 0x34];
        assert_eq!(fixed_numbers(&der, 4).unwrap(), [0, 0, 0, 0x81, 0, 0, 0x12, 0x34]);
        assert_eq!(fixed_numbers(&der[..9], 4), None);
        assert_eq!(fixed_numbers(&der, 1), None);
    }
}
