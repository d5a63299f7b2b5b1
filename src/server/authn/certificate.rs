//! Client certificates: the listener takes any, this decides whether one proves an identity.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Authenticator, Credentials, with_group};
use crate::listener::Connection;
use crate::user::User;

/// A certificate that was found good is looked at again after this time, in seconds, so that its expiry counts.
const REMEMBER_SECONDS: u64 = 60;

/// Identities from certificates of one set of authorities: CN is the user, each O a group.
pub struct ClientCertificates {
    authorities: ArcSwap<Authorities>,
}

struct Authorities(Arc<dyn ClientCertVerifier>);

/// What a connection's certificate was found to prove, kept with the connection: not every request pays for a check of
/// signatures.
struct Proved {
    user: Arc<User>,
    by: Arc<Authorities>,
    until: u64,
}

impl ClientCertificates {
    /// The error says what is wrong with the authorities.
    pub fn new(authorities: &[CertificateDer<'static>]) -> Result<ClientCertificates, String> {
        Ok(ClientCertificates {
            authorities: ArcSwap::from_pointee(Authorities::new(authorities)?),
        })
    }

    /// Trusts these authorities and no others from the next request on, also those of connections that are open.
    ///
    /// # Errors
    /// What is wrong with the authorities; the old ones stay.
    pub fn replace(&self, authorities: &[CertificateDer<'static>]) -> Result<(), String> {
        self.authorities.store(Arc::new(Authorities::new(authorities)?));
        Ok(())
    }

    fn judge(&self, connection: &Connection, now: u64) -> Result<Arc<User>, String> {
        let authorities = self.authorities.load();
        if let Some(proved) = connection.memory.borrow().get::<Proved>()
            && now < proved.until
            && Arc::ptr_eq(&proved.by, &authorities)
        {
            return Ok(Arc::clone(&proved.user));
        }
        let user = with_group(Arc::new(authorities.verify(&connection.certificates, now)?));
        connection.memory.borrow_mut().insert(Proved {
            user: Arc::clone(&user),
            by: Arc::clone(&authorities),
            until: now + REMEMBER_SECONDS,
        });
        Ok(user)
    }
}

impl Authorities {
    fn new(authorities: &[CertificateDer<'static>]) -> Result<Authorities, String> {
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority.clone()).map_err(|e| e.to_string())?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|e| e.to_string())?;
        Ok(Authorities(verifier))
    }

    fn verify(&self, chain: &[CertificateDer<'static>], now: u64) -> Result<User, String> {
        let [leaf, intermediates @ ..] = chain else {
            return Err("no certificate".into());
        };
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        self.0
            .verify_client_cert(leaf, intermediates, now)
            .map_err(|e| format!("verifying certificate failed: {e}"))?;
        identity(leaf)
    }
}

impl Authenticator for ClientCertificates {
    fn authenticate(&self, credentials: &Credentials<'_>) -> Result<Option<Arc<User>>, String> {
        match credentials.connection {
            Some(connection) if !connection.certificates.is_empty() => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
                self.judge(connection, now).map(Some)
            }
            _ => Ok(None),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::certificates;
    use crate::tls::certs::{CertificateAuthority, Validity};

    const YEAR: u64 = 365 * 24 * 3600;
    const BEGIN: u64 = 1_800_000_000;

    struct Party {
        authority: Vec<CertificateDer<'static>>,
        connection: Connection,
    }

    fn party(name: &str) -> Party {
        let validity = Validity::years_from(UNIX_EPOCH + Duration::from_secs(BEGIN), 1);
        let authority = CertificateAuthority::create(name, validity).unwrap();
        let pair = authority.issue_client("ann", Some("ops"), validity).unwrap();
        let mut connection = Connection::for_tests();
        connection.certificates = certificates(&pair.certificate_pem).unwrap();
        Party {
            authority: certificates(&authority.pem().certificate_pem).unwrap(),
            connection,
        }
    }

    #[test]
    fn replaced_authorities_count_for_open_connections_too() {
        let (one, other) = (party("one"), party("other"));
        let judge = ClientCertificates::new(&one.authority).unwrap();
        let user = judge.judge(&one.connection, BEGIN + 1).unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups.as_slice()),
            ("ann", &["ops".into(), "system:authenticated".into()][..])
        );
        assert!(judge.judge(&other.connection, BEGIN + 1).is_err());
        judge.replace(&other.authority).unwrap();
        assert!(judge.judge(&one.connection, BEGIN + 2).is_err());
        assert!(judge.judge(&other.connection, BEGIN + 2).is_ok());
    }

    #[test]
    fn a_certificate_that_ends_meanwhile_is_found_out() {
        let ann = party("one");
        let judge = ClientCertificates::new(&ann.authority).unwrap();
        let end = BEGIN + YEAR;
        assert!(judge.judge(&ann.connection, end - 90).is_ok());
        assert!(judge.judge(&ann.connection, end - 31).is_ok(), "remembered");
        assert!(
            judge
                .judge(&ann.connection, end + REMEMBER_SECONDS + 24 * 3600)
                .is_err()
        );
    }
}
