//! Certificate generation: a certificate authority, and the serving and client certificates it signs.
//!
//! All keys are ECDSA P-256. Nothing here reads a clock: the caller passes a [`Validity`].
//!
//! ```
//! use keelson_net::tls::certs::{CertificateAuthority, Validity};
//! # fn main() -> Result<(), keelson_net::tls::TlsError> {
//! let now = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_800_000_000);
//! let ca = CertificateAuthority::create("kubernetes", Validity::years_from(now, 10))?;
//! let year = Validity::years_from(now, 1);
//! let serving = ca.issue_server("kube-apiserver", &["localhost", "kubernetes"], &["127.0.0.1".parse().unwrap()], year)?;
//! let admin = ca.issue_client("kubernetes-admin", Some("system:masters"), year)?;
//! assert!(serving.certificate_pem.starts_with("-----BEGIN CERTIFICATE-----"));
//! assert!(admin.key_pem.starts_with("-----BEGIN PRIVATE KEY-----"));
//! # Ok(()) }
//! ```

use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};

use super::{TlsError, files};

/// How far a certificate's beginning lies before its making, so that a client with a slow clock accepts it.
const CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);
/// A year in the sense of certificate lifetimes: 365 days.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// From when to when a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first moment.
    pub not_before: SystemTime,
    /// The last moment.
    pub not_after: SystemTime,
}

impl Validity {
    /// `years` × 365 days from `now`, beginning five minutes earlier.
    pub fn years_from(now: SystemTime, years: u32) -> Self {
        Validity {
            not_before: now - CLOCK_SKEW,
            not_after: now + YEAR * years,
        }
    }
}

/// A certificate and its key, as PEM text: what goes into files, kubeconfigs and
/// the serving state.
#[derive(Clone)]
pub struct CertifiedKeyPem {
    /// The certificate (`CERTIFICATE` block).
    pub certificate_pem: String,
    /// Its key (PKCS#8, `PRIVATE KEY` block).
    pub key_pem: String,
}

impl CertifiedKeyPem {
    /// Writes the key (mode 0600), then the certificate, each in one step.
    ///
    /// # Errors
    /// [`TlsError::File`].
    pub fn write(&self, certificate: &Path, key: &Path) -> Result<(), TlsError> {
        files::write_pair(
            (key, self.key_pem.as_bytes()),
            (certificate, self.certificate_pem.as_bytes()),
        )
    }

    /// Reads a pair written by [`write`](Self::write).
    ///
    /// # Errors
    /// [`TlsError::File`]; the content is not looked at.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        Ok(CertifiedKeyPem {
            certificate_pem: files::read_pem(certificate)?,
            key_pem: files::read_pem(key)?,
        })
    }
}

/// Keys must not reach a log.
impl std::fmt::Debug for CertifiedKeyPem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertifiedKeyPem")
            .field("certificate_pem", &self.certificate_pem)
            .finish_non_exhaustive()
    }
}

/// A key pair without a certificate: the one that signs service account tokens.
#[derive(Clone)]
pub struct KeyPem {
    /// The private key (PKCS#8, `PRIVATE KEY` block).
    pub private_pem: String,
    /// The public key (`PUBLIC KEY` block).
    pub public_pem: String,
}

impl KeyPem {
    /// Makes a new ECDSA P-256 key.
    ///
    /// # Errors
    /// [`TlsError::Certificate`] when the system gives no randomness.
    pub fn create() -> Result<Self, TlsError> {
        let key = new_key()?;
        Ok(KeyPem {
            private_pem: key.serialize_pem(),
            public_pem: key.public_key_pem(),
        })
    }
}

/// Keys must not reach a log.
impl std::fmt::Debug for KeyPem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyPem")
            .field("public_pem", &self.public_pem)
            .finish_non_exhaustive()
    }
}

/// A certificate authority that can sign.
pub struct CertificateAuthority {
    pem: CertifiedKeyPem,
    issuer: Issuer<'static, KeyPair>,
}

impl CertificateAuthority {
    /// Makes a new, self-signed authority.
    ///
    /// # Errors
    /// [`TlsError::Certificate`] when the system gives no randomness.
    pub fn create(common_name: &str, validity: Validity) -> Result<Self, TlsError> {
        let key = new_key()?;
        let mut params = subject(common_name, None, validity);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
            KeyUsagePurpose::KeyCertSign,
        ];
        let certificate = params.self_signed(&key)?;
        let pem = CertifiedKeyPem {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        };
        Ok(CertificateAuthority {
            pem,
            issuer: Issuer::new(params, key),
        })
    }

    /// Takes an authority back from its PEM text. The key must be PKCS#8, as those made here are.
    ///
    /// # Errors
    /// [`TlsError::Certificate`] when either text cannot be read.
    pub fn load(pem: CertifiedKeyPem) -> Result<Self, TlsError> {
        let key = KeyPair::from_pem(&pem.key_pem)?;
        let issuer = Issuer::from_ca_cert_pem(&pem.certificate_pem, key)?;
        Ok(CertificateAuthority { pem, issuer })
    }

    /// The authority's own certificate and key.
    pub fn pem(&self) -> &CertifiedKeyPem {
        &self.pem
    }

    /// Signs a serving certificate for these DNS names and addresses.
    ///
    /// # Errors
    /// [`TlsError::Name`] for a name that is no DNS name; [`TlsError::Certificate`] when signing fails.
    pub fn issue_server(
        &self,
        common_name: &str,
        dns_names: &[&str],
        addresses: &[IpAddr],
        validity: Validity,
    ) -> Result<CertifiedKeyPem, TlsError> {
        let mut params = subject(common_name, None, validity);
        for name in dns_names {
            let dns = (*name).try_into().map_err(|_| TlsError::Name((*name).to_owned()))?;
            params.subject_alt_names.push(SanType::DnsName(dns));
        }
        params
            .subject_alt_names
            .extend(addresses.iter().copied().map(SanType::IpAddress));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(params)
    }

    /// Signs a client certificate: the common name is the user, the organization its group.
    ///
    /// # Errors
    /// [`TlsError::Certificate`] when signing fails.
    pub fn issue_client(
        &self,
        common_name: &str,
        organization: Option<&str>,
        validity: Validity,
    ) -> Result<CertifiedKeyPem, TlsError> {
        let mut params = subject(common_name, organization, validity);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params)
    }

    fn issue(&self, mut params: CertificateParams) -> Result<CertifiedKeyPem, TlsError> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.use_authority_key_identifier_extension = true;
        let key = new_key()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(CertifiedKeyPem {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        })
    }
}

fn new_key() -> Result<KeyPair, TlsError> {
    Ok(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)
}

fn subject(common_name: &str, organization: Option<&str>, validity: Validity) -> CertificateParams {
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    let mut params = CertificateParams::default();
    params.distinguished_name = name;
    params.not_before = validity.not_before.into();
    params.not_after = validity.not_after.into();
    params
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use x509_parser::pem::parse_x509_pem;

    use super::*;

    fn year() -> Validity {
        Validity::years_from(UNIX_EPOCH + Duration::from_secs(1_800_000_000), 1)
    }

    #[test]
    fn a_loaded_authority_signs_what_the_first_one_vouches_for() {
        let made = CertificateAuthority::create("kubernetes", year()).unwrap();
        let loaded = CertificateAuthority::load(made.pem().clone()).unwrap();
        let leaf = loaded
            .issue_client("kubernetes-admin", Some("system:masters"), year())
            .unwrap();
        let (_, ca) = parse_x509_pem(made.pem().certificate_pem.as_bytes()).unwrap();
        let (_, leaf) = parse_x509_pem(leaf.certificate_pem.as_bytes()).unwrap();
        let (ca, leaf) = (ca.parse_x509().unwrap(), leaf.parse_x509().unwrap());
        leaf.verify_signature(Some(ca.public_key())).unwrap();
        assert_eq!(leaf.issuer(), ca.subject());
        assert_eq!(leaf.subject().to_string(), "O=system:masters, CN=kubernetes-admin");
        assert!(leaf.extended_key_usage().unwrap().unwrap().value.client_auth);
        assert!(!leaf.is_ca() && ca.is_ca());
    }

    #[test]
    fn a_serving_certificate_holds_its_names_addresses_and_times() {
        let ca = CertificateAuthority::create("kubernetes", year()).unwrap();
        let addresses: [IpAddr; 2] = ["10.96.0.1".parse().unwrap(), "::1".parse().unwrap()];
        let leaf = ca
            .issue_server("kube-apiserver", &["kubernetes.default.svc"], &addresses, year())
            .unwrap();
        let (_, pem) = parse_x509_pem(leaf.certificate_pem.as_bytes()).unwrap();
        let leaf = pem.parse_x509().unwrap();
        let names = leaf.subject_alternative_name().unwrap().unwrap().value;
        let names: Vec<String> = names.general_names.iter().map(ToString::to_string).collect();
        assert_eq!(names[0], "DNSName(kubernetes.default.svc)");
        assert_eq!(names.len(), 3);
        assert_eq!(leaf.validity().not_before.timestamp(), 1_800_000_000 - 300);
        assert_eq!(leaf.validity().not_after.timestamp(), 1_800_000_000 + 365 * 24 * 3600);
    }

    #[test]
    fn two_certificates_have_different_serial_numbers() {
        let ca = CertificateAuthority::create("kubernetes", year()).unwrap();
        let serial = |pem: CertifiedKeyPem| {
            let (_, pem) = parse_x509_pem(pem.certificate_pem.as_bytes()).unwrap();
            pem.parse_x509().unwrap().raw_serial().to_vec()
        };
        let one = serial(ca.issue_client("a", None, year()).unwrap());
        assert_ne!(one, serial(ca.issue_client("a", None, year()).unwrap()));
    }

    #[test]
    fn bad_names_and_bad_pem_are_errors_that_say_which() {
        let ca = CertificateAuthority::create("kubernetes", year()).unwrap();
        let error = ca.issue_server("x", &["müller"], &[], year()).unwrap_err();
        assert!(error.to_string().contains("müller"));
        let broken = CertifiedKeyPem {
            key_pem: "no key".into(),
            ..ca.pem().clone()
        };
        assert!(CertificateAuthority::load(broken).is_err());
    }

    #[test]
    fn debug_output_shows_no_key() {
        let ca = CertificateAuthority::create("kubernetes", year()).unwrap();
        assert!(!format!("{:?}", ca.pem()).contains("PRIVATE"));
        assert!(!format!("{:?}", KeyPem::create().unwrap()).contains("PRIVATE"));
    }
}
