//! The server that is measured, with all kinds and an audit, in this process.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use keelson::api::SCHEME;
use keelson_access::authn::{Anonymous, Authentication};
use keelson_access::authz::{AlwaysAllow, Authorization};
use keelson_base::env::SystemClock;
use keelson_net::listener::ListenerConfig;
use keelson_server::audit::sink::{Batching, Format, LogSettings, Mode, Rotation};
use keelson_server::audit::{Audit, AuditSettings, Policy};
use keelson_server::discovery::RuntimeConfig;
use keelson_server::server::{Config, start};
use keelson_storage::HistoryLimits;
use keelson_storage::memory::MemoryStore;

use crate::measure::{Cost, cpu, cpu_of, forget_peak, last_thread, memory};

/// No request takes longer, whatever else the machine does.
const PATIENCE: Duration = Duration::from_secs(120);
const POLICY: &[u8] =
    b"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: [/livez]}, {level: Metadata}]\n\
    omitStages: [RequestReceived]\n";

pub struct Server {
    runtime: tokio::runtime::Runtime,
    sender: http2::SendRequest<Full<Bytes>>,
    address: SocketAddr,
    /// Its only one.
    worker: u32,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Server {
    pub fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.log");
        let address = serve(log.clone());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let sender = runtime.block_on(connect_for_large(address));
        let mut server = Server {
            runtime,
            sender,
            address,
            worker: last_thread("keelson-worker-0"),
            log,
            _folder: folder,
        };
        let namespace = r#"{"metadata":{"name":"default"}}"#.to_owned();
        let made = server.send("POST", "/api/v1/namespaces", "application/json", namespace);
        assert_eq!(made.status, 201);
        // Without it no pod gets as far as its rules.
        let account = r#"{"metadata":{"name":"default"}}"#;
        let made = server.send(
            "POST",
            "/api/v1/namespaces/default/serviceaccounts",
            "application/json",
            account,
        );
        assert_eq!(made.status, 201);
        server
    }

    /// Sends a body and measures what that costs this process.
    pub fn send(&mut self, method: &str, path: &str, media_type: &str, body: impl Into<Bytes>) -> Cost {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("http://localhost{path}"))
            .header("content-type", media_type)
            .header("accept", "application/json")
            .body(Full::new(body.into()))
            .unwrap();
        forget_peak();
        let (memory_before, cpu_before, audit_before) = (memory("VmRSS:"), cpu(), self.audited());
        let (address, worker) = (self.address, self.worker);
        let (sender, runtime) = (&mut self.sender, &self.runtime);
        let (held, (status, answer)) = runtime.block_on(async {
            let beside = Beside::new(worker);
            let answered = tokio::select! {
                answered = ask(sender, request) => answered,
                () = beside.ask_on(address) => unreachable!("it goes on"),
            };
            (beside.held(), answered)
        });
        Cost {
            status,
            milliseconds: cpu() - cpu_before,
            mib: memory("VmHWM:").saturating_sub(memory_before) >> 10,
            answer: answer.len(),
            audit: self.audited() - audit_before,
            held: held / 1_000_000,
        }
    }

    /// Bytes of the audit's log.
    fn audited(&self) -> u64 {
        std::fs::metadata(&self.log).unwrap().len()
    }
}

async fn ask(sender: &mut http2::SendRequest<Full<Bytes>>, request: http::Request<Full<Bytes>>) -> (u16, Bytes) {
    sender.ready().await.unwrap();
    let answer = tokio::time::timeout(PATIENCE, sender.send_request(request)).await;
    let (parts, body) = answer.expect("no answer in time").unwrap().into_parts();
    (parts.status.as_u16(), body.collect().await.unwrap().to_bytes())
}

/// Small requests beside a large one. What is noted is the CPU time, in nanoseconds, that the server's worker took
/// while one of them waited: what other programs of the machine take does not count.
struct Beside {
    worker: u32,
    longest: Cell<u64>,
    /// The worker's time when the one was sent that waits now.
    waits_since: Cell<Option<u64>>,
}

impl Beside {
    fn new(worker: u32) -> Beside {
        Beside {
            worker,
            longest: Cell::new(0),
            waits_since: Cell::new(None),
        }
    }

    /// Asks all the time whether the server lives.
    async fn ask_on(&self, address: SocketAddr) {
        let mut sender = connect(address).await;
        loop {
            self.waits_since.set(Some(cpu_of(self.worker)));
            let request = http::Request::get("/livez").header("host", "localhost");
            let answer = sender
                .send_request(request.body(Full::default()).unwrap())
                .await
                .unwrap();
            answer.into_body().collect().await.unwrap();
            self.longest.set(self.held());
            self.waits_since.set(None);
            tokio::time::sleep(Duration::from_millis(1)).await;
            sender.ready().await.unwrap();
        }
    }

    fn held(&self) -> u64 {
        let waited = self.waits_since.get().map_or(0, |since| cpu_of(self.worker) - since);
        self.longest.get().max(waited)
    }
}

/// HTTP/2: an answer can be read there though the server has not read the request to its end.
async fn connect_for_large(server: SocketAddr) -> http2::SendRequest<Full<Bytes>> {
    let stream = tokio::net::TcpStream::connect(server).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let connecting = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = connecting.await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn connect(server: SocketAddr) -> http1::SendRequest<Full<Bytes>> {
    let stream = tokio::net::TcpStream::connect(server).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn audit(log: PathBuf) -> Audit {
    let settings = LogSettings {
        path: Some(log),
        format: Format::Json,
        mode: Mode::Blocking,
        batching: Batching {
            buffer: 100,
            max_events: 1,
            max_wait: Duration::ZERO,
            throttle: None,
        },
        truncation: None,
        rotation: Rotation {
            max_bytes: 1 << 40,
            max_days: 0,
            max_files: 0,
            compress: false,
        },
    };
    let settings = AuditSettings {
        policy: Some(Policy::read(POLICY).unwrap().0),
        log: Some(settings),
        webhook: None,
    };
    Audit::start(settings, Arc::new(SystemClock)).unwrap()
}

fn serve(log: PathBuf) -> SocketAddr {
    let (started, is_started) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let store = Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap());
            let mut listener = ListenerConfig::new(([127, 0, 0, 1], 0).into(), None);
            listener.workers = 1;
            let mut config = Config::new(vec![&SCHEME], store, listener);
            config.resources.code = keelson_kube::code(&keelson_kube::CodeOptions::default());
            config.resources.code.merge(keelson_extensions::code());
            config.resources.admission = keelson_kube::admission::chain();
            config.audit = audit(log);
            config.resources.runtime = RuntimeConfig::parse(["api/all=true"]).unwrap();
            config.access.authentication = Authentication::default().with_anonymous(Anonymous::Everywhere);
            config.access.authorization = Authorization::new(vec![Arc::new(AlwaysAllow)]);
            let running = start(config).unwrap();
            started.send(running.local_addr()).unwrap();
            std::future::pending::<()>().await;
        });
    });
    is_started.recv().unwrap()
}
