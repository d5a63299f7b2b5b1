//! Open connections of either version of HTTP, as what sends requests on them.

use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::error::{self, Fault};

/// Bytes of an answer's head.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How long a connection of HTTP/2 is silent before it is asked whether it is there, and how long that may take; those
/// of Kubernetes' clients.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(15));

/// What is sent.
pub(super) type Sent = Request<Full<Bytes>>;

/// Sends requests on one connection.
pub(super) enum Sender {
    /// One at a time.
    Http1(http1::SendRequest<Full<Bytes>>),
    /// Many at once.
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// Why there is no answer.
pub(super) struct Failed {
    pub fault: Fault,
    /// The request, if nothing of it was sent.
    pub unsent: Option<Box<Sent>>,
}

impl Sender {
    /// Begins to speak on a connection. It ends with the last sender, or when the other side closes; its error is the
    /// request's too.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn http1<S>(stream: S) -> Result<Sender, Fault>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MAX_HEAD_BYTES);
        let made = builder.handshake(TokioIo::new(stream)).await;
        let (sender, connection) = made.map_err(|error| error::conversation(&error, Version::HTTP_11))?;
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Sender::Http1(sender))
    }

    /// The same where both sides agreed on HTTP/2.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn http2<S>(stream: S) -> Result<Sender, Fault>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX))
            .keep_alive_interval(PING.0)
            .keep_alive_timeout(PING.1)
            .keep_alive_while_idle(true);
        let made = builder.handshake(TokioIo::new(stream)).await;
        let (sender, connection) = made.map_err(|error| error::conversation(&error, Version::HTTP_2))?;
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Sender::Http2(sender))
    }

    /// Another one for the same connection, where several may send at once.
    pub fn shared(&self) -> Option<Sender> {
        match self {
            Sender::Http1(_) => None,
            Sender::Http2(sender) => Some(Sender::Http2(sender.clone())),
        }
    }

    pub fn is_closed(&self) -> bool {
        match self {
            Sender::Http1(sender) => sender.is_closed(),
            Sender::Http2(sender) => sender.is_closed(),
        }
    }

    /// Sends a request when its turn comes.
    pub async fn send(&mut self, request: Sent) -> Result<Response<Incoming>, Failed> {
        let (ready, version) = match self {
            Sender::Http1(sender) => (sender.ready().await, Version::HTTP_11),
            Sender::Http2(sender) => (sender.ready().await, Version::HTTP_2),
        };
        if let Err(error) = ready {
            // The other side closed it while it waited.
            return Err(Failed {
                fault: error::conversation(&error, version),
                unsent: Some(Box::new(request)),
            });
        }
        let sent = match self {
            Sender::Http1(sender) => sender.try_send_request(with_host(request)).await,
            Sender::Http2(sender) => sender.try_send_request(with_authority(request)).await,
        };
        sent.map_err(|mut failed| Failed {
            unsent: failed.take_message().map(Box::new),
            fault: error::conversation(failed.error(), version),
        })
    }
}

/// As HTTP/1.1 says where a request goes: a header beside the path.
fn with_host(mut request: Sent) -> Sent {
    let authority = request.uri().authority().map(Authority::as_str);
    if let Some(host) = authority.and_then(|text| HeaderValue::from_str(text).ok()) {
        let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        if let Ok(path) = path.parse() {
            *request.uri_mut() = path;
            request.headers_mut().insert(HOST, host);
        }
    }
    request
}

/// As HTTP/2 says it: within the address.
fn with_authority(mut request: Sent) -> Sent {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let Some(authority) = host.and_then(|host| host.parse::<Authority>().ok()) else {
        return request;
    };
    let mut parts = request.uri().clone().into_parts();
    (parts.scheme, parts.authority) = (Some(Scheme::HTTPS), Some(authority));
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
        request.headers_mut().remove(HOST);
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_fits_either_version() {
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.uri_mut() = "/a?b=c".parse().unwrap();
        request
            .headers_mut()
            .insert(HOST, HeaderValue::from_static("[::1]:8443"));
        let request = with_authority(request);
        assert_eq!(request.uri(), "https://[::1]:8443/a?b=c");
        assert!(!request.headers().contains_key(HOST));
        let request = with_host(with_authority(request));
        assert_eq!(request.uri(), "/a?b=c");
        assert_eq!(request.headers()[HOST], "[::1]:8443");
        assert_eq!(with_host(request).uri(), "/a?b=c");
    }
}
