//! A server of webhooks that misbehaves as its paths say.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use keelson_net::tls::certs::{CertificateAuthority, Validity};
use kube::Client;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const HUGE: usize = 10 << 20;

/// A stub that ends with its test.
pub struct Faulty {
    address: SocketAddr,
    pub ca: String,
    told: Told,
}

/// Paths that were asked for, with what was sent.
type Told = Arc<Mutex<Vec<(String, Value)>>>;

impl Faulty {
    /// `back`: the server that is called back at the path `back`.
    pub async fn start(back: Option<Client>) -> Faulty {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let validity = || Validity::years_from(SystemTime::now(), 1);
        let ca = CertificateAuthority::create("stub", validity()).unwrap();
        let addresses = ["127.0.0.1".parse().unwrap()];
        let pair = ca.issue_server("stub", &[], &addresses, validity()).unwrap();
        let chain = CertificateDer::pem_slice_iter(pair.certificate_pem.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain.map(Result::unwrap).collect(), key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let stub = Faulty {
            address: listener.local_addr().unwrap(),
            ca: ca.pem().certificate_pem.clone(),
            told: Arc::default(),
        };
        let told = stub.told.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, told, back) = (acceptor.clone(), told.clone(), back.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = converse(stream, told, back).await;
                    }
                });
            }
        });
        stub
    }

    /// The URL at which it misbehaves in this way.
    pub fn url(&self, path: &str) -> String {
        let scheme = if path == "no-tls" { "http" } else { "https" };
        // Only https is allowed: who speaks no TLS is called at a port of its own.
        match scheme {
            "http" => format!("https://127.0.0.1:{}/no-tls", plain_port()),
            _ => format!("https://{}/{path}", self.address),
        }
    }

    pub fn asked(&self) -> Vec<(String, Value)> {
        self.told.lock().unwrap().clone()
    }

    pub fn forget(&self) {
        self.told.lock().unwrap().clear();
    }
}

/// A port where nobody speaks TLS.
fn plain_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        use std::io::Write;
        for stream in listener.incoming() {
            let _ = stream.and_then(|mut stream| stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
        }
    });
    port
}

/// Answers requests of one connection, one after the other.
async fn converse<S>(mut stream: S, told: Told, back: Option<Client>) -> std::io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut held = Vec::new();
    while let Some((path, review)) = read(&mut stream, &mut held).await? {
        told.lock().unwrap().push((path.clone(), review.clone()));
        match path.as_str() {
            "/hang" => std::future::pending().await,
            "/garbage" => send(&mut stream, 200, b"\0\xff no review").await?,
            "/huge" => send(&mut stream, 200, &vec![b'['; HUGE]).await?,
            "/half" => {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n\
                    {\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"response\":{\"patch\":\"W3";
                stream.write_all(answer).await?;
                return stream.shutdown().await;
            }
            "/close" => return stream.shutdown().await,
            "/redirect" => {
                let answer = b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /redirected\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(answer).await?;
            }
            "/endless" => endless(&mut stream).await?,
            "/slow-head" => {
                for byte in b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n".iter().cycle() {
                    stream.write_all(&[*byte]).await?;
                    stream.flush().await?;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            "/back" => {
                if let Some(client) = &back {
                    call_back(client, &review).await;
                }
                send(&mut stream, 200, &allowed(&review)).await?;
            }
            _ => send(&mut stream, 200, &allowed(&review)).await?,
        }
    }
    Ok(())
}

fn allowed(review: &Value) -> Vec<u8> {
    let response = json!({"uid": review["request"]["uid"], "allowed": true});
    let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    answer.to_string().into_bytes()
}

/// Makes an object of less depth, about which the same webhook is asked.
async fn call_back(client: &Client, review: &Value) {
    let labels = &review["request"]["object"]["metadata"]["labels"];
    let depth: usize = labels["depth"].as_str().unwrap().parse().unwrap();
    if depth == 0 {
        return;
    }
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "back-",
        "labels": {"hook": "back", "depth": (depth - 1).to_string()}}});
    super::must(client, "GET", super::MAPS, Value::Null).await;
    super::must(client, "POST", super::MAPS, body).await;
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), status: u16, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    stream.flush().await
}

async fn endless(stream: &mut (impl AsyncWrite + Unpin)) -> std::io::Result<()> {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head).await?;
    loop {
        stream.write_all(b"4\r\n    \r\n").await?;
        stream.flush().await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The next request of a connection: its path, and its body.
async fn read(stream: &mut (impl AsyncRead + Unpin), held: &mut Vec<u8>) -> std::io::Result<Option<(String, Value)>> {
    loop {
        if let Some(found) = whole(held) {
            return Ok(Some(found));
        }
        let mut chunk = [0; 8192];
        match stream.read(&mut chunk).await? {
            0 => return Ok(None),
            length => held.extend_from_slice(&chunk[..length]),
        }
    }
}

fn whole(held: &mut Vec<u8>) -> Option<(String, Value)> {
    let end = held.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&held[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    let body = held.get(end..end + length)?.to_vec();
    let path = head.split_whitespace().nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default().to_owned();
    held.drain(..end + length);
    Some((path, serde_json::from_slice(&body).unwrap_or_default()))
}
