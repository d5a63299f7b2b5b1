//! TLS on the calling side.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, Error, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::{Fault, innermost};
use super::server_certificate::{Mistrust, ServerCheck, system_roots};
use super::stream::Stream;
use crate::tls::certs::CertifiedKeyPem;

/// Who vouches for servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Roots {
    /// The authorities that the machine trusts.
    #[default]
    System,
    /// These alone, as PEM text.
    Pem(String),
}

/// What a client wants to see of a server, and shows to it.
#[derive(Clone, Debug, Default)]
pub struct ClientTls {
    pub roots: Roots,
    /// Take any certificate.
    pub insecure: bool,
    /// The name that the certificate has to be for, and that is asked for; `None`: the host of the address.
    pub server_name: Option<String>,
    /// The client's certificate.
    pub identity: Option<CertifiedKeyPem>,
}

/// Certificates, keys or names that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsConfigError {
    #[error("unable to load root certificates: unable to parse bytes as PEM block")]
    NoRoots,
    #[error("tls: failed to find any PEM data in certificate input")]
    NoCertificate,
    #[error("tls: failed to find any PEM data in key input")]
    NoKey,
    #[error("tls: {0}")]
    Identity(String),
    #[error("{0:?} is no name of a server")]
    ServerName(String),
    #[error("tls: {0}")]
    Other(String),
}

/// Makes connections secure.
pub(super) struct Connector {
    connector: TlsConnector,
    server_name: Option<ServerName<'static>>,
}

impl Connector {
    pub fn new(tls: &ClientTls) -> Result<Connector, TlsConfigError> {
        let other = |error: Error| TlsConfigError::Other(error.to_string());
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone());
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(other)?
            .dangerous();
        let roots = match tls.insecure {
            true => None,
            false => Some(roots(&tls.roots)?),
        };
        let builder = builder.with_custom_certificate_verifier(Arc::new(ServerCheck::new(roots, provider)));
        let mut config = match &tls.identity {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let (chain, key) = identity(pair)?;
                let made = builder.with_client_auth_cert(chain, key);
                made.map_err(|error| TlsConfigError::Identity(error.to_string()))?
            }
        };
        config.alpn_protocols = vec![crate::tls::ALPN_HTTP2.to_vec(), crate::tls::ALPN_HTTP1.to_vec()];
        let server_name = tls.server_name.as_deref().map(server_name).transpose();
        Ok(Connector {
            connector: TlsConnector::from(Arc::new(config)),
            server_name: server_name?,
        })
    }

    /// Shakes hands with the server, which has to be `host` unless another name was given.
    pub async fn connect<S: Stream>(&self, host: &str, stream: S) -> Result<TlsStream<S>, Fault> {
        let name = match &self.server_name {
            Some(name) => name.clone(),
            None => server_name(host).map_err(|_| Fault::Tls(format!("{host:?} is no name of a server")))?,
        };
        self.connector.connect(name, stream).await.map_err(|error| {
            if let Some(error) = innermost::<Error>(&error) {
                return Fault::Tls(fault(error));
            }
            match error.kind() {
                std::io::ErrorKind::UnexpectedEof => Fault::Closed,
                std::io::ErrorKind::ConnectionReset => Fault::Reset("read: connection reset by peer".to_owned()),
                _ => Fault::Reset(error.to_string()),
            }
        })
    }
}

fn server_name(name: &str) -> Result<ServerName<'static>, TlsConfigError> {
    ServerName::try_from(name.to_owned()).map_err(|_| TlsConfigError::ServerName(name.to_owned()))
}

/// The roots, and their certificates as they are.
fn roots(roots: &Roots) -> Result<Arc<TrustedRoots>, TlsConfigError> {
    match roots {
        Roots::System => Ok(system_roots()),
        Roots::Pem(text) => {
            let found = TrustedRoots::parse(text.as_bytes());
            match found.store.is_empty() {
                true => Err(TlsConfigError::NoRoots),
                false => Ok(Arc::new(found)),
            }
        }
    }
}

/// Authorities, and their certificates as they came.
pub(super) struct TrustedRoots {
    pub store: RootCertStore,
    pub certificates: Vec<CertificateDer<'static>>,
}

impl TrustedRoots {
    /// The certificates of a PEM text that can be read.
    pub fn parse(text: &[u8]) -> TrustedRoots {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(text).filter_map(Result::ok).collect();
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(certificates.iter().cloned());
        TrustedRoots { store, certificates }
    }
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn identity(pair: &CertifiedKeyPem) -> Result<Identity, TlsConfigError> {
    let chain = CertificateDer::pem_slice_iter(pair.certificate_pem.as_bytes());
    let chain: Vec<_> = chain.filter_map(Result::ok).collect();
    if chain.is_empty() {
        return Err(TlsConfigError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).map_err(|_| TlsConfigError::NoKey)?;
    Ok((chain, key))
}

/// What Go says about such a handshake.
pub(super) fn fault(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::Other(other)) => match other.0.downcast_ref::<Mistrust>() {
            Some(mistrust) => format!("tls: failed to verify certificate: {mistrust}"),
            None => format!("tls: failed to verify certificate: x509: {error}"),
        },
        Error::AlertReceived(alert) => format!("remote error: tls: {}", alert_text(*alert)),
        Error::InvalidMessage(_) => "http: server gave HTTP response to HTTPS client".to_owned(),
        other => format!("tls: {other}"),
    }
}

fn alert_text(alert: AlertDescription) -> String {
    let text = match alert {
        AlertDescription::UnexpectedMessage => "unexpected message",
        AlertDescription::HandshakeFailure => "handshake failure",
        AlertDescription::BadCertificate => "bad certificate",
        AlertDescription::UnsupportedCertificate => "unsupported certificate",
        AlertDescription::CertificateRevoked => "revoked certificate",
        AlertDescription::CertificateExpired => "expired certificate",
        AlertDescription::CertificateUnknown => "unknown certificate",
        AlertDescription::UnknownCA => "unknown certificate authority",
        AlertDescription::AccessDenied => "access denied",
        AlertDescription::ProtocolVersion => "protocol version not supported",
        AlertDescription::InternalError => "internal error",
        AlertDescription::UnrecognisedName => "unrecognized name",
        AlertDescription::CertificateRequired => "certificate required",
        AlertDescription::NoApplicationProtocol => "no application protocol",
        other => return format!("{other:?}"),
    };
    text.to_owned()
}
