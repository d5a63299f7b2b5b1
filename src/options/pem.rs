//! Checks of PEM files: what can't be used is told at the start, not when a request comes.

use std::path::Path;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::OptionError;

/// Why a file is not the PEM file that it should be.
#[derive(Debug, thiserror::Error)]
enum PemError {
    #[error("data does not contain a valid RSA or ECDSA private key")]
    NoKey,
    #[error("data does not contain any valid RSA or ECDSA certificates")]
    NoCertificates,
    #[error("{0}")]
    Text(rustls_pki_types::pem::Error),
    #[error("malformed certificate: {0}")]
    Certificate(String),
}

/// The text of a file named by `flag`.
pub(super) fn read(flag: &'static str, path: &Path) -> Result<String, OptionError> {
    std::fs::read_to_string(path).map_err(|error| OptionError::file(flag, path, error))
}

/// Checks that a file holds certificates, or a private key, and gives its text.
pub(super) fn check(flag: &'static str, path: &Path, key: bool) -> Result<String, OptionError> {
    let text = read(flag, path)?;
    let found = if key { private_key(&text) } else { certificates(&text) };
    found.map_err(|reason| OptionError::file(flag, path, reason))?;
    Ok(text)
}

fn private_key(text: &str) -> Result<(), PemError> {
    PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map(|_| ())
        .map_err(|_| PemError::NoKey)
}

fn certificates(text: &str) -> Result<(), PemError> {
    let mut found = false;
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        let certificate = certificate.map_err(PemError::Text)?;
        x509_parser::parse_x509_certificate(&certificate).map_err(|error| PemError::Certificate(error.to_string()))?;
        found = true;
    }
    match found {
        true => Ok(()),
        false => Err(PemError::NoCertificates),
    }
}
