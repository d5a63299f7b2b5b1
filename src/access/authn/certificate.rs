//! Client certificates: the listener takes any, this decides whether one proves an identity.

use std::sync::Arc;

use keelson_net::listener::Connection;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use x509_parser::der_parser::{Oid, oid};
use x509_parser::prelude::{FromDer, X509Certificate, X509Error};

use super::authorities::{Authorities, CertificateError, now};
use super::{Answer, Authenticator, Credentials, Identity};
use crate::user::{EXTRA_CREDENTIAL_ID, User};

/// The attribute of a subject that holds the user's uid.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);

/// Identities from certificates of one set of authorities: CN is the user, each O a group.
pub struct ClientCertificates {
    authorities: Authorities,
}

impl ClientCertificates {
    /// The error says what is wrong with the authorities.
    pub fn new(authorities: &[CertificateDer<'static>]) -> Result<ClientCertificates, CertificateError> {
        Ok(ClientCertificates {
            authorities: Authorities::new(authorities)?,
        })
    }

    /// Trusts these authorities and no others from the next request on, also those of connections that are open.
    ///
    /// # Errors
    /// What is wrong with the authorities; the old ones stay.
    pub fn replace(&self, authorities: &[CertificateDer<'static>]) -> Result<(), CertificateError> {
        self.authorities.replace(authorities)
    }

    fn judge(&self, connection: &Connection, now: u64) -> Result<Option<Arc<Identity>>, CertificateError> {
        let read = |leaf: &CertificateDer<'static>| {
            let identity = identity(leaf)?;
            Ok(identity.map(|user| Identity::of(user).with_group()))
        };
        self.authorities.judge::<Self, _>(connection, now, read)
    }
}

impl Authenticator for ClientCertificates {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a> {
        match credentials.connection {
            Some(connection) if !connection.certificates.is_empty() => {
                let judged = self.judge(connection, now());
                judged.map_err(|error| error.to_string().into()).into()
            }
            _ => Answer::nothing(),
        }
    }
}

/// CN, O and uid of the subject, in their order; `None` without a CN.
fn identity(certificate: &CertificateDer<'_>) -> Result<Option<User>, CertificateError> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(CertificateError::malformed)?;
    let subject = parsed.subject();
    let unreadable = |part: &'static str, error: &X509Error| CertificateError::Subject {
        part,
        reason: error.to_string(),
    };
    // The last one counts. One that can't be read is not passed over for another.
    let name = match subject.iter_common_name().last() {
        Some(name) => name.as_str().map_err(|error| unreadable("name", &error))?,
        None => "",
    };
    if name.is_empty() {
        return Ok(None);
    }
    let mut uids = subject.iter_by_oid(&UID);
    let uid = match (uids.next(), uids.next()) {
        (None, _) => "",
        (Some(uid), None) => uid.as_str().map_err(|error| unreadable("uid", &error))?,
        (Some(_), Some(_)) => return Err(CertificateError::SeveralUids),
    };
    if uid.is_empty() && subject.iter_by_oid(&UID).next().is_some() {
        return Err(CertificateError::EmptyUid);
    }
    let groups = subject
        .iter_organization()
        .filter_map(|a| a.as_str().ok())
        .map(str::to_owned)
        .collect();
    let id = format!("X509SHA256={}", hex(&Sha256::digest(certificate)));
    Ok(Some(User {
        name: name.to_owned(),
        uid: uid.to_owned(),
        groups,
        extra: [(EXTRA_CREDENTIAL_ID.to_owned(), vec![id])].into(),
    }))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use rcgen::{
        BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    };

    use super::*;
    use crate::authn::authorities::REMEMBER_SECONDS;
    use keelson_net::tls::certificates;
    use keelson_net::tls::certs::{CertificateAuthority, Validity};

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
        let identity = judge.judge(&one.connection, BEGIN + 1).unwrap().unwrap();
        let user = &identity.user;
        assert_eq!(
            (user.name.as_str(), user.groups.as_slice()),
            ("ann", &["ops".into(), "system:authenticated".into()][..])
        );
        let id = &user.extra[EXTRA_CREDENTIAL_ID][0];
        assert_eq!((&id[..11], id.len()), ("X509SHA256=", 11 + 64));
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

    /// What may be wrong with a certificate, and what it proves if nothing is.
    fn judged(name: DistinguishedName, usage: &[ExtendedKeyUsagePurpose], ends: u64) -> Result<Option<User>, String> {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let mut params = CertificateParams::default();
        params.distinguished_name = name;
        params.extended_key_usages = usage.to_vec();
        params.not_before = (UNIX_EPOCH + Duration::from_secs(BEGIN)).into();
        params.not_after = (UNIX_EPOCH + Duration::from_secs(ends)).into();
        let leaf = params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap();
        let mut connection = Connection::for_tests();
        connection.certificates = vec![leaf.der().clone()];
        let clients = ClientCertificates::new(&[authority.der().clone()]).unwrap();
        let identity = clients
            .judge(&connection, BEGIN + 10)
            .map_err(|error| error.to_string())?;
        Ok(identity.map(|identity| (*identity.user).clone()))
    }

    fn named(parts: &[(DnType, &str)]) -> DistinguishedName {
        let mut name = DistinguishedName::new();
        for (kind, text) in parts {
            name.push(kind.clone(), *text);
        }
        name
    }

    #[test]
    fn a_certificate_must_be_for_clients_in_its_time_and_have_a_name() {
        use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
        let ann = || named(&[(DnType::CommonName, "ann")]);
        let later = BEGIN + YEAR;
        let user = judged(ann(), &[ClientAuth], later).unwrap().unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("ann", ""));
        assert!(judged(ann(), &[], later).unwrap().is_some(), "any usage");
        assert!(judged(ann(), &[ServerAuth], later).is_err());
        assert!(judged(ann(), &[ClientAuth], BEGIN + 5).is_err(), "expired");
        let nobody = named(&[(DnType::OrganizationName, "ops")]);
        assert_eq!(judged(nobody, &[ClientAuth], later), Ok(None));
    }

    /// `openssl x509 -req` made them for many years, and kube-apiserver takes them.
    #[test]
    fn old_certificates_are_taken_from_their_authority_alone() {
        let both = certificates(include_str!("testdata/version-1.pem")).unwrap();
        let [leaf, authority] = &both[..] else {
            panic!("{} certificates", both.len())
        };
        let mut connection = Connection::for_tests();
        connection.certificates = vec![leaf.clone()];
        let judge = |authority: &CertificateDer<'static>, now| {
            let clients = ClientCertificates::new(std::slice::from_ref(authority)).unwrap();
            clients
                .judge(&connection, now)
                .map(|identity| identity.unwrap().user.name.clone())
        };
        assert_eq!(judge(authority, BEGIN).unwrap(), "oldie");
        assert!(judge(authority, BEGIN + 200 * YEAR).is_err(), "expired");
        assert!(judge(&party("other").authority[0], BEGIN).is_err());
        let mut forged = leaf.to_vec();
        let name = forged.windows(5).position(|part| part == b"oldie").unwrap();
        forged[name] = b'a';
        connection.certificates = vec![forged.into()];
        let clients = ClientCertificates::new(std::slice::from_ref(authority)).unwrap();
        assert!(clients.judge(&connection, BEGIN).is_err());
    }

    #[test]
    fn a_subject_may_hold_one_uid() {
        let uid = || DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        let of = |texts: &[&str]| {
            let mut parts = vec![(DnType::CommonName, "ann")];
            parts.extend(texts.iter().map(|text| (uid(), *text)));
            judged(named(&parts), &[ExtendedKeyUsagePurpose::ClientAuth], BEGIN + YEAR)
        };
        assert_eq!(of(&["u-1"]).unwrap().unwrap().uid, "u-1");
        assert!(of(&[""]).is_err());
    }

    /// Names that a careless authority might sign: nothing is cut, trimmed, split or passed over.
    #[test]
    fn odd_subjects_are_who_they_say_wholly_or_nobody() {
        use rcgen::DnValue::BmpString;
        let of = |name| judged(name, &[ExtendedKeyUsagePurpose::ClientAuth], BEGIN + YEAR);
        let who = |parts: &[(DnType, &str)]| of(named(parts)).unwrap().map(|user| (user.name, user.groups));
        let (cn, o, ou) = (
            || DnType::CommonName,
            || DnType::OrganizationName,
            || DnType::OrganizationalUnitName,
        );
        let user = |name: &str, groups: &[&str]| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            Some((name.to_owned(), groups))
        };
        for (parts, want) in [
            (vec![(cn(), "admin\0ann")], user("admin\0ann", &[])),
            (vec![(cn(), " admin ")], user(" admin ", &[])),
            (vec![(cn(), "ann,O=system:masters")], user("ann,O=system:masters", &[])),
            (vec![(cn(), "ann/O=system:masters")], user("ann/O=system:masters", &[])),
            (
                vec![(cn(), "ann"), (o(), "a,system:masters")],
                user("ann", &["a,system:masters"]),
            ),
            (
                vec![(cn(), "ann"), (o(), "a+O=system:masters")],
                user("ann", &["a+O=system:masters"]),
            ),
            (vec![(cn(), "ann"), (ou(), "system:masters")], user("ann", &[])),
            (vec![(o(), "system:masters"), (cn(), "")], None),
            (vec![(ou(), "admin")], None),
        ] {
            // The group of all who are known is not of the subject.
            let found = who(&parts).map(|(name, groups)| {
                let of_subject = |group: &String| group != "system:authenticated";
                (name, groups.into_iter().filter(of_subject).collect::<Vec<_>>())
            });
            assert_eq!(found, want, "{parts:?}");
        }
        // Of two names the last counts, as in Go; where that can't be read there is none.
        let second = || DnType::CustomDnType(vec![2, 5, 4, 3]);
        assert_eq!(who(&[(cn(), "admin"), (second(), "ann")]).unwrap().0, "ann");
        let mut name = named(&[(cn(), "admin")]);
        name.push(second(), BmpString("ann".try_into().unwrap()));
        assert!(of(name).is_err());
    }
}
