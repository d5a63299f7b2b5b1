//! Errors of certificates, keys and their files.

use std::path::PathBuf;

/// Why a certificate or key could not be made, read, written or used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The PEM text holds no certificate.
    #[error("no certificate found in the PEM data")]
    NoCertificate,
    /// The PEM text holds no private key of a known form (PKCS#8, PKCS#1, SEC1).
    #[error("no private key found in the PEM data")]
    NoPrivateKey,
    /// The PEM text itself is broken.
    #[error("malformed PEM data: {0}")]
    Pem(String),
    /// A name that cannot stand in a certificate.
    #[error("{0:?} is not a name a certificate can hold")]
    Name(String),
    /// Making, signing or reading a certificate failed.
    #[error("certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The pair is not usable for serving: the key does not belong to the certificate, or its type is unknown.
    #[error("certificate and private key: {0}")]
    Pair(#[from] rustls::Error),
    /// A file or folder could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
}
