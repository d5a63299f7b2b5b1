//! A connection's beginning: TLS, what the client is, and which protocol it speaks.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use actix_http::Request;
use actix_http::body::MessageBody;
use actix_service::Service;
use rustls::pki_types::CertificateDer;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::accept::Accepted;
use super::conversation::Conversation;
use super::prefixed::Prefixed;
use super::{Connection, Goaway, Limits, ListenerConfig, Shutdown};
use crate::tls::TlsState;

/// The answer to plain HTTP on a TLS port, as Go's server gives it.
const HTTP_ON_TLS: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
/// What all connections of a listener share.
pub(super) struct Context {
    pub(super) limits: Limits,
    pub(super) shutdown: Shutdown,
    tls: Option<Arc<TlsState>>,
    pub(super) goaway: Option<Goaway>,
}

impl Context {
    pub(super) fn new(config: &ListenerConfig, shutdown: Shutdown) -> Self {
        Context {
            limits: config.limits.clone(),
            shutdown,
            tls: config.tls.clone(),
            goaway: config.goaway.clone(),
        }
    }
}

/// Serves one connection to its end. Errors of clients are theirs and only worth a debug line.
pub(super) async fn connection<S, B>(accepted: Accepted, service: Rc<S>, context: Arc<Context>)
where
    S: Service<Request> + 'static,
    S::Error: Into<actix_web::Error>,
    S::Response: Into<actix_http::Response<B>>,
    B: MessageBody + 'static,
{
    let peer = accepted.peer;
    if let Err(error) = greet(accepted, service, context).await {
        tracing::debug!(%peer, error, "connection ended");
    }
}

pub(super) type ServeError = Box<dyn std::error::Error>;

/// Finds out who is there and what they speak, within the handshake's time.
async fn greet<S, B>(accepted: Accepted, service: Rc<S>, context: Arc<Context>) -> Result<(), ServeError>
where
    S: Service<Request> + 'static,
    S::Error: Into<actix_web::Error>,
    S::Response: Into<actix_http::Response<B>>,
    B: MessageBody + 'static,
{
    let Accepted {
        stream,
        peer,
        admission,
    } = accepted;
    let stream = TcpStream::from_std(stream)?;
    let mut connection = Connection::plain(peer, stream.local_addr()?);
    let limit = context.limits.handshake_timeout;
    let admission = Arc::new(admission);
    match &context.tls {
        None => {
            let (stream, http2) = timeout(limit, Prefixed::detect_http2(stream)).await??;
            connection.http2 = http2;
            Conversation::new(service, connection, admission, context)
                .converse(stream)
                .await
        }
        Some(tls) => {
            let address = connection.local.ip();
            let Some(stream) = timeout(limit, handshake(stream, address, tls)).await?? else {
                return Ok(());
            };
            connection.learn(stream.get_ref().1);
            Conversation::new(service, connection, admission, context)
                .converse(stream)
                .await
        }
    }
}

type TlsStream = tokio_rustls::server::TlsStream<TcpStream>;

/// `None`: the client spoke plain HTTP and was told.
async fn handshake(mut stream: TcpStream, address: IpAddr, tls: &TlsState) -> io::Result<Option<TlsStream>> {
    let mut first = [0; 5];
    let seen = stream.peek(&mut first).await?;
    if looks_like_http(&first[..seen]) {
        stream.write_all(HTTP_ON_TLS).await?;
        stream.shutdown().await?;
        return Ok(None);
    }
    tls.acceptor(address).accept(stream).await.map(Some)
}

fn looks_like_http(first: &[u8]) -> bool {
    matches!(first, b"GET /" | b"HEAD " | b"POST " | b"PUT /" | b"OPTIO")
}

impl Connection {
    fn plain(peer: SocketAddr, local: SocketAddr) -> Self {
        Connection {
            peer,
            local,
            tls: false,
            http2: false,
            server_name: None,
            certificates: Vec::new(),
            memory: Default::default(),
        }
    }

    fn learn(&mut self, tls: &rustls::ServerConnection) {
        self.tls = true;
        self.http2 = tls.alpn_protocol() == Some(crate::tls::ALPN_HTTP2);
        self.server_name = tls.server_name().map(str::to_owned);
        self.certificates = tls
            .peer_certificates()
            .unwrap_or_default()
            .iter()
            .cloned()
            .map(CertificateDer::into_owned)
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_told_from_tls_by_its_first_bytes() {
        for (first, expected) in [
            (b"GET /".as_slice(), true),
            (b"POST ", true),
            (b"\x16\x03\x01\x02\x00", false),
            (b"GET", false),
            (b"", false),
        ] {
            assert_eq!(looks_like_http(first), expected, "{first:?}");
        }
    }
}
