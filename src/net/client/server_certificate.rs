//! Verification of server certificates.

use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use keelson_machinery::time::Time;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::tls::TrustedRoots;

/// Where systems keep the authorities that they trust; the first file that is there counts.
const SYSTEM_FILES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The authorities that the machine trusts, read once. `SSL_CERT_FILE` names another file, as for Go's programs.
pub(super) fn system_roots() -> Arc<TrustedRoots> {
    static ROOTS: OnceLock<Arc<TrustedRoots>> = OnceLock::new();
    let read = || {
        let given = std::env::var("SSL_CERT_FILE").ok().filter(|path| !path.is_empty());
        let text = match given {
            Some(path) => std::fs::read(path).ok(),
            None => SYSTEM_FILES.iter().find_map(|path| std::fs::read(path).ok()),
        };
        Arc::new(TrustedRoots::parse(&text.unwrap_or_default()))
    };
    ROOTS.get_or_init(read).clone()
}

/// Why a certificate is not believed, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("x509: {0}")]
pub(super) struct Mistrust(String);

/// Takes certificates that an authority vouches for, that are valid now, and that are for the server's name.
struct Vouched {
    /// `None`: there are no authorities.
    inner: Option<Arc<WebPkiServerVerifier>>,
    roots: Arc<TrustedRoots>,
}

impl Vouched {
    fn new(roots: Arc<TrustedRoots>, provider: Arc<CryptoProvider>) -> Vouched {
        let store = Arc::new(roots.store.clone());
        let inner = WebPkiServerVerifier::builder_with_provider(store, provider).build();
        Vouched {
            inner: inner.ok(),
            roots,
        }
    }

    fn judge(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Mistrust> {
        let unknown = || Mistrust("certificate signed by unknown authority".to_owned());
        let verdict = match &self.inner {
            Some(inner) => inner.verify_server_cert(end_entity, intermediates, name, &[], now),
            None => Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
        };
        let Err(error) = verdict else {
            return Ok(());
        };
        let (_, parsed) =
            X509Certificate::from_der(end_entity).map_err(|_| Mistrust("malformed certificate".to_owned()))?;
        in_time(&parsed, now)?;
        named(&parsed, name)?;
        // A certificate that is itself among the authorities vouches for itself. webpki knows no such servers: it wants
        // authorities to be nothing else.
        if self.roots.certificates.iter().any(|root| root == end_entity) {
            return Ok(());
        }
        Err(match error {
            Error::InvalidCertificate(
                CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
            ) => Mistrust("certificate specifies an incompatible key usage".to_owned()),
            Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature | CertificateError::Other(_),
            ) => unknown(),
            other => Mistrust(other.to_string()),
        })
    }
}

fn in_time(certificate: &X509Certificate<'_>, now: UnixTime) -> Result<(), Mistrust> {
    let at = |seconds: i64| Time::from_unix(seconds, 0).to_string();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    let (first, last) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    let odd = match now {
        now if now > last => format!("is after {}", at(last)),
        now if now < first => format!("is before {}", at(first)),
        _ => return Ok(()),
    };
    Err(Mistrust(format!(
        "certificate has expired or is not yet valid: current time {} {odd}",
        at(now)
    )))
}

/// Whether the certificate is for this name, by its alternative names alone.
fn named(certificate: &X509Certificate<'_>, name: &ServerName<'_>) -> Result<(), Mistrust> {
    let (mut names, mut addresses) = (Vec::new(), Vec::new());
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    for alternative in alternatives.iter().flat_map(|found| &found.value.general_names) {
        match alternative {
            GeneralName::DNSName(name) => names.push(*name),
            GeneralName::IPAddress(octets) => addresses.extend(address(octets)),
            _ => {}
        }
    }
    let wanted = name.to_str();
    let (fits, valid) = match wanted.parse::<IpAddr>() {
        Ok(_) if addresses.is_empty() => {
            let why = "because it doesn't contain any IP SANs";
            return Err(Mistrust(format!("cannot validate certificate for {wanted} {why}")));
        }
        Ok(wanted) => {
            let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            (addresses.contains(&wanted), shown.join(", "))
        }
        Err(_) => (names.iter().any(|pattern| covers(pattern, &wanted)), names.join(", ")),
    };
    match (fits, valid.as_str()) {
        (true, _) => Ok(()),
        (false, "") => Err(Mistrust(format!(
            "certificate is not valid for any names, but wanted to match {wanted}"
        ))),
        (false, valid) => Err(Mistrust(format!("certificate is valid for {valid}, not {wanted}"))),
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    let four: Option<[u8; 4]> = octets.try_into().ok();
    let sixteen: Option<[u8; 16]> = octets.try_into().ok();
    four.map(IpAddr::from).or(sixteen.map(IpAddr::from))
}

/// Whether a name, or `*.` and a domain, is this name. A star stands for one label.
fn covers(pattern: &str, name: &str) -> bool {
    let name = name.trim_end_matches('.');
    match pattern.strip_prefix("*.") {
        Some(domain) => name
            .split_once('.')
            .is_some_and(|(label, rest)| !label.is_empty() && rest.eq_ignore_ascii_case(domain)),
        None => pattern.eq_ignore_ascii_case(name),
    }
}

/// Checks a server at the handshake, whose certificate's key must sign it.
pub(super) struct ServerCheck {
    /// `None`: any certificate will do.
    trust: Option<Vouched>,
    provider: Arc<CryptoProvider>,
}

impl Debug for ServerCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerCheck").finish_non_exhaustive()
    }
}

impl ServerCheck {
    /// `roots`: the authorities that may vouch for the server; `None`: nobody has to.
    pub fn new(roots: Option<Arc<TrustedRoots>>, provider: Arc<CryptoProvider>) -> ServerCheck {
        ServerCheck {
            trust: roots.map(|roots| Vouched::new(roots, provider.clone())),
            provider,
        }
    }
}

impl ServerCertVerifier for ServerCheck {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let judged = match &self.trust {
            Some(trust) => trust.judge(end_entity, intermediates, server_name, now),
            None => Ok(()),
        };
        match judged {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(mistrust) => {
                let other = CertificateError::Other(OtherError(Arc::new(mistrust)));
                Err(Error::InvalidCertificate(other))
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_one_label() {
        for (pattern, name, want) in [
            ("a.b", "A.b.", true),
            ("*.b", "a.b", true),
            ("*.b", "b", false),
            ("*.b", ".b", false),
            ("*.b", "c.a.b", false),
        ] {
            assert_eq!(covers(pattern, name), want, "{pattern} {name}");
        }
    }
}
