//! Verifying keys out of PEM files.

use p521::pkcs8::{DecodePrivateKey, EncodePublicKey};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::VerifyingKey;

/// DER of an AlgorithmIdentifier: rsaEncryption, without parameters.
const RSA_ENCRYPTION: [u8; 15] = [
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];
/// Lengths below have a shorter form in DER, which keys of RSA never need.
const LONG_LENGTH: usize = 256;

/// The keys of a PEM text, in its order: public ones, and such that the public one follows from (private keys,
/// certificates). What can't be used is passed over.
pub fn verifying_keys(text: &str) -> Vec<VerifyingKey> {
    let blocks = Pem::iter_from_buffer(text.as_bytes()).filter_map(Result::ok);
    blocks.filter_map(key_of).collect()
}

fn key_of(block: Pem) -> Option<VerifyingKey> {
    let der = block.contents;
    match block.label.as_str() {
        "PUBLIC KEY" => VerifyingKey::from_spki(&der),
        "RSA PUBLIC KEY" => VerifyingKey::from_spki(&spki_of_rsa(&der)?),
        "CERTIFICATE" => {
            let (_, certificate) = X509Certificate::from_der(&der).ok()?;
            VerifyingKey::from_spki(certificate.public_key().raw)
        }
        "PRIVATE KEY" => of_private(PrivatePkcs8KeyDer::from(der).into()),
        "RSA PRIVATE KEY" => of_private(PrivatePkcs1KeyDer::from(der).into()),
        "EC PRIVATE KEY" => of_private(PrivateSec1KeyDer::from(der).into()),
        _ => None,
    }
}

fn of_private(key: PrivateKeyDer<'static>) -> Option<VerifyingKey> {
    if let Some(key) = p521_key(&key) {
        return VerifyingKey::from_spki(key.public_key().to_public_key_der().ok()?.as_bytes());
    }
    VerifyingKey::from_spki(any_supported_type(&key).ok()?.public_key()?.as_ref())
}

/// A key of the one curve that ring does not have.
pub(in crate::authn) fn p521_key(key: &PrivateKeyDer<'_>) -> Option<p521::SecretKey> {
    match key {
        PrivateKeyDer::Pkcs8(key) => p521::SecretKey::from_pkcs8_der(key.secret_pkcs8_der()).ok(),
        PrivateKeyDer::Sec1(key) => p521::SecretKey::from_sec1_der(key.secret_sec1_der()).ok(),
        _ => None,
    }
}

/// Wraps a bare RSA key as others are.
fn spki_of_rsa(key: &[u8]) -> Option<Vec<u8>> {
    // No bit of the last byte is unused.
    let bits = element(0x03, &[&[0], key].concat())?;
    element(0x30, &[&RSA_ENCRYPTION, bits.as_slice()].concat())
}

/// An element of DER; `None` if it is too short or too long to be a key.
fn element(tag: u8, content: &[u8]) -> Option<Vec<u8>> {
    let [high, low] = u16::try_from(content.len()).ok()?.to_be_bytes();
    let mut out = vec![tag, 0x82, high, low];
    out.extend_from_slice(content);
    (content.len() >= LONG_LENGTH).then_some(out)
}
