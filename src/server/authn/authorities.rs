//! Authorities whose client certificates prove something, and whether a chain leads to one of them.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use crate::listener::Connection;

/// What was found out about a certificate is looked at again after this time, in seconds, so that its expiry counts.
pub(super) const REMEMBER_SECONDS: u64 = 60;

/// A set of authorities, which can be replaced.
pub(super) struct Authorities {
    current: ArcSwap<Verifier>,
}

struct Verifier {
    chains: Arc<dyn ClientCertVerifier>,
    authorities: Vec<CertificateDer<'static>>,
}

/// What a connection's certificate was found to be, kept with the connection: not every request pays for a check of
/// signatures. `K`: who keeps it.
struct Judged<K, T> {
    verdict: Result<T, String>,
    by: Arc<Verifier>,
    until: u64,
    _keeper: std::marker::PhantomData<K>,
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

impl Authorities {
    /// The error says what is wrong with the authorities.
    pub fn new(authorities: &[CertificateDer<'static>]) -> Result<Authorities, String> {
        Ok(Authorities {
            current: ArcSwap::from_pointee(Verifier::new(authorities)?),
        })
    }

    /// Trusts these authorities and no others from the next request on, also those of connections that are open.
    ///
    /// # Errors
    /// What is wrong with the authorities; the old ones stay.
    pub fn replace(&self, authorities: &[CertificateDer<'static>]) -> Result<(), String> {
        self.current.store(Arc::new(Verifier::new(authorities)?));
        Ok(())
    }

    /// What `read` makes of the connection's certificate if one of the authorities vouches for it.
    pub fn judge<K: 'static, T: Clone + 'static>(
        &self,
        connection: &Connection,
        now: u64,
        read: impl FnOnce(&CertificateDer<'static>) -> Result<T, String>,
    ) -> Result<T, String> {
        let verifier = self.current.load();
        if let Some(judged) = connection.memory.borrow().get::<Judged<K, T>>()
            && now < judged.until
            && Arc::ptr_eq(&judged.by, &verifier)
        {
            return judged.verdict.clone();
        }
        let verdict = verifier.verify(&connection.certificates, now).and_then(read);
        connection.memory.borrow_mut().insert(Judged::<K, T> {
            verdict: verdict.clone(),
            by: Arc::clone(&verifier),
            until: now + REMEMBER_SECONDS,
            _keeper: std::marker::PhantomData,
        });
        verdict
    }
}

impl Verifier {
    fn new(authorities: &[CertificateDer<'static>]) -> Result<Verifier, String> {
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority.clone()).map_err(|e| e.to_string())?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|e| e.to_string())?;
        Ok(Verifier {
            chains: verifier,
            authorities: authorities.to_vec(),
        })
    }

    /// The client's own certificate, if it is fit for clients, in its time, and vouched for.
    fn verify<'a>(
        &self,
        chain: &'a [CertificateDer<'static>],
        now: u64,
    ) -> Result<&'a CertificateDer<'static>, String> {
        let [leaf, intermediates @ ..] = chain else {
            return Err("no certificate".into());
        };
        let time = UnixTime::since_unix_epoch(Duration::from_secs(now));
        match self.chains.verify_client_cert(leaf, intermediates, time) {
            Ok(_) => Ok(leaf),
            Err(_) if self.vouch_for_old(leaf, now) => Ok(leaf),
            Err(error) => Err(format!("verifying certificate failed: {error}")),
        }
    }

    /// Whether one of the authorities itself signed a certificate of X.509 version 1, and it is in its time. webpki knows
    /// no such certificates; Go does, and `openssl x509 -req` made them for many years. They say nothing about what they
    /// are for.
    fn vouch_for_old(&self, leaf: &[u8], now: u64) -> bool {
        let Ok((_, leaf)) = X509Certificate::from_der(leaf) else {
            return false;
        };
        let validity = leaf.validity();
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        leaf.version() == X509Version::V1
            && (validity.not_before.timestamp()..=validity.not_after.timestamp()).contains(&now)
            && self.authorities.iter().any(|authority| {
                X509Certificate::from_der(authority).is_ok_and(|(_, authority)| {
                    authority.subject().as_raw() == leaf.issuer().as_raw()
                        && leaf.verify_signature(Some(authority.public_key())).is_ok()
                })
            })
    }
}
