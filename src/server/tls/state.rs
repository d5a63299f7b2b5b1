//! What the TLS side of a listener serves with: certificates that can be replaced while it runs, and its settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, SupportedProtocolVersion};
use tokio_rustls::TlsAcceptor;

use super::certs::CertifiedKeyPem;
use super::verifier::AnyClientCertificate;
use super::{ALPN_HTTP1, ALPN_HTTP2, TlsError};

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
    /// Offer HTTP/2 (not `--disable-http2-serving`).
    pub http2: bool,
}

impl Default for TlsSettings {
    fn default() -> Self {
        TlsSettings {
            min_version: MinVersion::default(),
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
    /// front of it. A name given before keeps its certificate, and an exact name wins over a wildcard.
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
        let provider = Arc::new(ring::default_provider());
        let config = server_config(provider, Arc::clone(&certificates), settings)?;
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

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

fn server_config(
    provider: Arc<CryptoProvider>,
    certificates: Arc<Resolver>,
    settings: &TlsSettings,
) -> Result<ServerConfig, TlsError> {
    let versions: &[&SupportedProtocolVersion] = match settings.min_version {
        MinVersion::Tls12 => &[&rustls::version::TLS13, &rustls::version::TLS12],
        MinVersion::Tls13 => &[&rustls::version::TLS13],
    };
    let verifier = AnyClientCertificate::new(provider.signature_verification_algorithms);
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

#[cfg(test)]
mod tests;
