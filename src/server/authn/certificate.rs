//! Client certificates: the listener takes any, this decides whether one proves an identity.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Authenticator, Credentials};
use crate::user::User;

/// Verified certificates that are remembered, so that not every request of a connection pays for a signature check.
const MAX_REMEMBERED: usize = 1024;
/// A remembered certificate is looked at again after this time, in seconds, so that its expiry counts.
const REMEMBER_SECONDS: u64 = 60;

type Remembered = HashMap<[u8; 32], (User, u64)>;

/// Identities from certificates of one set of authorities: CN is the user, each O a group.
pub struct ClientCertificates {
    verifier: Arc<dyn ClientCertVerifier>,
    remembered: Mutex<Remembered>,
}

impl ClientCertificates {
    /// The error says what is wrong with the authorities.
    pub fn new(authorities: &[CertificateDer<'static>]) -> Result<ClientCertificates, String> {
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority.clone()).map_err(|e| e.to_string())?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|e| e.to_string())?;
        Ok(ClientCertificates {
            verifier,
            remembered: Mutex::new(Remembered::new()),
        })
    }

    fn verify(&self, chain: &[CertificateDer<'static>], now: u64) -> Result<User, String> {
        let [leaf, intermediates @ ..] = chain else {
            return Err("no certificate".into());
        };
        self.verifier
            .verify_client_cert(
                leaf,
                intermediates,
                UnixTime::since_unix_epoch(Duration::from_secs(now)),
            )
            .map_err(|e| format!("verifying certificate failed: {e}"))?;
        identity(leaf)
    }
}

impl Authenticator for ClientCertificates {
    fn authenticate(&self, credentials: &Credentials<'_>) -> Result<Option<User>, String> {
        let Some(chain) = credentials
            .connection
            .map(|c| c.certificates.as_slice())
            .filter(|c| !c.is_empty())
        else {
            return Ok(None);
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let mut hash = Sha256::new();
        for certificate in chain {
            hash.update(certificate.as_ref());
        }
        let digest: [u8; 32] = hash.finalize().into();
        let remembered = |m: &Remembered| m.get(&digest).filter(|(_, until)| now < *until).map(|(u, _)| u.clone());
        if let Some(user) = remembered(&self.remembered.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(Some(user));
        }
        let user = self.verify(chain, now)?;
        let mut memory = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.len() >= MAX_REMEMBERED {
            memory.clear();
        }
        memory.insert(digest, (user.clone(), now + REMEMBER_SECONDS));
        Ok(Some(user))
    }
}

/// CN and O of the subject, in their order.
fn identity(certificate: &CertificateDer<'_>) -> Result<User, String> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|e| e.to_string())?;
    let subject = parsed.subject();
    let name = subject
        .iter_common_name()
        .filter_map(|a| a.as_str().ok())
        .last()
        .unwrap_or_default();
    if name.is_empty() {
        return Err("the certificate's subject has no common name".into());
    }
    let groups = subject
        .iter_organization()
        .filter_map(|a| a.as_str().ok())
        .map(str::to_owned)
        .collect();
    Ok(User {
        name: name.to_owned(),
        groups,
        ..User::default()
    })
}
