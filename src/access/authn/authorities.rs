//! Authorities whose client certificates prove something, and whether a chain leads to one of them.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use keelson_net::listener::Connection;
use keelson_net::tls::CLIENT_SIGNATURES;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, ExtendedKeyUsageValidator, KeyPurposeIdIter, VerifiedPath, anchor_from_trusted_cert};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

/// What was found out about a certificate is looked at again after this time, in seconds, so that its expiry counts.
pub(super) const REMEMBER_SECONDS: u64 = 60;

/// A certificate that proves nothing, or authorities that nobody can be checked by.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("no authorities")]
    NoAuthorities,
    #[error("no certificate")]
    NoCertificate,
    /// It can't be read.
    #[error("{0}")]
    Malformed(String),
    /// No authority vouches for it.
    #[error("verifying certificate failed: {0}")]
    Unverified(webpki::Error),
    /// A part of the subject can't be read.
    #[error("the {part} of the subject: {reason}")]
    Subject { part: &'static str, reason: String },
    #[error("the subject has more than one uid")]
    SeveralUids,
    #[error("the uid of the subject is empty")]
    EmptyUid,
    /// A proxy of this name is not among those that are believed.
    #[error("x509: subject with cn={0} is not in the allowed list")]
    NotAllowed(String),
}

impl CertificateError {
    /// What can't be read.
    pub(super) fn malformed(error: impl ToString) -> CertificateError {
        CertificateError::Malformed(error.to_string())
    }
}

/// A set of authorities, which can be replaced.
pub(super) struct Authorities {
    current: ArcSwap<Verifier>,
}

struct Verifier {
    authorities: Vec<Authority>,
}

/// An authority, as far as it vouches for clients.
struct Authority {
    certificate: CertificateDer<'static>,
    /// `None`: its certificate says that it signs none, or none of clients.
    anchor: Option<TrustAnchor<'static>>,
    /// First and last second since 1970.
    valid: (i64, i64),
}

/// What a connection's certificate was found to be, kept with the connection: not every request pays for a check of
/// signatures. `K`: who keeps it.
struct Judged<K, T> {
    verdict: Result<T, CertificateError>,
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
    pub fn new(authorities: &[CertificateDer<'static>]) -> Result<Authorities, CertificateError> {
        Ok(Authorities {
            current: ArcSwap::from_pointee(Verifier::new(authorities)?),
        })
    }

    /// Trusts these authorities and no others from the next request on, also those of connections that are open.
    ///
    /// # Errors
    /// What is wrong with the authorities; the old ones stay.
    pub fn replace(&self, authorities: &[CertificateDer<'static>]) -> Result<(), CertificateError> {
        self.current.store(Arc::new(Verifier::new(authorities)?));
        Ok(())
    }

    /// What `read` makes of the connection's certificate if one of the authorities vouches for it.
    pub fn judge<K: 'static, T: Clone + 'static>(
        &self,
        connection: &Connection,
        now: u64,
        read: impl FnOnce(&CertificateDer<'static>) -> Result<T, CertificateError>,
    ) -> Result<T, CertificateError> {
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

impl Authority {
    fn read(certificate: &CertificateDer<'static>) -> Result<Authority, CertificateError> {
        let anchor = anchor_from_trusted_cert(certificate)
            .map_err(CertificateError::malformed)?
            .to_owned();
        let (_, parsed) = X509Certificate::from_der(certificate).map_err(CertificateError::malformed)?;
        let signs = may_sign(&parsed) && serves_clients(&parsed);
        Ok(Authority {
            certificate: certificate.clone(),
            anchor: signs.then_some(anchor),
            valid: validity(&parsed),
        })
    }

    fn is_in_time(&self, now: i64) -> bool {
        (self.valid.0..=self.valid.1).contains(&now)
    }
}

impl Verifier {
    fn new(authorities: &[CertificateDer<'static>]) -> Result<Verifier, CertificateError> {
        if authorities.is_empty() {
            return Err(CertificateError::NoAuthorities);
        }
        Ok(Verifier {
            authorities: authorities.iter().map(Authority::read).collect::<Result<_, _>>()?,
        })
    }

    /// The client's own certificate, if it is fit for clients, in its time, and vouched for.
    fn verify<'a>(
        &self,
        chain: &'a [CertificateDer<'static>],
        now: u64,
    ) -> Result<&'a CertificateDer<'static>, CertificateError> {
        let [leaf, intermediates @ ..] = chain else {
            return Err(CertificateError::NoCertificate);
        };
        match self.find_path(leaf, intermediates, now) {
            Ok(()) => Ok(leaf),
            Err(_) if self.vouch_themselves(leaf, now) => Ok(leaf),
            Err(error) => Err(CertificateError::Unverified(error)),
        }
    }

    /// Whether signatures lead from the leaf to an authority. As for Go, everybody on the way has to be in its time and
    /// fit for clients, the authority too, and who signs has to be allowed to.
    fn find_path(
        &self,
        leaf: &CertificateDer<'static>,
        intermediates: &[CertificateDer<'static>],
        now: u64,
    ) -> Result<(), webpki::Error> {
        let seconds = signed(now);
        let in_time = self.authorities.iter().filter(|one| one.is_in_time(seconds));
        let anchors: Vec<TrustAnchor<'_>> = in_time.filter_map(|one| one.anchor.clone()).collect();
        let signers_may = |path: &VerifiedPath<'_>| {
            let mut signers = path.intermediate_certificates();
            match signers.all(|one| X509Certificate::from_der(&one.der()).is_ok_and(|(_, one)| may_sign(&one))) {
                true => Ok(()),
                false => Err(webpki::Error::UnknownIssuer),
            }
        };
        EndEntityCert::try_from(leaf)?.verify_for_usage(
            CLIENT_SIGNATURES.all,
            &anchors,
            intermediates,
            UnixTime::since_unix_epoch(Duration::from_secs(now)),
            ForClients,
            None,
            Some(&signers_may),
        )?;
        Ok(())
    }

    /// What webpki does not take and Go does: a certificate that is among the authorities itself; one of X.509 version
    /// 1 that an authority itself signed, which `openssl x509 -req` made for many years; and a client's that might sign
    /// others, if an authority itself signed it.
    fn vouch_themselves(&self, leaf: &CertificateDer<'static>, now: u64) -> bool {
        let Ok((_, parsed)) = X509Certificate::from_der(leaf) else {
            return false;
        };
        let now = signed(now);
        let (begin, end) = validity(&parsed);
        if !(begin..=end).contains(&now) {
            return false;
        }
        if self.authorities.iter().any(|one| one.certificate == *leaf) {
            return serves_clients(&parsed);
        }
        let mut signers = self.authorities.iter();
        (parsed.version() == X509Version::V1 || parsed.is_ca())
            && serves_clients(&parsed)
            && signers.any(|one| one.anchor.is_some() && one.is_in_time(now) && has_signed(&one.certificate, &parsed))
    }
}

fn has_signed(authority: &[u8], leaf: &X509Certificate<'_>) -> bool {
    X509Certificate::from_der(authority).is_ok_and(|(_, authority)| {
        authority.subject().as_raw() == leaf.issuer().as_raw()
            && leaf.verify_signature(Some(authority.public_key())).is_ok()
    })
}

fn signed(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// First and last second since 1970.
fn validity(certificate: &X509Certificate<'_>) -> (i64, i64) {
    let validity = certificate.validity();
    (validity.not_before.timestamp(), validity.not_after.timestamp())
}

/// A certificate that says what its key is for, and not that it signs others, signs none.
fn may_sign(certificate: &X509Certificate<'_>) -> bool {
    match certificate.key_usage() {
        Ok(usage) => usage.is_none_or(|usage| usage.value.key_cert_sign()),
        Err(_) => false,
    }
}

/// A certificate that says for which ends it is must name clients, or all.
fn serves_clients(certificate: &X509Certificate<'_>) -> bool {
    match certificate.extended_key_usage() {
        Ok(usage) => usage.is_none_or(|usage| usage.value.any || usage.value.client_auth),
        Err(_) => false,
    }
}

/// The same for webpki, which would not have `anyExtendedKeyUsage` count.
struct ForClients;

impl ExtendedKeyUsageValidator for ForClients {
    fn validate(&self, usages: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        const ANY: [usize; 5] = [2, 5, 29, 37, 0];
        const CLIENT: [usize; 9] = [1, 3, 6, 1, 5, 5, 7, 3, 2];
        let mut none = true;
        for usage in usages {
            let usage = usage?.to_decoded_oid();
            if usage == ANY || usage == CLIENT {
                return Ok(());
            }
            none = false;
        }
        match none {
            true => Ok(()),
            false => Err(webpki::Error::UnknownIssuer),
        }
    }
}
