//! The signatures that client certificates may be made with and make: those of the TLS provider, and ECDSA over P-521,
//! which it does not have.

use p521::ecdsa::signature::Verifier;
use rustls::SignatureScheme;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id};
use webpki::ring;

/// In certificates and handshakes of clients.
pub static CLIENT_SIGNATURES: WebPkiSupportedAlgorithms = WebPkiSupportedAlgorithms {
    all: &[
        ring::ECDSA_P256_SHA256,
        ring::ECDSA_P256_SHA384,
        ring::ECDSA_P384_SHA256,
        ring::ECDSA_P384_SHA384,
        &EcdsaP521Sha512,
        ring::ED25519,
        ring::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
        ring::RSA_PSS_2048_8192_SHA384_LEGACY_KEY,
        ring::RSA_PSS_2048_8192_SHA512_LEGACY_KEY,
        ring::RSA_PKCS1_2048_8192_SHA256,
        ring::RSA_PKCS1_2048_8192_SHA384,
        ring::RSA_PKCS1_2048_8192_SHA512,
        ring::RSA_PKCS1_2048_8192_SHA256_ABSENT_PARAMS,
        ring::RSA_PKCS1_2048_8192_SHA384_ABSENT_PARAMS,
        ring::RSA_PKCS1_2048_8192_SHA512_ABSENT_PARAMS,
    ],
    mapping: &[
        // In TLS 1.2 a scheme says nothing of the curve; in TLS 1.3 it is the first.
        (SignatureScheme::ECDSA_NISTP521_SHA512, &[&EcdsaP521Sha512]),
        (
            SignatureScheme::ECDSA_NISTP384_SHA384,
            &[ring::ECDSA_P384_SHA384, ring::ECDSA_P256_SHA384],
        ),
        (
            SignatureScheme::ECDSA_NISTP256_SHA256,
            &[ring::ECDSA_P256_SHA256, ring::ECDSA_P384_SHA256],
        ),
        (SignatureScheme::ED25519, &[ring::ED25519]),
        (
            SignatureScheme::RSA_PSS_SHA512,
            &[ring::RSA_PSS_2048_8192_SHA512_LEGACY_KEY],
        ),
        (
            SignatureScheme::RSA_PSS_SHA384,
            &[ring::RSA_PSS_2048_8192_SHA384_LEGACY_KEY],
        ),
        (
            SignatureScheme::RSA_PSS_SHA256,
            &[ring::RSA_PSS_2048_8192_SHA256_LEGACY_KEY],
        ),
        (SignatureScheme::RSA_PKCS1_SHA512, &[ring::RSA_PKCS1_2048_8192_SHA512]),
        (SignatureScheme::RSA_PKCS1_SHA384, &[ring::RSA_PKCS1_2048_8192_SHA384]),
        (SignatureScheme::RSA_PKCS1_SHA256, &[ring::RSA_PKCS1_2048_8192_SHA256]),
    ],
};

/// ECDSA over P-521 with SHA-512.
#[derive(Debug)]
struct EcdsaP521Sha512;

impl SignatureVerificationAlgorithm for EcdsaP521Sha512 {
    fn verify_signature(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), InvalidSignature> {
        let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(public_key).map_err(|_| InvalidSignature)?;
        let signature = p521::ecdsa::Signature::from_der(signature).map_err(|_| InvalidSignature)?;
        key.verify(message, &signature).map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_P521
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_SHA512
    }
}

#[cfg(test)]
mod tests {
    use p521::ecdsa::signature::Signer;

    use super::*;

    #[test]
    fn signatures_over_p521_are_checked() {
        let key = p521::ecdsa::SigningKey::from_slice(&[&[0; 33][..], &[7; 33][..]].concat()).unwrap();
        let signature: p521::ecdsa::Signature = key.sign(b"told");
        let (public, der) = (p521::ecdsa::VerifyingKey::from(&key), signature.to_der());
        let point = public.to_encoded_point(false);
        let check = |message: &[u8]| EcdsaP521Sha512.verify_signature(point.as_bytes(), message, der.as_bytes());
        assert!(check(b"told").is_ok());
        assert!(check(b"other").is_err());
        assert!(EcdsaP521Sha512.verify_signature(b"x", b"told", der.as_bytes()).is_err());
    }

    #[test]
    fn all_that_the_provider_knows_is_there() {
        let provider = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        let ours = CLIENT_SIGNATURES.supported_schemes();
        for scheme in provider.supported_schemes() {
            assert!(ours.contains(&scheme), "{scheme:?}");
        }
        assert_eq!(provider.all.len() + 1, CLIENT_SIGNATURES.all.len());
    }
}
