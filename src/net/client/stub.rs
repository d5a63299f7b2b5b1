//! Servers in the process of a test, that answer as it likes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{ClientSettings, ClientTls, Roots};
use crate::tls::certs::{CertificateAuthority, CertifiedKeyPem, Validity};

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Seen {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
    /// How long it is thought over.
    pub delay: Duration,
}

impl Reply {
    pub fn new(status: u16, body: impl Into<Bytes>) -> Reply {
        Reply {
            status,
            headers: Vec::new(),
            body: body.into(),
            delay: Duration::ZERO,
        }
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Reply {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub fn after(self, delay: Duration) -> Reply {
        Reply { delay, ..self }
    }
}

/// A server that ends with its test's runtime.
pub struct Stub {
    address: SocketAddr,
    scheme: &'static str,
    pub ca_pem: String,
    seen: Arc<Mutex<VecDeque<Seen>>>,
    connections: Arc<Mutex<usize>>,
}

type Handler = dyn Fn(&Seen) -> Reply + Send + Sync;

pub fn validity() -> Validity {
    Validity::years_from(SystemTime::now(), 1)
}

/// The port of a listener that is gone: nobody else has it.
pub fn vacant_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl Stub {
    pub async fn https(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Stub {
        let ca = CertificateAuthority::create("stub", validity()).unwrap();
        let addresses = ["127.0.0.1".parse().unwrap()];
        let pair = ca
            .issue_server("stub", &["stub.example"], &addresses, validity())
            .unwrap();
        Stub::start(answer, Some(&pair), &ca.pem().certificate_pem, false).await
    }

    /// That speaks HTTP/2 alone.
    pub async fn http2(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Stub {
        let ca = CertificateAuthority::create("stub", validity()).unwrap();
        let addresses = ["127.0.0.1".parse().unwrap()];
        let pair = ca.issue_server("stub", &[], &addresses, validity()).unwrap();
        let ca = ca.pem().certificate_pem.clone();
        let mut config = server_config(&pair, &ca, false);
        config.alpn_protocols = vec![crate::tls::ALPN_HTTP2.to_vec()];
        Stub::serve(answer, Some(config), &ca).await
    }

    /// Whose clients need a certificate.
    pub async fn mutual(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static, ca: &CertificateAuthority) -> Stub {
        let addresses = ["127.0.0.1".parse().unwrap()];
        let pair = ca.issue_server("stub", &[], &addresses, validity()).unwrap();
        Stub::start(answer, Some(&pair), &ca.pem().certificate_pem, true).await
    }

    pub async fn http(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Stub {
        Stub::start(answer, None, "", false).await
    }

    pub async fn start(
        answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
        pair: Option<&CertifiedKeyPem>,
        ca_pem: &str,
        mutual: bool,
    ) -> Stub {
        let config = pair.map(|pair| server_config(pair, ca_pem, mutual));
        Stub::serve(answer, config, ca_pem).await
    }

    async fn serve(
        answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
        config: Option<ServerConfig>,
        ca_pem: &str,
    ) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stub = Stub {
            address: listener.local_addr().unwrap(),
            scheme: if config.is_some() { "https" } else { "http" },
            ca_pem: ca_pem.to_owned(),
            seen: Arc::default(),
            connections: Arc::default(),
        };
        let is_http2 = config.as_ref().is_some_and(|config| !config.alpn_protocols.is_empty());
        let acceptor = config.map(|config| TlsAcceptor::from(Arc::new(config)));
        let (seen, connections) = (stub.seen.clone(), stub.connections.clone());
        let answer: Arc<Handler> = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *connections.lock().unwrap() += 1;
                let (acceptor, answer, seen) = (acceptor.clone(), answer.clone(), seen.clone());
                tokio::spawn(async move {
                    let service = service_fn(move |request| respond(request, answer.clone(), seen.clone()));
                    let http = http1::Builder::new();
                    let _ = match acceptor {
                        None => http.serve_connection(TokioIo::new(stream), service).await,
                        Some(acceptor) => match acceptor.accept(stream).await {
                            Ok(stream) if is_http2 => {
                                let http = http2::Builder::new(TokioExecutor::new());
                                http.serve_connection(TokioIo::new(stream), service).await
                            }
                            Ok(stream) => http.serve_connection(TokioIo::new(stream), service).await,
                            Err(_) => return,
                        },
                    };
                });
            }
        });
        stub
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// A client's settings that trust this server.
    pub fn trusted(&self) -> ClientSettings {
        let roots = match self.ca_pem.as_str() {
            "" => Roots::System,
            pem => Roots::Pem(pem.to_owned()),
        };
        ClientSettings {
            tls: ClientTls {
                roots,
                ..ClientTls::default()
            },
            ..ClientSettings::default()
        }
    }

    /// The text of a kubeconfig file that leads to `path` of this server.
    pub fn kubeconfig(&self, path: &str) -> String {
        use base64::Engine;
        let ca = base64::engine::general_purpose::STANDARD.encode(&self.ca_pem);
        let url = self.url(path);
        format!(
            "current-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             clusters: [{{name: k, cluster: {{server: '{url}', certificate-authority-data: '{ca}'}}}}]\n\
             users: [{{name: u, user: {{}}}}]\n"
        )
    }

    /// All requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().iter().cloned().collect()
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

fn server_config(pair: &CertifiedKeyPem, ca_pem: &str, mutual: bool) -> ServerConfig {
    let chain = CertificateDer::pem_slice_iter(pair.certificate_pem.as_bytes());
    let chain: Vec<_> = chain.map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match mutual {
        false => builder.with_no_client_auth(),
        true => {
            let mut roots = rustls::RootCertStore::empty();
            roots
                .add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap())
                .unwrap();
            let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    builder.with_single_cert(chain, key).unwrap()
}

async fn respond(
    request: Request<Incoming>,
    answer: Arc<Handler>,
    seen: Arc<Mutex<VecDeque<Seen>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let one = Seen {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: head.headers,
        body: body.collect().await.map(|body| body.to_bytes()).unwrap_or_default(),
    };
    seen.lock().unwrap().push_back(one.clone());
    let reply = answer(&one);
    tokio::time::sleep(reply.delay).await;
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(*name, value);
    }
    Ok(response.body(Full::new(reply.body)).unwrap())
}
