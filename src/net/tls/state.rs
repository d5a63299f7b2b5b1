//! The TLS state of a listener: certificates that can be replaced while it runs, and its settings.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ProtocolVersion, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};
use tokio_rustls::TlsAcceptor;

use super::certs::CertifiedKeyPem;
use super::cipher_suites::CipherSuite;
use super::verifier::AnyClientCertificate;
use super::{ALPN_HTTP1, ALPN_HTTP2, CLIENT_SIGNATURES, TlsError, names};

/// Session tickets sent after a handshake. Most clients of an API server keep their connections and resume nothing.
const TICKETS: usize = 1;

/// The lowest TLS version accepted. Versions below 1.2 do not exist here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MinVersion {
    /// TLS 1.2 (`VersionTLS12`).
    #[default]
    Tls12,
    /// TLS 1.3 (`VersionTLS13`).
    Tls13,
}

/// TLS settings that stay for the listener's life.
#[derive(Debug, Clone)]
pub struct TlsSettings {
    /// `--tls-min-version`.
    pub min_version: MinVersion,
    /// Cipher suites of TLS 1.2 (`--tls-cipher-suites`); empty: all that are safe. Those of TLS 1.3 can't be chosen, as
    /// in Go. Where none of these is a suite that this server has, it speaks TLS 1.3 alone.
    pub cipher_suites: Vec<CipherSuite>,
    /// Offer HTTP/2 (not `--disable-http2-serving`).
    pub http2: bool,
}

impl Default for TlsSettings {
    fn default() -> Self {
        TlsSettings {
            min_version: MinVersion::default(),
            cipher_suites: Vec::new(),
            http2: true,
        }
    }
}

/// The certificates served: one for everybody, and others by the name the client asks for.
#[derive(Debug, Clone)]
pub struct ServingCertificates {
    default: Arc<CertifiedKey>,
    named: BTreeMap<String, Arc<CertifiedKey>>,
}

impl ServingCertificates {
    /// Serves this certificate to all. The PEM text may hold a chain, the leaf first; the key may be PKCS#8, PKCS#1 or
    /// SEC1.
    ///
    /// # Errors
    /// [`TlsError`] when the text cannot be read, or key and certificate do not belong together.
    pub fn new(pair: &CertifiedKeyPem) -> Result<Self, TlsError> {
        Ok(ServingCertificates {
            default: Arc::new(certified_key(pair)?),
            named: BTreeMap::new(),
        })
    }

    /// Serves `pair` to clients that ask for one of `names`: DNS names, or `*.` and a domain for any one label in
    /// front of it, or addresses for clients that reach the server there and name no host. A name given before keeps
    /// its certificate, and an exact name wins over a wildcard.
    ///
    /// # Errors
    /// As [`ServingCertificates::new`].
    pub fn with_named(mut self, names: &[&str], pair: &CertifiedKeyPem) -> Result<Self, TlsError> {
        let key = Arc::new(certified_key(pair)?);
        for name in names {
            self.named
                .entry(name.to_ascii_lowercase())
                .or_insert_with(|| Arc::clone(&key));
        }
        Ok(self)
    }

    /// Serves `pair` to clients that ask for one of the names it is for.
    ///
    /// # Errors
    /// As [`ServingCertificates::new`].
    pub fn with_own_names(self, pair: &CertifiedKeyPem) -> Result<Self, TlsError> {
        let chain = certificates(&pair.certificate_pem)?;
        let names = chain
            .first()
            .map(|leaf| names::of_certificate(leaf))
            .unwrap_or_default();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.with_named(&names, pair)
    }

    fn for_name(&self, name: Option<&str>) -> &Arc<CertifiedKey> {
        let named = name.filter(|_| !self.named.is_empty()).and_then(|name| {
            let name = name.to_ascii_lowercase();
            let wildcard = name.split_once('.').map(|(_, domain)| format!("*.{domain}"));
            self.named.get(&name).or_else(|| self.named.get(&wildcard?))
        });
        named.unwrap_or(&self.default)
    }
}

fn certified_key(pair: &CertifiedKeyPem) -> Result<CertifiedKey, TlsError> {
    let chain = certificates(&pair.certificate_pem)?;
    let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => TlsError::NoPrivateKey,
        error => TlsError::Pem(error.to_string()),
    })?;
    let certified = CertifiedKey::new(chain, ring::sign::any_supported_type(&key)?);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(certified),
        Err(error) => Err(error.into()),
    }
}

/// Reads the certificates of PEM text, in order: a chain, or a bundle of authorities.
///
/// # Errors
/// [`TlsError::NoCertificate`] when there is none, [`TlsError::Pem`] when the text is broken.
pub fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(TlsError::NoCertificate),
        Ok(chain) => Ok(chain),
        Err(error) => Err(TlsError::Pem(error.to_string())),
    }
}

/// The TLS side of a listener. Client certificates are asked for and never demanded; any is accepted once the client
/// proved that it holds the key, and the authenticator judges it.
pub struct TlsState {
    config: Arc<ServerConfig>,
    certificates: Arc<Resolver>,
}

impl std::fmt::Debug for TlsState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsState").finish_non_exhaustive()
    }
}

impl TlsState {
    /// Serves with these certificates and settings.
    ///
    /// # Errors
    /// [`TlsError::Pair`] when the system gives no randomness for session tickets.
    pub fn new(certificates: ServingCertificates, settings: &TlsSettings) -> Result<Self, TlsError> {
        let certificates = Arc::new(Resolver(ArcSwap::from_pointee(certificates)));
        let config = server_config(Arc::clone(&certificates), settings)?;
        Ok(TlsState {
            config: Arc::new(config),
            certificates,
        })
    }

    /// Serves other certificates from the next handshake on; connections that exist are not touched.
    pub fn replace(&self, certificates: ServingCertificates) {
        self.certificates.0.store(Arc::new(certificates));
    }

    /// Whether exactly these certificates are served now.
    pub(super) fn serves(&self, certificates: &ServingCertificates) -> bool {
        let now = self.certificates.0.load();
        let same = |one: &CertifiedKey, other: &CertifiedKey| one.cert == other.cert;
        same(&now.default, &certificates.default)
            && now.named.len() == certificates.named.len()
            && now
                .named
                .iter()
                .zip(&certificates.named)
                .all(|(one, other)| one.0 == other.0 && same(one.1, other.1))
    }

    /// What takes connections that reach this server at `address`, whose certificate clients get who name no host.
    pub(crate) fn acceptor(&self, address: IpAddr) -> TlsAcceptor {
        let address = address.to_canonical().to_string();
        if !self.certificates.0.load().named.contains_key(&address) {
            return TlsAcceptor::from(Arc::clone(&self.config));
        }
        let mut config = ServerConfig::clone(&self.config);
        let certificates = Arc::clone(&self.certificates);
        config.cert_resolver = Arc::new(ResolverAt { certificates, address });
        TlsAcceptor::from(Arc::new(config))
    }
}

fn server_config(certificates: Arc<Resolver>, settings: &TlsSettings) -> Result<ServerConfig, TlsError> {
    let mut provider = ring::default_provider();
    let chosen = &settings.cipher_suites;
    provider.cipher_suites.retain(|suite| {
        let old = suite.version().version == ProtocolVersion::TLSv1_2;
        !old || chosen.is_empty() || chosen.iter().any(|c| c.is(suite.suite()))
    });
    let has_old = |suite: &SupportedCipherSuite| suite.version().version == ProtocolVersion::TLSv1_2;
    let speaks_old = settings.min_version == MinVersion::Tls12 && provider.cipher_suites.iter().any(has_old);
    let versions: &[&SupportedProtocolVersion] = match speaks_old {
        true => &[&rustls::version::TLS13, &rustls::version::TLS12],
        false => &[&rustls::version::TLS13],
    };
    let provider = Arc::new(provider);
    let verifier = AnyClientCertificate::new(CLIENT_SIGNATURES);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_cert_resolver(certificates);
    config.alpn_protocols = if settings.http2 {
        vec![ALPN_HTTP2.to_vec(), ALPN_HTTP1.to_vec()]
    } else {
        vec![ALPN_HTTP1.to_vec()]
    };
    // Tickets hold the session encrypted, so nothing is kept here for clients that never return.
    config.ticketer = ring::Ticketer::new()?;
    config.send_tls13_tickets = TICKETS;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

#[derive(Debug)]
struct Resolver(ArcSwap<ServingCertificates>);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(self.0.load().for_name(hello.server_name())))
    }
}

/// A [`Resolver`] for clients that reached an address that has a certificate of its own.
#[derive(Debug)]
struct ResolverAt {
    certificates: Arc<Resolver>,
    address: String,
}

impl ResolvesServerCert for ResolverAt {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().unwrap_or(&self.address);
        Some(Arc::clone(self.certificates.0.load().for_name(Some(name))))
    }
}

#[cfg(test)]
mod tests;
