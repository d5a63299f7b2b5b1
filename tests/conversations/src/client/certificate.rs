//! Certificates that a client or the stub presents, also such as no library would make: only the key is looked at.

use std::path::Path;
use std::sync::Arc;

use p521::ecdsa::signature::Signer as _;
use p521::pkcs8::DecodePrivateKey;
use rustls::sign::{CertifiedKey, Signer, SigningKey, SingleCertAndKey};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::fault::Fault;

/// The certificate `<path>.crt` with the key `<path>.key`.
pub fn identity(path: &Path) -> Result<SingleCertAndKey, Fault> {
    let file = |extension: &str| std::path::PathBuf::from(format!("{}.{extension}", path.display()));
    identity_of(&file("crt"), &file("key"))
}

/// The chain and the key in these PEM files.
pub fn identity_of(chain: &Path, key: &Path) -> Result<SingleCertAndKey, Fault> {
    let wrong = |file: &Path, error: &dyn std::fmt::Display| Fault::unusable(format!("{}: {error}", file.display()));
    let certificates = CertificateDer::pem_file_iter(chain).map_err(|error| wrong(chain, &error))?;
    let certificates: Result<Vec<_>, _> = certificates.collect();
    let certificates = certificates.map_err(|error| wrong(chain, &error))?;
    let der = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let key = signing_key(&der).map_err(|error| wrong(key, &error))?;
    Ok(SingleCertAndKey::from(CertifiedKey::new(certificates, key)))
}

/// A key that signs, of whatever kind.
pub fn signing_key(der: &PrivateKeyDer<'_>) -> Result<Arc<dyn SigningKey>, Error> {
    if let PrivateKeyDer::Pkcs8(document) = der
        && let Ok(key) = p521::SecretKey::from_pkcs8_der(document.secret_pkcs8_der())
    {
        return Ok(Arc::new(P521(p521_signer(&key)?)));
    }
    rustls::crypto::ring::sign::any_supported_type(der)
}

/// A key on the curve P-521, which the library of all others does not know.
#[derive(Clone)]
struct P521(p521::ecdsa::SigningKey);

impl std::fmt::Debug for P521 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("P521(***)")
    }
}

impl SigningKey for P521 {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let known = offered.contains(&SignatureScheme::ECDSA_NISTP521_SHA512);
        known.then(|| Box::new(self.clone()) as Box<dyn Signer>)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }
}

impl Signer for P521 {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let signature: p521::ecdsa::Signature = self.0.try_sign(message).map_err(|e| Error::General(e.to_string()))?;
        Ok(signature.to_der().as_bytes().to_vec())
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ECDSA_NISTP521_SHA512
    }
}

fn p521_signer(key: &p521::SecretKey) -> Result<p521::ecdsa::SigningKey, Error> {
    p521::ecdsa::SigningKey::from_bytes(&key.to_bytes()).map_err(|error| Error::General(error.to_string()))
}
