//! Costs of watches: the memory of an idle one, the CPU of many idle ones, the CPU of each event that is delivered.
//!
//! The server runs as a process of its own (this program again, with `--serve`), so that its memory can be told from
//! the client's. Bars: 8 KiB for an idle watch with its share of a connection, no CPU to speak of for 10 000, 3 µs for
//! a delivered event.

#![allow(clippy::unwrap_used, reason = "what fails here stops the benchmark, as it should")]

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use keelson_access::authn::Authentication;
use keelson_access::authn::certificate::ClientCertificates;
use keelson_access::authz::{AlwaysAllow, Authorization};
use keelson_net::listener::{ListenerConfig, raise_descriptor_limit};
use keelson_net::tls::certs::{CertificateAuthority, CertifiedKeyPem, Validity};
use keelson_net::tls::{ServingCertificates, TlsSettings, TlsState, certificates};
use keelson_server::server::{Config, start};
use keelson_storage::{HistoryLimits, StoreConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio::net::TcpStream;

const COLLECTION: &str = "/apis/shop.example.com/v1/namespaces/default/orders";
const PER_CONNECTION: usize = 10;
const IDLE: usize = 10_000;
const AWAKE: usize = 1_000;
/// Changes that all watches hear of.
const CHANGES: usize = 300;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    raise_descriptor_limit();
    match arguments.iter().position(|argument| argument == "--serve") {
        Some(at) => serve(Path::new(&arguments[at + 1])),
        None => measure(),
    }
}

/// The server; it prints its address and goes on until it is killed.
fn serve(folder: &Path) {
    let authority = ClientCertificates::new(&certificates(&read(folder, "ca").certificate_pem).unwrap()).unwrap();
    let serving = ServingCertificates::new(&read(folder, "server")).unwrap();
    let tls = Arc::new(TlsState::new(serving, &TlsSettings::default()).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async move {
        let history = HistoryLimits::default();
        let store = keelson_storage::open(StoreConfig::Memory { history }).await.unwrap();
        let listener = ListenerConfig::new(([127, 0, 0, 1], 0).into(), Some(tls));
        let mut config = Config::new(vec![&keelson_codegen_sample::api::SCHEME], store, listener);
        config.access.authentication = Authentication {
            chain: vec![Arc::new(authority)],
            ..Authentication::default()
        };
        config.access.authorization = Authorization::new(vec![Arc::new(AlwaysAllow)]);
        let running = start(config).unwrap();
        tell(&running.local_addr().to_string());
        std::future::pending::<()>().await;
    });
}

/// Makes the certificates of an authority, of the server and of its client.
fn provision(folder: &Path) {
    let year = Validity::years_from(SystemTime::now(), 1);
    let ca = CertificateAuthority::create("bench", year).unwrap();
    let server = ca.issue_server("bench", &["localhost"], &[], year).unwrap();
    let client = ca.issue_client("bench", None, year).unwrap();
    for (name, pair) in [("ca", ca.pem()), ("server", &server), ("client", &client)] {
        let (certificate, key) = files(folder, name);
        pair.write(&certificate, &key).unwrap();
    }
}

fn read(folder: &Path, name: &str) -> CertifiedKeyPem {
    let (certificate, key) = files(folder, name);
    CertifiedKeyPem::read(&certificate, &key).unwrap()
}

fn files(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    (folder.join(format!("{name}.crt")), folder.join(format!("{name}.key")))
}

/// The server's process.
struct Server {
    child: Child,
    address: SocketAddr,
    folder: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        provision(folder.path());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("--serve")
            .arg(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Server {
            child,
            address: line.trim().parse().unwrap(),
            folder,
        }
    }

    /// A client on a connection of its own.
    async fn client(&self) -> Sender {
        let folder = self.folder.path();
        let (ca, pair) = (read(folder, "ca"), read(folder, "client"));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificates(&ca.certificate_pem).unwrap().remove(0)).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(
                certificates(&pair.certificate_pem).unwrap(),
                PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).unwrap(),
            )
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let stream = tokio_rustls::TlsConnector::from(Arc::new(config))
            .connect(ServerName::try_from("localhost").unwrap(), stream)
            .await
            .unwrap();
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(16 << 20);
        let (client, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Opens watches; `heard` counts their events.
    async fn watches(&self, count: usize, heard: &Arc<AtomicU64>) -> Vec<tokio::task::JoinHandle<()>> {
        let mut watches = Vec::new();
        for _ in 0..count / PER_CONNECTION {
            let mut client = self.client().await;
            for _ in 0..PER_CONNECTION {
                watches.push(watch(&mut client, heard).await);
            }
        }
        watches
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).unwrap()
    }

    /// Resident memory, in bytes.
    fn memory(&self) -> usize {
        let status = self.file("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
    }

    /// CPU time used so far.
    fn cpu(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let used = threads.flatten().filter_map(|thread| {
            let schedule = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            schedule.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(used.sum())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn measure() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        idle().await;
        awake().await;
    });
}

fn tell(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

type Sender = SendRequest<Full<Bytes>>;

async fn idle() {
    let server = Server::start();
    let mut writer = server.client().await;
    create(&mut writer, "warm-up").await;
    drop(server.watches(100, &Arc::default()).await);
    tokio::time::sleep(Duration::from_secs(1)).await;

    let before = server.memory();
    let mut connections = Vec::new();
    for _ in 0..IDLE / PER_CONNECTION {
        let mut client = server.client().await;
        client.ready().await.unwrap();
        connections.push(client);
    }
    let connected = server.memory();
    let mut watches = Vec::new();
    for client in &connections {
        for _ in 0..PER_CONNECTION {
            watches.push(watch(&mut client.clone(), &Arc::default()).await);
        }
    }
    let opened = server.memory();
    tell(&format!(
        "idle connection over TLS: {} bytes; idle watch: {} bytes, {} with its tenth of a connection",
        (connected - before) / connections.len(),
        (opened - connected) / IDLE,
        (opened - before) / IDLE,
    ));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (cpu, begin) = (server.cpu(), Instant::now());
    tokio::time::sleep(Duration::from_secs(20)).await;
    let share = (server.cpu() - cpu).as_secs_f64() / begin.elapsed().as_secs_f64();
    tell(&format!("{IDLE} idle watches: {:.2} % of a core", 100.0 * share));
}

async fn awake() {
    let server = Server::start();
    let mut writer = server.client().await;
    let bare = changes(&server, &mut writer, "alone").await;
    let heard = Arc::new(AtomicU64::new(0));
    let _watches = server.watches(AWAKE, &heard).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    heard.store(0, Ordering::SeqCst);
    let wanted = (AWAKE * CHANGES) as u64;
    let begin = Instant::now();
    let cpu = server.cpu();
    changes(&server, &mut writer, "watched").await;
    while heard.load(Ordering::SeqCst) < wanted {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (used, took) = (server.cpu() - cpu, begin.elapsed());
    tell(&format!(
        "{AWAKE} watches, {CHANGES} changes: {:.2} µs of CPU for each event delivered; {:.0} events/s",
        used.saturating_sub(bare).as_secs_f64() * 1e6 / wanted as f64,
        wanted as f64 / took.as_secs_f64(),
    ));
}

/// Makes objects, one after the other, and says how much CPU that took.
async fn changes(server: &Server, writer: &mut Sender, name: &str) -> Duration {
    let cpu = server.cpu();
    for number in 0..CHANGES {
        create(writer, &format!("{name}-{number}")).await;
    }
    server.cpu() - cpu
}

/// An object of about 1 KiB.
async fn create(client: &mut Sender, name: &str) {
    let note = "n".repeat(600);
    let body = format!(
        r#"{{"metadata":{{"name":"{name}"}},"spec":{{"customer":"ann","street":"s","items":[{{"article":"a"}}],"price":1,"notes":{{"n":"{note}"}},"extra":{{"apiVersion":"v1","kind":"X"}}}}}}"#
    );
    let request = http::Request::post(format!("https://localhost{COLLECTION}"))
        .header("content-type", "application/json")
        .body(Full::from(body))
        .unwrap();
    let answer = client.send_request(request).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(status.is_success(), "{}", String::from_utf8_lossy(&body));
}

/// Opens a watch, and counts its events by the ends of their lines.
async fn watch(client: &mut Sender, heard: &Arc<AtomicU64>) -> tokio::task::JoinHandle<()> {
    let path = format!("https://localhost{COLLECTION}?watch=1&allowWatchBookmarks=1&resourceVersion=1");
    let request = http::Request::get(path)
        .header("accept", "application/json")
        .header("user-agent", "keelson-bench/1")
        .body(Full::default())
        .unwrap();
    let answer = client.send_request(request).await.unwrap();
    assert!(answer.status().is_success());
    let (mut body, heard) = (answer.into_body(), Arc::clone(heard));
    tokio::spawn(async move {
        while let Some(Ok(frame)) = body.frame().await {
            let data = frame.data_ref().map_or(&[][..], |data| &data[..]);
            let lines = data.iter().filter(|byte| **byte == b'\n').count();
            heard.fetch_add(lines as u64, Ordering::SeqCst);
        }
    })
}
