//! A proxy in front, which has authenticated the sender and says who it is in headers.
//!
//! Only a client certificate of the proxy's own authority makes these headers mean anything; it is never mixed up with
//! the authority of other clients' certificates.

use std::sync::Arc;

use actix_web::http::header::HeaderMap;
use keelson_net::listener::Connection;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::authorities::{Authorities, CertificateError, now};
use super::union::remove_headers;
use super::{Answer, Authenticator, Credentials, Identity, Refusal};
use crate::request_info::decode_path;
use crate::user::User;

/// In which headers an identity stands. Names are of any case.
#[derive(Clone, Debug, Default)]
pub struct IdentityHeaders {
    /// The first that is not empty names the user.
    pub usernames: Vec<String>,
    /// The first that is not empty is the uid.
    pub uids: Vec<String>,
    /// Every value is a group.
    pub groups: Vec<String>,
    /// What follows one of these in a header's name is the key of an extra, percent-encoded.
    pub extra_prefixes: Vec<String>,
}

/// Identities that a front proxy vouches for.
pub struct FrontProxy {
    authorities: Authorities,
    /// Common names of certificates that are proxies; empty: all that the authorities vouch for.
    allowed: Vec<String>,
    headers: IdentityHeaders,
}

impl FrontProxy {
    /// The error says what is wrong with the authorities.
    pub fn new(
        authorities: &[CertificateDer<'static>],
        allowed: Vec<String>,
        mut headers: IdentityHeaders,
    ) -> Result<FrontProxy, CertificateError> {
        let lists = [
            &mut headers.usernames,
            &mut headers.uids,
            &mut headers.groups,
            &mut headers.extra_prefixes,
        ];
        for name in lists.into_iter().flatten() {
            name.make_ascii_lowercase();
        }
        Ok(FrontProxy {
            authorities: Authorities::new(authorities)?,
            allowed,
            headers,
        })
    }

    /// Trusts these authorities and no others from the next request on.
    ///
    /// # Errors
    /// What is wrong with the authorities; the old ones stay.
    pub fn replace(&self, authorities: &[CertificateDer<'static>]) -> Result<(), CertificateError> {
        self.authorities.replace(authorities)
    }

    fn is_proxy(&self, connection: &Connection, now: u64) -> Result<(), CertificateError> {
        self.authorities.judge::<Self, ()>(connection, now, |leaf| {
            let (_, parsed) = X509Certificate::from_der(leaf).map_err(CertificateError::malformed)?;
            let name = parsed
                .subject()
                .iter_common_name()
                .filter_map(|a| a.as_str().ok())
                .last();
            let name = name.unwrap_or_default();
            match self.allowed.is_empty() || self.allowed.iter().any(|one| one == name) {
                true => Ok(()),
                false => Err(CertificateError::NotAllowed(name.to_owned())),
            }
        })
    }
}

impl Authenticator for FrontProxy {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a> {
        match credentials.connection {
            Some(connection) if !connection.certificates.is_empty() => match self.is_proxy(connection, now()) {
                Ok(()) => Ok(self.headers.identity(credentials.headers)).into(),
                Err(error) => Answer::Now(Err(Refusal::from(error.to_string()))),
            },
            _ => Answer::nothing(),
        }
    }

    fn strip(&self, headers: &mut HeaderMap) {
        self.headers.strip(headers);
    }
}

impl IdentityHeaders {
    fn identity(&self, headers: &HeaderMap) -> Option<Arc<Identity>> {
        let name = first(headers, &self.usernames)?;
        Some(Identity::of(User {
            name,
            uid: first(headers, &self.uids).unwrap_or_default(),
            groups: self.groups.iter().flat_map(|name| values(headers, name)).collect(),
            extra: self.extra(headers),
        }))
    }

    fn extra(&self, headers: &HeaderMap) -> std::collections::BTreeMap<String, Vec<String>> {
        let mut extra = std::collections::BTreeMap::<String, Vec<String>>::new();
        for prefix in &self.extra_prefixes {
            for (name, value) in headers {
                let Some(key) = name.as_str().strip_prefix(prefix.as_str()) else {
                    continue;
                };
                // A key that is not escaped rightly is taken as it stands.
                let key = decode_path(key).unwrap_or_else(|| key.to_owned());
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                extra.entry(key).or_default().push(value);
            }
        }
        extra
    }

    fn strip(&self, headers: &mut HeaderMap) {
        remove_headers(headers, |name| {
            let is = |list: &[String]| list.iter().any(|one| one == name);
            is(&self.usernames)
                || is(&self.uids)
                || is(&self.groups)
                || self
                    .extra_prefixes
                    .iter()
                    .any(|prefix| name.starts_with(prefix.as_str()))
        });
    }
}

/// Removes the headers of this kind that are usual, whether or not a proxy is configured: servers behind this one may
/// believe them.
pub(super) fn strip_usual(headers: &mut HeaderMap) {
    const USUAL: [&str; 3] = ["x-remote-user", "x-remote-uid", "x-remote-group"];
    remove_headers(headers, |name| {
        USUAL.contains(&name) || name.starts_with("x-remote-extra-")
    });
}

fn values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = String> + 'a {
    let text = |value: &actix_web::http::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.get_all(name).map(text).filter(|value| !value.is_empty())
}

/// The first value of the first header that has one that is not empty.
fn first(headers: &HeaderMap, names: &[String]) -> Option<String> {
    let value = |name: &String| {
        let value = headers.get(name.as_str())?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned()).filter(|value| !value.is_empty())
    };
    names.iter().find_map(value)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;
    use crate::authn::authorities::now;
    use keelson_net::tls::certificates;
    use keelson_net::tls::certs::{CertificateAuthority, Validity};

    fn validity() -> Validity {
        Validity::years_from(UNIX_EPOCH + Duration::from_secs(now()), 1)
    }

    fn usual() -> IdentityHeaders {
        IdentityHeaders {
            usernames: vec!["X-Remote-User".into(), "X-Who".into()],
            uids: vec!["X-Remote-Uid".into()],
            groups: vec!["X-Remote-Group".into()],
            extra_prefixes: vec!["X-Remote-Extra-".into()],
        }
    }

    /// A proxy that believes `authority`, and a connection with a certificate of `signer` for `name`.
    fn setting(
        authority: &CertificateAuthority,
        signer: &CertificateAuthority,
        name: &str,
    ) -> (FrontProxy, Connection) {
        let ca = certificates(&authority.pem().certificate_pem).unwrap();
        let proxy = FrontProxy::new(&ca, vec!["front".into()], usual()).unwrap();
        let pair = signer.issue_client(name, None, validity()).unwrap();
        let mut connection = Connection::for_tests();
        connection.certificates = certificates(&pair.certificate_pem).unwrap();
        (proxy, connection)
    }

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    fn ask(proxy: &FrontProxy, connection: Option<&Connection>, headers: &HeaderMap) -> Result<Option<User>, String> {
        let credentials = Credentials {
            headers,
            connection,
            path: "/",
            audiences: &[],
        };
        let Answer::Now(outcome) = proxy.authenticate(&credentials) else {
            panic!("nobody has to be asked");
        };
        let outcome = outcome.map_err(|refusal| refusal.to_string())?;
        Ok(outcome.map(|identity| (*identity.user).clone()))
    }

    #[test]
    fn a_proxy_says_who_it_is() {
        let ca = CertificateAuthority::create("proxies", validity()).unwrap();
        let (proxy, connection) = setting(&ca, &ca, "front");
        let sent = headers(&[
            ("x-remote-user", ""),
            ("x-who", "zed"),
            ("x-remote-group", "a"),
            ("x-remote-group", ""),
            ("x-remote-group", "b,c"),
            ("x-remote-uid", "u"),
            ("x-remote-extra-foo%2fbar", "1"),
            ("x-remote-extra-a%zz", "2"),
        ]);
        let user = ask(&proxy, Some(&connection), &sent).unwrap().unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("zed", "u"));
        assert_eq!(user.groups, ["a", "b,c"]);
        assert_eq!(user.extra["foo/bar"], ["1"]);
        assert_eq!(user.extra["a%zz"], ["2"]);
        assert_eq!(ask(&proxy, Some(&connection), &headers(&[])), Ok(None));
    }

    #[test]
    fn headers_without_a_certificate_of_the_proxies_authority_mean_nothing() {
        let ca = CertificateAuthority::create("proxies", validity()).unwrap();
        let clients = CertificateAuthority::create("clients", validity()).unwrap();
        let sent = headers(&[("x-remote-user", "admin"), ("x-remote-group", "system:masters")]);
        let (proxy, connection) = setting(&ca, &clients, "front");
        assert!(ask(&proxy, Some(&connection), &sent).is_err());
        assert_eq!(ask(&proxy, None, &sent), Ok(None));
        assert_eq!(ask(&proxy, Some(&Connection::for_tests()), &sent), Ok(None));
        let (proxy, connection) = setting(&ca, &ca, "other");
        let error = ask(&proxy, Some(&connection), &sent).unwrap_err();
        assert_eq!(error, "x509: subject with cn=other is not in the allowed list");
    }

    #[test]
    fn configured_and_usual_headers_are_removed() {
        let ca = CertificateAuthority::create("proxies", validity()).unwrap();
        let (proxy, _) = setting(&ca, &ca, "front");
        let mut sent = headers(&[
            ("x-who", "a"),
            ("x-remote-extra-b", "c"),
            ("x-remote-uid", "d"),
            ("accept", "e"),
        ]);
        proxy.strip(&mut sent);
        assert_eq!(sent.len(), 1);
        let mut sent = headers(&[("x-remote-group", "a"), ("x-remote-extra-b", "c"), ("x-remote", "d")]);
        strip_usual(&mut sent);
        assert_eq!(sent.len(), 1);
    }

    /// Of a header that comes several times the first value with something in it counts; other spellings are other
    /// headers.
    #[test]
    fn a_proxy_is_believed_as_it_spells() {
        let ca = CertificateAuthority::create("proxies", validity()).unwrap();
        let (proxy, connection) = setting(&ca, &ca, "front");
        let name = |lines: &[(&'static str, &'static str)]| {
            let user = ask(&proxy, Some(&connection), &headers(lines)).unwrap();
            user.map(|user| (user.name, user.groups.join(" ")))
        };
        let of = |name: &str, groups: &str| Some((name.to_owned(), groups.to_owned()));
        for (lines, want) in [
            (
                &[("x-remote-user", "ann"), ("x-remote-user", "admin")][..],
                of("ann", ""),
            ),
            (&[("x-who", "admin"), ("x-remote-user", "ann")], of("ann", "")),
            (&[("x-remote-user", "ann,admin")], of("ann,admin", "")),
            (&[("x_remote_user", "admin")], None),
            (&[("x-remote_user", "admin")], None),
            (
                &[("x-remote-user", "ann"), ("x-remote_group", "system:masters")],
                of("ann", ""),
            ),
            (
                &[("x-remote-user", "ann"), ("x_remote_group", "system:masters")],
                of("ann", ""),
            ),
            (&[("x-remote-users", "admin"), ("remote-user", "admin")], None),
            (&[("x-remote-user", ""), ("x-remote-group", "system:masters")], None),
            (&[("x-remote-group", "system:masters")], None),
        ] {
            assert_eq!(name(lines), want, "{lines:?}");
        }
    }

    /// Without names that are allowed each certificate of the proxies' authority is one of a proxy; a name is compared
    /// as it stands.
    #[test]
    fn names_of_proxies_are_compared_as_they_stand() {
        let ca = CertificateAuthority::create("proxies", validity()).unwrap();
        let der = certificates(&ca.pem().certificate_pem).unwrap();
        let sent = headers(&[("x-remote-user", "ann")]);
        for (allowed, name, is_one) in [
            (&[][..], "anything", true),
            (&["front"], "front", true),
            (&["back", "front"], "front", true),
            (&["front"], "Front", false),
            (&["front"], "front ", false),
            (&["front"], "front.example", false),
            (&["front"], "", false),
            (&[""], "front", false),
        ] {
            let allowed = allowed.iter().map(|name| (*name).to_owned()).collect();
            let proxy = FrontProxy::new(&der, allowed, usual()).unwrap();
            let pair = ca.issue_client(name, None, validity()).unwrap();
            let mut connection = Connection::for_tests();
            connection.certificates = certificates(&pair.certificate_pem).unwrap();
            let found = ask(&proxy, Some(&connection), &sent);
            assert_eq!(found.is_ok_and(|user| user.is_some()), is_one, "{name:?}");
        }
    }
}
