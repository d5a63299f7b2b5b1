//! The listener and its certificate.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use keelson_server::tls::ServingCertificates;
use keelson_server::tls::certs::CertifiedKeyPem;

use super::{OptionError, pem, values};

pub(super) const SECTION: &str = "Secure serving flags";

#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = SECTION)]
pub struct SecureServing {
    /// The address to listen on; 0.0.0.0 or :: for all.
    #[arg(long, value_name = "ip", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_parser = values::ip)]
    pub bind_address: IpAddr,

    /// The port to listen on. It can't be turned off with 0.
    #[arg(long, value_name = "int", default_value = "6443", value_parser = values::integer)]
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
}

/// Where the serving certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServingCertificate {
    /// Files that are there.
    Given { certificate: PathBuf, key: PathBuf },
    /// To be made, at these paths.
    Missing { certificate: PathBuf, key: PathBuf },
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
