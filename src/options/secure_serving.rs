//! The listener and its certificate.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use keelson_net::tls::certs::CertifiedKeyPem;
use keelson_net::tls::{CipherSuite, MinVersion, ServingCertificates, TlsSettings};

use super::values::{self, ValueError};
use super::{OptionError, pem};

pub(super) const SECTION: &str = "Secure serving flags";

/// The port where none is given.
pub(super) const PORT: u16 = 6443;

#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = SECTION)]
pub struct SecureServing {
    /// The address to listen on; 0.0.0.0 or :: for all.
    #[arg(long, value_name = "ip", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_parser = values::ip)]
    pub bind_address: IpAddr,

    /// The port to listen on. It can't be turned off with 0.
    #[arg(long, value_name = "int", default_value_t = i64::from(PORT), value_parser = values::integer)]
    pub secure_port: i64,

    /// The folder of apiserver.crt and apiserver.key, used if they are there and made if not. Ignored with
    /// --tls-cert-file. Default: pki in the data folder.
    #[arg(long, value_name = "string")]
    pub cert_dir: Option<PathBuf>,

    /// A PEM file of the serving certificate, followed by those of the authorities above it.
    #[arg(long, value_name = "string")]
    pub tls_cert_file: Option<PathBuf>,

    /// A PEM file of that certificate's key.
    #[arg(long, value_name = "string")]
    pub tls_private_key_file: Option<PathBuf>,

    /// Cipher suites of TLS 1.2, with commas between, by their names in Go; those of TLS 1.3 can't be chosen. Default:
    /// all that are safe.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub tls_cipher_suites: Vec<String>,

    /// The lowest version of TLS: VersionTLS12 or VersionTLS13. VersionTLS10 and VersionTLS11 are taken, but this
    /// server speaks nothing below 1.2. Default: VersionTLS12.
    #[arg(long, value_name = "string")]
    pub tls_min_version: Option<String>,

    /// PEM files of a certificate and its key, with a comma between, for clients that ask for certain names: those
    /// after a colon, with commas between (app.crt,app.key:app.example.com,*.app.example.com), or else those that the
    /// certificate is for. May be given several times.
    #[arg(long, value_name = "namedCertKey", value_parser = named)]
    pub tls_sni_cert_key: Vec<NamedCertificate>,

    /// How many requests a client may have open on one HTTP/2 connection. 0: 100.
    #[arg(long, value_name = "int", default_value = "0", value_parser = values::integer)]
    pub http2_max_streams_per_connection: i64,

    /// Speak HTTP/1.1 only.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", value_parser = values::boolean)]
    pub disable_http2_serving: bool,
}

/// A certificate that clients get who ask for certain names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCertificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Names, `*.` and a domain, addresses; none: those that the certificate is for.
    pub names: Vec<String>,
}

/// Reads `certificate,key:name,name`.
fn named(text: &str) -> Result<NamedCertificate, ValueError> {
    let (files, names) = match text.split_once(':') {
        Some((files, names)) => (files, names.split(',').map(|name| name.trim().to_owned()).collect()),
        None => (text, Vec::new()),
    };
    let paths: Vec<&str> = files.split(',').map(str::trim).collect();
    let [certificate, key] = paths.as_slice() else {
        return Err(ValueError::CertificateAndKey);
    };
    Ok(NamedCertificate {
        certificate: certificate.into(),
        key: key.into(),
        names,
    })
}

/// Where the serving certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServingCertificate {
    /// Files that are there.
    Given { certificate: PathBuf, key: PathBuf },
    /// To be made, at these paths.
    Missing { certificate: PathBuf, key: PathBuf },
}

impl ServingCertificate {
    /// The files of the certificate and of its key.
    pub fn files(&self) -> (&Path, &Path) {
        match self {
            ServingCertificate::Given { certificate, key } | ServingCertificate::Missing { certificate, key } => {
                (certificate, key)
            }
        }
    }
}

impl SecureServing {
    /// Where to listen.
    pub(super) fn address(&self) -> Result<SocketAddr, OptionError> {
        match u16::try_from(self.secure_port) {
            Ok(port) if port > 0 => Ok(SocketAddr::new(self.bind_address, port)),
            _ => Err(OptionError::flag(
                "--secure-port",
                format!(
                    "{} must be between 1 and 65535, inclusive. It cannot be turned off with 0",
                    self.secure_port
                ),
            )),
        }
    }

    /// The certificate's files, checked where they exist; `pki` is the default of --cert-dir.
    pub(super) fn certificate(&self, pki: &Path) -> Result<ServingCertificate, OptionError> {
        match (&self.tls_cert_file, &self.tls_private_key_file) {
            (Some(certificate), Some(key)) => {
                pem::check("--tls-cert-file", certificate, false)?;
                pem::check("--tls-private-key-file", key, true)?;
                Ok(ServingCertificate::Given {
                    certificate: certificate.clone(),
                    key: key.clone(),
                })
            }
            (Some(_), None) => Err(OptionError::flag("--tls-cert-file", "needs --tls-private-key-file")),
            (None, Some(_)) => Err(OptionError::flag("--tls-private-key-file", "needs --tls-cert-file")),
            (None, None) => self.in_folder(pki),
        }
    }

    /// The certificates for certain names, their files checked.
    pub(super) fn named(&self) -> Result<Vec<NamedCertificate>, OptionError> {
        const FLAG: &str = "--tls-sni-cert-key";
        for named in &self.tls_sni_cert_key {
            check_pair(FLAG, FLAG, &named.certificate, &named.key)?;
        }
        Ok(self.tls_sni_cert_key.clone())
    }

    /// Versions, cipher suites and protocols.
    pub(super) fn tls(&self, warnings: &mut Vec<String>) -> Result<TlsSettings, OptionError> {
        let min_version = match self.tls_min_version.as_deref() {
            None | Some("" | "VersionTLS12") => MinVersion::Tls12,
            Some("VersionTLS13") => MinVersion::Tls13,
            Some(old @ ("VersionTLS10" | "VersionTLS11")) => {
                warnings.push(format!("--tls-min-version={old}: nothing below TLS 1.2 is spoken"));
                MinVersion::Tls12
            }
            Some(other) => {
                let reason = format!("unknown tls version {other:?}");
                return Err(OptionError::flag("--tls-min-version", reason));
            }
        };
        Ok(TlsSettings {
            min_version,
            cipher_suites: self.cipher_suites(warnings)?,
            http2: !self.disable_http2_serving,
        })
    }

    fn cipher_suites(&self, warnings: &mut Vec<String>) -> Result<Vec<CipherSuite>, OptionError> {
        const FLAG: &str = "--tls-cipher-suites";
        let mut suites = Vec::new();
        for name in self.tls_cipher_suites.iter().filter(|name| !name.is_empty()) {
            let suite = CipherSuite::named(name).ok_or_else(|| {
                OptionError::flag(FLAG, format!("Cipher suite {name} not supported or doesn't exist"))
            })?;
            if !suite.is_available() {
                warnings.push(format!("{FLAG}: {name} is not spoken here"));
            }
            suites.push(suite);
        }
        Ok(suites)
    }

    /// The limit of streams per HTTP/2 connection; `None`: the default.
    pub(super) fn max_streams(&self) -> Result<Option<u32>, OptionError> {
        match u32::try_from(self.http2_max_streams_per_connection) {
            Ok(0) => Ok(None),
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(OptionError::flag(
                "--http2-max-streams-per-connection",
                "can not be negative value",
            )),
        }
    }

    fn in_folder(&self, pki: &Path) -> Result<ServingCertificate, OptionError> {
        let folder = self
            .cert_dir
            .as_deref()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(pki);
        if folder.exists() && !folder.is_dir() {
            return Err(OptionError::file("--cert-dir", folder, "is not a folder"));
        }
        let (certificate, key) = (folder.join("apiserver.crt"), folder.join("apiserver.key"));
        match (certificate.exists(), key.exists()) {
            (true, true) => {
                check_pair("--cert-dir", "--cert-dir", &certificate, &key)?;
                Ok(ServingCertificate::Given { certificate, key })
            }
            (false, false) => Ok(ServingCertificate::Missing { certificate, key }),
            (true, false) => Err(OptionError::file(
                "--cert-dir",
                &key,
                "is missing, although apiserver.crt is there",
            )),
            (false, true) => Err(OptionError::file(
                "--cert-dir",
                &certificate,
                "is missing, although apiserver.key is there",
            )),
        }
    }
}

/// Both can be read, and the key is that of the certificate.
fn check_pair(
    certificate_flag: &'static str,
    key_flag: &'static str,
    certificate: &Path,
    key: &Path,
) -> Result<(), OptionError> {
    let pair = CertifiedKeyPem {
        certificate_pem: pem::check(certificate_flag, certificate, false)?,
        key_pem: pem::check(key_flag, key, true)?,
    };
    ServingCertificates::new(&pair)
        .map(|_| ())
        .map_err(|error| OptionError::file(certificate_flag, certificate, error))
}
