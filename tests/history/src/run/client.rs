//! HTTP over TLS to a server, with the admin's certificate.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A request without an answer is given up after this time.
const PATIENCE: Duration = Duration::from_secs(20);
/// The receive buffer of a connection on which little is to wait. With much less the system takes in a few KiB each 200
/// ms, and a slow reader has no chance to hear of everything.
const SMALL: usize = 32 << 10;

/// A server as its clients know it.
pub struct Target {
    port: u16,
    tls: rustls::ClientConfig,
}

impl Target {
    /// From a kubeconfig that the server has written; `None`: it has not, or not wholly.
    pub fn read(kubeconfig: &Path, port: u16) -> Option<Target> {
        let file: Value = serde_json::from_slice(&std::fs::read(kubeconfig).ok()?).ok()?;
        let pem = |value: &Value| BASE64_STANDARD.decode(value.as_str()?).ok();
        let user = &file["users"][0]["user"];
        let ca = pem(&file["clusters"][0]["cluster"]["certificate-authority-data"])?;
        let certificate = pem(&user["client-certificate-data"])?;
        let key = pem(&user["client-key-data"])?;
        let mut roots = rustls::RootCertStore::empty();
        for ca in CertificateDer::pem_slice_iter(&ca) {
            roots.add(ca.ok()?).ok()?;
        }
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .ok()?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain.ok()?, PrivateKeyDer::from_pem_slice(&key).ok()?)
            .ok()?;
        Some(Target { port, tls })
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Failure {
    /// The server was not reached.
    NotSent,
    /// The request may have been heard.
    Lost,
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// One connection, made when it is needed.
pub struct Client {
    target: Arc<Target>,
    http2: bool,
    /// Whether the connection's buffers are small.
    small: bool,
    /// Asks as this user, who has no rights but those that are given.
    user: Option<&'static str>,
    sender: Option<Sender>,
}

/// A connection on which nothing was said yet.
pub type Connection = tokio_rustls::client::TlsStream<TcpStream>;

impl Client {
    pub fn new(target: Arc<Target>, http2: bool) -> Client {
        Client {
            target,
            http2,
            small: false,
            user: None,
            sender: None,
        }
    }

    /// A client that asks as another user.
    pub fn of(target: Arc<Target>, user: &'static str) -> Client {
        Client {
            user: Some(user),
            ..Client::new(target, false)
        }
    }

    /// A client that takes in little before it is read.
    pub fn small(target: Arc<Target>, http2: bool) -> Client {
        Client {
            small: true,
            ..Client::new(target, http2)
        }
    }

    /// Connects; with small buffers if that is what the client is like.
    pub async fn open(&self) -> Option<Connection> {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).ok()?;
        if self.small {
            socket.set_recv_buffer_size(SMALL).ok()?;
        }
        socket.set_nonblocking(true).ok()?;
        let socket = tokio::net::TcpSocket::from_std_stream(socket.into());
        let stream: TcpStream = socket.connect(([127, 0, 0, 1], self.target.port).into()).await.ok()?;
        stream.set_nodelay(true).ok()?;
        let mut tls = self.target.tls.clone();
        tls.alpn_protocols = vec![if self.http2 {
            b"h2".to_vec()
        } else {
            b"http/1.1".to_vec()
        }];
        let name = ServerName::try_from("127.0.0.1").ok()?;
        TlsConnector::from(Arc::new(tls)).connect(name, stream).await.ok()
    }

    async fn connect(&self) -> Option<Sender> {
        let stream = TokioIo::new(self.open().await?);
        if self.http2 {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.ok()?;
            tokio::spawn(connection);
            Some(Sender::Two(sender))
        } else {
            let (sender, connection) = http1::handshake(stream).await.ok()?;
            tokio::spawn(connection);
            Some(Sender::One(sender))
        }
    }

    /// Sends a request; the answer's body is still to be read.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        kind: &str,
        body: String,
    ) -> Result<Response<Incoming>, Failure> {
        let ready = match &mut self.sender {
            Some(Sender::One(sender)) => sender.ready().await.is_ok(),
            Some(Sender::Two(sender)) => sender.ready().await.is_ok(),
            None => false,
        };
        if !ready {
            let connected = tokio::time::timeout(PATIENCE, self.connect()).await;
            self.sender = connected.ok().flatten();
        }
        let uri = match self.http2 {
            true => format!("https://127.0.0.1{path}"),
            false => path.to_owned(),
        };
        let mut request = Request::builder()
            .method(method)
            .uri(uri)
            .header("host", "127.0.0.1")
            .header("accept", "application/json")
            .header("content-type", kind);
        if let Some(user) = self.user {
            request = request.header("impersonate-user", user);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let answer = match &mut self.sender {
            None => return Err(Failure::NotSent),
            Some(Sender::One(sender)) => tokio::time::timeout(PATIENCE, sender.send_request(request)).await,
            Some(Sender::Two(sender)) => tokio::time::timeout(PATIENCE, sender.send_request(request)).await,
        };
        match answer {
            Ok(Ok(response)) => Ok(response),
            _ => {
                self.sender = None;
                Err(Failure::Lost)
            }
        }
    }

    /// A request, and its answer as a whole.
    pub async fn call(
        &mut self,
        method: Method,
        path: &str,
        kind: &str,
        body: String,
    ) -> Result<(u16, Value), Failure> {
        let response = self.send(method, path, kind, body).await?;
        let status = response.status().as_u16();
        let body = tokio::time::timeout(PATIENCE, response.into_body().collect()).await;
        let value = match body {
            Ok(Ok(body)) => serde_json::from_slice(&body.to_bytes()).ok(),
            _ => None,
        };
        if value.is_none() {
            self.sender = None;
        }
        value.map(|value| (status, value)).ok_or(Failure::Lost)
    }

    pub async fn get(&mut self, path: &str) -> Result<(u16, Value), Failure> {
        self.call(Method::GET, path, "application/json", String::new()).await
    }
}
