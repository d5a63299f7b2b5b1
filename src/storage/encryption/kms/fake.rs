//! A key management service for tests: "encrypts" by turning bits, under a key whose name the test can change.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::UnixListener;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use super::message::{DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, StatusRequest, StatusResponse};

/// What the fake does, and what it has been asked.
pub(crate) struct Script {
    pub key_id: String,
    pub healthz: String,
    /// Keys that it can't decrypt with any more.
    pub lost: Vec<String>,
    /// Keys that it never answers about.
    pub silent: Vec<String>,
    pub delay: Duration,
    /// Changes what it answers.
    pub encrypts: fn(&mut EncryptResponse),
    pub decrypts: fn(&mut DecryptResponse),
    pub encrypted: usize,
    pub decrypted: usize,
    pub looked: usize,
}

/// Serves until it is dropped.
pub(crate) struct FakeKms {
    pub socket: PathBuf,
    script: Arc<Mutex<Script>>,
    _dir: Option<tempfile::TempDir>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

const ANNOTATION: &str = "version.encryption.example.com";

impl FakeKms {
    pub fn start() -> FakeKms {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("kms.sock");
        let mut fake = FakeKms::start_at(&socket);
        fake._dir = Some(dir);
        fake
    }

    pub fn start_at(socket: &Path) -> FakeKms {
        let script = Arc::new(Mutex::new(Script {
            key_id: "key-1".to_owned(),
            healthz: "ok".to_owned(),
            lost: Vec::new(),
            silent: Vec::new(),
            delay: Duration::ZERO,
            encrypts: |_| (),
            decrypts: |_| (),
            encrypted: 0,
            decrypted: 0,
            looked: 0,
        }));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let plugin = Plugin(script.clone());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                let listener = UnixListener::from_std(listener).unwrap();
                let incoming = futures_util::stream::unfold(listener, |listener| async move {
                    let accepted = listener.accept().await.map(|(stream, _)| stream);
                    Some((accepted, listener))
                });
                let served = Server::builder().add_service(plugin).serve_with_incoming(incoming);
                tokio::select! {
                    served = served => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        FakeKms {
            socket: socket.to_owned(),
            script,
            _dir: None,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }
}

impl Drop for FakeKms {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().unwrap().join();
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn turn(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| byte ^ 0x5a).collect()
}

#[derive(Clone)]
struct Plugin(Arc<Mutex<Script>>);

impl Plugin {
    async fn wait(&self) {
        let delay = self.0.lock().unwrap().delay;
        tokio::time::sleep(delay).await;
    }
}

type Answer<T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send>>;

impl UnaryService<StatusRequest> for Plugin {
    type Response = StatusResponse;
    type Future = Answer<StatusResponse>;

    fn call(&mut self, _request: Request<StatusRequest>) -> Self::Future {
        let plugin = self.clone();
        Box::pin(async move {
            plugin.wait().await;
            let mut script = plugin.0.lock().unwrap();
            script.looked += 1;
            Ok(Response::new(StatusResponse {
                version: "v2".to_owned(),
                healthz: script.healthz.clone(),
                key_id: script.key_id.clone(),
            }))
        })
    }
}

impl UnaryService<EncryptRequest> for Plugin {
    type Response = EncryptResponse;
    type Future = Answer<EncryptResponse>;

    fn call(&mut self, request: Request<EncryptRequest>) -> Self::Future {
        let plugin = self.clone();
        Box::pin(async move {
            plugin.wait().await;
            let mut script = plugin.0.lock().unwrap();
            script.encrypted += 1;
            let mut answer = EncryptResponse {
                ciphertext: turn(&request.into_inner().plaintext),
                key_id: script.key_id.clone(),
                annotations: BTreeMap::from([(ANNOTATION.to_owned(), b"1".to_vec())]),
            };
            (script.encrypts)(&mut answer);
            Ok(Response::new(answer))
        })
    }
}

impl UnaryService<DecryptRequest> for Plugin {
    type Response = DecryptResponse;
    type Future = Answer<DecryptResponse>;

    fn call(&mut self, request: Request<DecryptRequest>) -> Self::Future {
        let plugin = self.clone();
        Box::pin(async move {
            plugin.wait().await;
            let request = request.into_inner();
            let silent = plugin.0.lock().unwrap().silent.contains(&request.key_id);
            if silent {
                std::future::pending::<()>().await;
            }
            let mut script = plugin.0.lock().unwrap();
            script.decrypted += 1;
            if script.lost.contains(&request.key_id) {
                return Err(Status::internal(format!("key {} is gone", request.key_id)));
            }
            if request.annotations.get(ANNOTATION).map(Vec::as_slice) != Some(b"1") || request.uid.is_empty() {
                return Err(Status::invalid_argument("what Encrypt answered did not come back"));
            }
            let mut answer = DecryptResponse {
                plaintext: turn(&request.ciphertext),
            };
            (script.decrypts)(&mut answer);
            Ok(Response::new(answer))
        })
    }
}

impl Service<http::Request<Body>> for Plugin {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let plugin = self.clone();
        Box::pin(async move {
            Ok(match request.uri().path().rsplit('/').next() {
                Some("Status") => {
                    let codec = ProstCodec::<StatusResponse, StatusRequest>::default();
                    Grpc::new(codec).unary(plugin, request).await
                }
                Some("Encrypt") => {
                    let codec = ProstCodec::<EncryptResponse, EncryptRequest>::default();
                    Grpc::new(codec).unary(plugin, request).await
                }
                Some("Decrypt") => {
                    let codec = ProstCodec::<DecryptResponse, DecryptRequest>::default();
                    Grpc::new(codec).unary(plugin, request).await
                }
                _ => Status::unimplemented("no such call").into_http(),
            })
        })
    }
}

impl NamedService for Plugin {
    const NAME: &'static str = "v2.KeyManagementService";
}
