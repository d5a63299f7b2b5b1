//! Public keys that signatures are checked with.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use p521::ecdsa::signature::Verifier;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::Algorithm;

/// A curve that ECDSA keys may lie on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    const ALL: [Curve; 3] = [Curve::P256, Curve::P384, Curve::P521];

    /// Its name in JSON Web Keys, and the algorithm that goes with it.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Curve::P256 => ("P-256", "ES256"),
            Curve::P384 => ("P-384", "ES384"),
            Curve::P521 => ("P-521", "ES512"),
        }
    }

    /// Bytes of a coordinate.
    pub fn size(self) -> usize {
        match self {
            Curve::P256 => 32,
            Curve::P384 => 48,
            Curve::P521 => 66,
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
enum Numbers {
    /// Modulus and exponent, without leading zeros.
    Rsa { n: Vec<u8>, e: Vec<u8> },
    /// The uncompressed point: 4, then both coordinates.
    Ec { curve: Curve, point: Vec<u8> },
}

/// A public key and its name.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    id: String,
    numbers: Numbers,
}

impl VerifyingKey {
    /// From a SubjectPublicKeyInfo; its name is the digest of that, as kube-apiserver names keys.
    pub fn from_spki(der: &[u8]) -> Option<VerifyingKey> {
        let (_, spki) = SubjectPublicKeyInfo::from_der(der).ok()?;
        let numbers = match spki.parsed().ok()? {
            PublicKey::RSA(key) => Numbers::rsa(key.modulus, key.exponent),
            PublicKey::EC(point) => Numbers::ec(point.data())?,
            _ => return None,
        };
        let id = BASE64.encode(Sha256::digest(der));
        Some(VerifyingKey { id, numbers })
    }

    /// From a JSON Web Key; `None` for one that no signature of ours is made with. What the key says that it is for
    /// (`use`, `alg`) does not matter, as it does not for kube-apiserver.
    pub fn from_jwk(jwk: &Value) -> Option<VerifyingKey> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let number = |name: &str| BASE64.decode(text(name)?).ok();
        let numbers = match text("kty")? {
            "RSA" => Numbers::rsa(&number("n")?, &number("e")?),
            "EC" => {
                let curve = Curve::ALL
                    .into_iter()
                    .find(|curve| Some(curve.names().0) == text("crv"))?;
                let point = [&[4][..], &padded(&number("x")?, curve)?, &padded(&number("y")?, curve)?].concat();
                Numbers::Ec { curve, point }
            }
            _ => return None,
        };
        let id = text("kid").unwrap_or_default().to_owned();
        Some(VerifyingKey { id, numbers })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The key as others read it.
    pub fn to_jwk(&self) -> Value {
        let mut jwk = json!({ "use": "sig", "kty": "", "kid": self.id });
        match &self.numbers {
            Numbers::Rsa { n, e } => {
                jwk["kty"] = "RSA".into();
                jwk["alg"] = "RS256".into();
                jwk["n"] = BASE64.encode(n).into();
                jwk["e"] = BASE64.encode(e).into();
            }
            Numbers::Ec { curve, point } => {
                let (name, algorithm) = curve.names();
                let coordinates = point.get(1..).unwrap_or_default();
                let (x, y) = coordinates.split_at_checked(curve.size()).unwrap_or_default();
                jwk["kty"] = "EC".into();
                jwk["crv"] = name.into();
                jwk["alg"] = algorithm.into();
                jwk["x"] = BASE64.encode(x).into();
                jwk["y"] = BASE64.encode(y).into();
            }
        }
        jwk
    }

    /// Whether this key signed the message so. RSA keys are of 2048 to 8192 bits.
    pub(super) fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match &self.numbers {
            Numbers::Rsa { n, e } => {
                let parameters = match algorithm {
                    Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    Algorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
                    Algorithm::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
                    Algorithm::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => return false,
                };
                RsaPublicKeyComponents { n, e }
                    .verify(parameters, message, signature)
                    .is_ok()
            }
            Numbers::Ec { curve, point } => {
                let parameters = match (curve, algorithm) {
                    (Curve::P521, Algorithm::Es512) => return verifies_p521(point, message, signature),
                    (Curve::P256, Algorithm::Es256) => &signature::ECDSA_P256_SHA256_FIXED,
                    (Curve::P384, Algorithm::Es384) => &signature::ECDSA_P384_SHA384_FIXED,
                    _ => return false,
                };
                UnparsedPublicKey::new(parameters, point)
                    .verify(message, signature)
                    .is_ok()
            }
        }
    }
}

/// The one curve that ring does not have.
fn verifies_p521(point: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(point);
    let signature = p521::ecdsa::Signature::from_slice(signature);
    match (key, signature) {
        (Ok(key), Ok(signature)) => key.verify(message, &signature).is_ok(),
        _ => false,
    }
}

impl Numbers {
    fn rsa(n: &[u8], e: &[u8]) -> Numbers {
        Numbers::Rsa {
            n: without_leading_zeros(n).to_vec(),
            e: without_leading_zeros(e).to_vec(),
        }
    }

    fn ec(point: &[u8]) -> Option<Numbers> {
        let curve = Curve::ALL
            .into_iter()
            .find(|curve| point.len() == 1 + 2 * curve.size())?;
        (point.first() == Some(&4)).then(|| Numbers::Ec {
            curve,
            point: point.to_vec(),
        })
    }
}

pub(in crate::authn) fn without_leading_zeros(number: &[u8]) -> &[u8] {
    let start = number.iter().position(|b| *b != 0).unwrap_or(number.len());
    number.get(start..).unwrap_or_default()
}

fn padded(number: &[u8], curve: Curve) -> Option<Vec<u8>> {
    let number = without_leading_zeros(number);
    let mut out = vec![0; curve.size().checked_sub(number.len())?];
    out.extend_from_slice(number);
    Some(out)
}

/// Keys, any of which may have signed a token.
#[derive(Clone, Default)]
pub struct KeySet {
    keys: Vec<VerifyingKey>,
}

impl KeySet {
    /// A key that is given twice counts once.
    pub fn new(given: impl IntoIterator<Item = VerifyingKey>) -> KeySet {
        let mut keys: Vec<VerifyingKey> = Vec::new();
        for key in given {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        KeySet { keys }
    }

    /// Those of this name; all of them for a token that names none.
    pub fn candidates<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a VerifyingKey> {
        self.keys.iter().filter(move |key| id.is_empty() || key.id == id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &VerifyingKey> {
        self.keys.iter()
    }
}
