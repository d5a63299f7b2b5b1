//! The measuring client of the server's benchmarks: many requests over few connections, and what they cost.
//!
//! Two figures matter. *Wall* time per request includes this client, which shares the machine with the server. *CPU*
//! time per request counts the server's threads alone (by their names, from `/proc`), so it compares two servers
//! fairly whatever the client does; only Linux tells it.

#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use keelson_net::tls::certs::{CertificateAuthority, CertifiedKeyPem, Validity};
use keelson_net::tls::{ServingCertificates, TlsSettings, TlsState, certificates};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// How the server's threads are called.
const SERVER_THREADS: &str = "keelson-";

/// A request the client sends again and again.
pub type Request = http::Request<Full<Bytes>>;

/// Certificates for a server under measurement and its client.
pub struct Identity {
    ca: Arc<CertificateAuthority>,
    /// `None`: the client shows none.
    client: Option<CertifiedKeyPem>,
}

impl Identity {
    /// Makes an authority and a client certificate of the group `system:masters`.
    pub fn create() -> Self {
        let ca = Arc::new(CertificateAuthority::create("bench", year()).unwrap());
        Identity { ca, client: None }.of_user("bench", "system:masters")
    }

    /// The same authority, and a client certificate of this user.
    #[must_use]
    pub fn of_user(&self, name: &str, group: &str) -> Self {
        Identity {
            client: Some(self.ca.issue_client(name, Some(group), year()).unwrap()),
            ..self.of_nobody()
        }
    }

    /// The same authority, and no client certificate.
    #[must_use]
    pub fn of_nobody(&self) -> Self {
        Identity {
            ca: self.ca.clone(),
            client: None,
        }
    }

    /// The authority's certificate, for the server's client authentication.
    pub fn ca_pem(&self) -> &str {
        &self.ca.pem().certificate_pem
    }

    /// The TLS side of a listener.
    pub fn tls(&self) -> Arc<TlsState> {
        let pair = self.ca.issue_server("bench", &["localhost"], &[], year()).unwrap();
        Arc::new(TlsState::new(ServingCertificates::new(&pair).unwrap(), &TlsSettings::default()).unwrap())
    }

    async fn connect(&self, address: SocketAddr, alpn: &str) -> tokio_rustls::client::TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificates(self.ca_pem()).unwrap().remove(0)).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match &self.client {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).unwrap();
                let chain = certificates(&pair.certificate_pem).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = vec![alpn.into()];
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        tokio_rustls::TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap()
    }
}

fn year() -> Validity {
    Validity::years_from(SystemTime::now(), 1)
}

/// What the client speaks, over TLS.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1: one request at a time on a connection.
    Http1,
    /// HTTP/2.
    Http2,
}

/// Open connections to a server, each used by some tasks that send one request after another.
pub struct Client {
    runtime: Runtime,
    lanes: Vec<Lane>,
}

enum Lane {
    Http1(tokio::sync::Mutex<http1::SendRequest<Full<Bytes>>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Client {
    /// Connects `connections` times and sends `lanes` requests at once in all; with HTTP/1.1 there is a connection
    /// for each lane.
    pub fn connect(
        identity: &Identity,
        address: SocketAddr,
        protocol: Protocol,
        connections: usize,
        lanes: usize,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let lanes = runtime.block_on(async {
            match protocol {
                Protocol::Http1 => http1_lanes(identity, address, lanes).await,
                Protocol::Http2 => http2_lanes(identity, address, connections, lanes).await,
            }
        });
        Client { runtime, lanes }
    }

    /// The body of the answer to one request.
    pub fn body(&self, request: Request) -> Bytes {
        let answer = async { self.lanes[0].answer(request).await.collect().await.unwrap().to_bytes() };
        self.runtime.block_on(answer)
    }

    /// Sends `count` requests and reads every answer whole.
    ///
    /// # Panics
    /// When an answer's status is not a success.
    pub fn run(&self, count: u64, request: &(impl Fn() -> Request + Sync)) -> Cost {
        let left = AtomicU64::new(count);
        let bytes = AtomicU64::new(0);
        let (cpu, begin) = (server_cpu(), Instant::now());
        let lanes = self.lanes.iter().map(|lane| async {
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
            {
                bytes.fetch_add(lane.exchange(request()).await, Ordering::Relaxed);
            }
        });
        self.runtime.block_on(futures_util::future::join_all(lanes));
        Cost {
            wall: begin.elapsed(),
            server_cpu: server_cpu().saturating_sub(cpu),
            body_bytes: bytes.into_inner(),
        }
    }
}

/// What a run took in all.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// From the first request to the last answer.
    pub wall: Duration,
    /// CPU time of the server's threads meanwhile.
    pub server_cpu: Duration,
    /// Bytes of the answers' bodies.
    pub body_bytes: u64,
}

impl Lane {
    async fn answer(&self, mut request: Request) -> Incoming {
        let answer = match self {
            Lane::Http1(client) => {
                let host = http::HeaderValue::from_static("localhost");
                request.headers_mut().entry("host").or_insert(host);
                let mut client = client.lock().await;
                client.ready().await.unwrap();
                client.send_request(request).await.unwrap()
            }
            Lane::Http2(client) => client.clone().send_request(request).await.unwrap(),
        };
        assert!(answer.status().is_success(), "{}", answer.status());
        answer.into_body()
    }

    async fn exchange(&self, request: Request) -> u64 {
        let (mut body, mut bytes) = (self.answer(request).await, 0);
        while let Some(frame) = body.frame().await {
            bytes += frame.unwrap().data_ref().map_or(0, Bytes::len) as u64;
        }
        bytes
    }
}

async fn http1_lanes(identity: &Identity, address: SocketAddr, lanes: usize) -> Vec<Lane> {
    let mut made = Vec::new();
    for _ in 0..lanes {
        let stream = TokioIo::new(identity.connect(address, "http/1.1").await);
        let (client, connection) = http1::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        made.push(Lane::Http1(tokio::sync::Mutex::new(client)));
    }
    made
}

async fn http2_lanes(identity: &Identity, address: SocketAddr, connections: usize, lanes: usize) -> Vec<Lane> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let stream = TokioIo::new(identity.connect(address, "h2").await);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(16 << 20);
        let (client, connection) = builder.handshake(stream).await.unwrap();
        tokio::spawn(connection);
        clients.push(client);
    }
    (0..lanes)
        .map(|lane| Lane::Http2(clients[lane % connections].clone()))
        .collect()
}

/// CPU time the server's threads in this process have used so far; zero where the system does not tell.
pub fn server_cpu() -> Duration {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return Duration::ZERO;
    };
    let used = threads.flatten().filter_map(|thread| {
        let name = std::fs::read_to_string(thread.path().join("comm")).ok()?;
        let schedule = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let nanoseconds = schedule.split_whitespace().next()?.parse().ok()?;
        name.starts_with(SERVER_THREADS)
            .then(|| Duration::from_nanos(nanoseconds))
    });
    used.sum()
}
