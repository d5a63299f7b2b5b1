//! Makes what a server needs and nobody gave: an authority, a serving certificate, an admin's certificate with a
//! kubeconfig, and the key of service account tokens. What is there already is kept.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use keelson_net::tls::certs::{CertificateAuthority, CertifiedKeyPem, KeyPem, Validity};
use keelson_net::tls::{TlsError, files};

use super::kubeconfig::Kubeconfig;
use super::{OptionError, ServingCertificate, Settings, secure_serving};

/// Lifetime of the authority and of the serving certificate, which are made once, in years.
const SERVER_YEARS: u32 = 10;
/// Lifetime of the admin's certificate, which is made at every start, in years.
const ADMIN_YEARS: u32 = 1;

/// The flag of the folder that everything is made in, unless another one names a place.
const DATA_DIR: &str = "--data-dir";

/// The names that a serving certificate holds, as those of kube-apiserver do.
const NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// What the server serves with.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub serving: CertifiedKeyPem,
    /// PEM text of the authority of client certificates.
    pub client_ca_pem: String,
    /// The file of the key that signs service account tokens.
    pub signing_key_file: PathBuf,
    /// The admin's kubeconfig, if one was written.
    pub kubeconfig: Option<PathBuf>,
}

/// Makes what is missing.
///
/// # Errors
/// A file or folder that can't be read or written; its path is in the message.
pub fn provision(settings: &Settings, now: SystemTime) -> Result<Credentials, OptionError> {
    let pki = settings.data_dir.join("pki");
    files::create_private_folder(&pki).map_err(|error| folder_error(&pki, error))?;
    let mut authority = Authority {
        folder: &pki,
        now,
        loaded: None,
    };
    let serving = serving(settings, &mut authority)?;
    let client_ca_pem = match &settings.authentication.client_ca_pem {
        Some(given) => given.clone(),
        None => authority.get()?.pem().certificate_pem.clone(),
    };
    let kubeconfig = match &settings.kubeconfig {
        Some(path) => Some(admin(settings, &mut authority, &serving, path)?),
        None => None,
    };
    let signing_key_file = match &settings.authentication.service_accounts.signing_key_file {
        Some(given) => given.clone(),
        None => signing_key(&pki)?,
    };
    Ok(Credentials {
        serving,
        client_ca_pem,
        signing_key_file,
        kubeconfig,
    })
}

/// The server's own authority, made or read when it is first needed.
struct Authority<'a> {
    folder: &'a Path,
    now: SystemTime,
    loaded: Option<CertificateAuthority>,
}

impl Authority<'_> {
    fn get(&mut self) -> Result<&CertificateAuthority, OptionError> {
        let authority = match self.loaded.take() {
            Some(authority) => authority,
            None => self.load_or_make()?,
        };
        Ok(self.loaded.insert(authority))
    }

    fn load_or_make(&self) -> Result<CertificateAuthority, OptionError> {
        let (certificate, key) = (self.folder.join("ca.crt"), self.folder.join("ca.key"));
        if certificate.exists() {
            let pem = CertifiedKeyPem::read(&certificate, &key).map_err(plain)?;
            return CertificateAuthority::load(pem).map_err(|error| OptionError::file(DATA_DIR, &certificate, error));
        }
        let validity = Validity::years_from(self.now, SERVER_YEARS);
        let made = CertificateAuthority::create("kubernetes", validity).map_err(plain)?;
        made.pem().write(&certificate, &key).map_err(plain)?;
        Ok(made)
    }
}

fn serving(settings: &Settings, authority: &mut Authority<'_>) -> Result<CertifiedKeyPem, OptionError> {
    match &settings.serving.certificate {
        ServingCertificate::Given { certificate, key } => CertifiedKeyPem::read(certificate, key).map_err(plain),
        ServingCertificate::Missing { certificate, key } => {
            let folder = certificate.parent().unwrap_or(authority.folder);
            files::create_private_folder(folder).map_err(|error| folder_error(folder, error))?;
            let validity = Validity::years_from(authority.now, SERVER_YEARS);
            let made = authority
                .get()?
                .issue_server("kube-apiserver", &NAMES, &addresses(settings), validity)
                .map_err(plain)?;
            made.write(certificate, key).map_err(plain)?;
            Ok(made)
        }
    }
}

/// Loopback, the address listened on, and the first of each service range, which the service `kubernetes` has.
fn addresses(settings: &Settings) -> Vec<IpAddr> {
    let mut addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    if !settings.serving.address.ip().is_unspecified() && !settings.serving.address.ip().is_loopback() {
        addresses.push(settings.serving.address.ip());
    }
    addresses.extend(settings.kubernetes.service_ranges.iter().map(|range| match range.base {
        IpAddr::V4(base) => IpAddr::V4(u32::from(base).saturating_add(1).into()),
        IpAddr::V6(base) => IpAddr::V6(u128::from(base).saturating_add(1).into()),
    }));
    addresses
}

/// Signs a certificate of the admin and writes the kubeconfig around it. Both are made anew at every start: they are
/// cheap, and so neither expires or points to an old port.
fn admin(
    settings: &Settings,
    authority: &mut Authority<'_>,
    serving: &CertifiedKeyPem,
    path: &Path,
) -> Result<PathBuf, OptionError> {
    let validity = Validity::years_from(authority.now, ADMIN_YEARS);
    let own = authority.get()?;
    let client = own
        .issue_client("kubernetes-admin", Some("system:masters"), validity)
        .map_err(plain)?;
    // A certificate that was given is trusted as it is: its authority is not known here.
    let authority_pem = format!("{}{}", own.pem().certificate_pem, serving.certificate_pem);
    let server_name = server_name(settings, &serving.certificate_pem);
    let kubeconfig = Kubeconfig {
        name: &context(settings),
        address: settings.serving.address,
        authority_pem: &authority_pem,
        server_name: server_name.as_deref(),
        client_certificate_pem: &client.certificate_pem,
        client_key_pem: &client.key_pem,
    };
    if let Some(folder) = path.parent() {
        files::create_private_folder(folder).map_err(|error| folder_error(folder, error))?;
    }
    match files::write_private(path, kubeconfig.render().as_bytes()) {
        // A full disk does not keep a server from its start: objects can be deleted then. The old file is right unless
        // flags have changed.
        Err(error) if is_full(&error) && path.exists() => {
            tracing::warn!(%error, "the admin's kubeconfig stays as it was");
        }
        written => written.map_err(plain)?,
    }
    Ok(path.to_owned())
}

fn is_full(error: &TlsError) -> bool {
    let TlsError::File { source, .. } = error else {
        return false;
    };
    matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// The name of the context: with the port, unless it is the usual one, so that kubeconfigs of several servers can be
/// used together.
fn context(settings: &Settings) -> String {
    match settings.serving.address.port() {
        secure_serving::PORT => settings.program.clone(),
        other => format!("{}-{other}", settings.program),
    }
}

/// The name to expect in a certificate that doesn't hold the address in the kubeconfig.
fn server_name(settings: &Settings, certificate_pem: &str) -> Option<String> {
    use x509_parser::extensions::GeneralName;
    let (_, pem) = x509_parser::pem::parse_x509_pem(certificate_pem.as_bytes()).ok()?;
    let certificate = pem.parse_x509().ok()?;
    let names = &certificate.subject_alternative_name().ok()??.value.general_names;
    let address = match settings.serving.address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.octets().to_vec(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.octets().to_vec(),
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    if names
        .iter()
        .any(|name| matches!(name, GeneralName::IPAddress(bytes) if *bytes == address))
    {
        return None;
    }
    names.iter().find_map(|name| match name {
        GeneralName::DNSName(name) if !name.contains('*') => Some((*name).to_owned()),
        _ => None,
    })
}

fn signing_key(pki: &Path) -> Result<PathBuf, OptionError> {
    let (private, public) = (pki.join("sa.key"), pki.join("sa.pub"));
    if !private.exists() {
        let key = KeyPem::create().map_err(plain)?;
        files::write_public(&public, key.public_pem.as_bytes()).map_err(plain)?;
        files::write_private(&private, key.private_pem.as_bytes()).map_err(plain)?;
    }
    Ok(private)
}

/// The message names the file already.
fn plain(error: TlsError) -> OptionError {
    match error {
        TlsError::File { path, source } => OptionError::file(DATA_DIR, &path, source),
        other => OptionError::CommandLine(other.to_string()),
    }
}

fn folder_error(folder: &Path, error: TlsError) -> OptionError {
    match error {
        TlsError::File { source, .. } => OptionError::file(DATA_DIR, folder, source),
        other => OptionError::file(DATA_DIR, folder, other),
    }
}
