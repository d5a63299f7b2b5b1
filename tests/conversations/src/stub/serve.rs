//! Connections of the stub: TLS, HTTP/1.1, one task each.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::sign::SingleCertAndKey;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::State;
use super::reply::{Content, Written, written};
use crate::fault::Fault;

/// A fixed port may still be held by the stub before this one, for so long.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// Accepts connections until it is dropped.
pub struct Listening {
    pub port: u16,
    accepting: tokio::task::JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Listens on a port of the loopback address (0: a free one) and serves.
pub async fn listen(port: u16, identity: SingleCertAndKey, state: Arc<State>) -> Result<Listening, Fault> {
    let listener = bound(port).await;
    let listener = listener.map_err(|error| Fault::unusable(format!("stub on port {port}: {error}")))?;
    let port = listener.local_addr().map_err(Fault::unusable)?.port();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(Fault::unusable)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(identity));
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let accepting = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, acceptor.clone(), state.clone()));
        }
    });
    Ok(Listening { port, accepting })
}

async fn bound(port: u16) -> std::io::Result<TcpListener> {
    let begin = Instant::now();
    loop {
        match TcpListener::bind(("127.0.0.1", port)).await {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && begin.elapsed() < PATIENCE => {
                tokio::time::sleep(PAUSE).await;
            }
            bound => return bound,
        }
    }
}

/// Clients go away when they like.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, state: Arc<State>) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let service = service_fn(|request| answer(request, state.clone()));
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

async fn answer(request: Request<Incoming>, state: Arc<State>) -> Result<Response<Body>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = head.uri.path().to_owned();
    let asked = json!({
        "method": head.method.as_str(),
        "path": head.uri.path_and_query().map_or(path.as_str(), |path| path.as_str()),
        "body": body,
        "headers": headers(&head.headers),
    });
    state.requests().entry(path.clone()).or_default().push(asked);
    let answers = state.answers().get(&path).cloned();
    let written = written(answers, head.method.as_str(), &body);
    tokio::time::sleep(written.delay).await;
    Ok(response(written))
}

fn headers(headers: &http::HeaderMap) -> Value {
    let joined = headers.keys().map(|name| {
        let values = headers.get_all(name).iter();
        let values: Vec<_> = values
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect();
        (name.as_str().to_owned(), values.join(", ").into())
    });
    Value::Object(joined.collect())
}

fn response(written: Written) -> Response<Body> {
    let body = match written.content {
        Content::Whole(text) => Full::new(Bytes::from(text)).boxed_unsync(),
        Content::Lines(lines, pause) => lines_one_by_one(lines, pause),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(written.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in written.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// Each line, and a pause behind it.
fn lines_one_by_one(lines: Vec<String>, pause: Duration) -> Body {
    let lines = stream::iter(lines.into_iter().enumerate()).then(move |(index, line)| async move {
        if index > 0 {
            tokio::time::sleep(pause).await;
        }
        Ok(Frame::data(Bytes::from(line + "\n")))
    });
    StreamBody::new(lines).boxed_unsync()
}
