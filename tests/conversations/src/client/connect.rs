//! Connections: TCP, TLS where the URL says so, HTTP/1.1.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, ConfigBuilder, client::WantsClientCert};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{certificate, trust};
use crate::fault::Fault;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub tls: bool,
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for Address {
    type Err = String;

    /// From a URL.
    fn from_str(url: &str) -> Result<Address, String> {
        let uri: Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
        let tls = uri.scheme_str() == Some("https");
        let host = uri.host().ok_or_else(|| format!("{url} names no host"))?.to_owned();
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Ok(Address { tls, host, port })
    }
}

/// How connections are made.
pub struct Connector {
    /// The authorities that the server's certificate is checked with; without it any is taken.
    authorities: Option<Arc<rustls::RootCertStore>>,
    /// The configuration without a certificate: its tickets make further handshakes short.
    usual: Arc<ClientConfig>,
}

impl Connector {
    /// With the authorities in a PEM file, or none.
    pub fn new(ca: Option<&Path>) -> Result<Connector, Fault> {
        let authorities = ca.map(trust::authorities).transpose()?.map(Arc::new);
        let usual = Arc::new(builder(authorities.clone())?.with_no_client_auth());
        Ok(Connector { authorities, usual })
    }

    /// Connects; with the certificate at this path (`.crt`, `.key`) if there is one.
    pub async fn connect(&self, to: &Address, certificate: Option<&Path>) -> Result<SendRequest<Full<Bytes>>, Fault> {
        let stream = TcpStream::connect((to.host.as_str(), to.port))
            .await
            .map_err(Fault::transport)?;
        stream.set_nodelay(true).map_err(Fault::transport)?;
        if !to.tls {
            return speak(stream).await;
        }
        let config = match certificate {
            None => self.usual.clone(),
            Some(path) => {
                let identity = Arc::new(certificate::identity(path)?);
                let builder = builder(self.authorities.clone())?;
                Arc::new(builder.with_client_cert_resolver(identity))
            }
        };
        let name = ServerName::try_from(to.host.clone()).map_err(Fault::unusable)?;
        let stream = TlsConnector::from(config).connect(name, stream).await;
        speak(stream.map_err(Fault::transport)?).await
    }
}

fn builder(
    authorities: Option<Arc<rustls::RootCertStore>>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Fault> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(Fault::unusable)?;
    Ok(match authorities {
        Some(authorities) => builder.with_root_certificates(authorities),
        None => {
            let anyone = Arc::new(trust::Anyone::new(&provider));
            builder.dangerous().with_custom_certificate_verifier(anyone)
        }
    })
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<SendRequest<Full<Bytes>>, Fault> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(Fault::transport)?;
    // How the connection ends is told to whoever waits for an answer on it.
    tokio::spawn(connection);
    Ok(sender)
}
