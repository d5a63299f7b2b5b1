//! Trust in the server: by authorities that are given, or any server's.

use std::path::Path;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::fault::Fault;

/// The authorities in a PEM file.
pub fn authorities(file: &Path) -> Result<RootCertStore, Fault> {
    let wrong = |error: &dyn std::fmt::Display| Fault::unusable(format!("{}: {error}", file.display()));
    let mut authorities = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))? {
        let certificate = certificate.map_err(|error| wrong(&error))?;
        authorities.add(certificate).map_err(|error| wrong(&error))?;
    }
    Ok(authorities)
}

/// Takes any certificate: what is examined is the server that was named, on a machine of the examiner.
#[derive(Debug)]
pub struct Anyone {
    schemes: Vec<SignatureScheme>,
}

impl Anyone {
    pub fn new(provider: &CryptoProvider) -> Anyone {
        Anyone {
            schemes: provider.signature_verification_algorithms.supported_schemes(),
        }
    }
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}
