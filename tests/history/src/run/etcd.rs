//! etcd as a child process.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use super::server::{free_port, signal};

/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Etcd {
    program: PathBuf,
    folder: PathBuf,
    pub port: u16,
    peer_port: u16,
    child: Mutex<Child>,
}

impl Etcd {
    pub fn start(program: &Path, folder: PathBuf) -> Etcd {
        let (port, peer_port) = (free_port(), free_port());
        let etcd = Etcd {
            child: Mutex::new(spawn(program, &folder, port, peer_port)),
            program: program.to_owned(),
            folder,
            port,
            peer_port,
        };
        etcd.wait();
        etcd
    }

    /// kill -9 and another start.
    pub fn restart(&self) {
        let mut child = self.child.lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        *child = spawn(&self.program, &self.folder, self.port, self.peer_port);
        self.wait();
    }

    pub async fn freeze(&self, time: Duration) {
        signal(&self.child.lock().unwrap(), "STOP");
        tokio::time::sleep(time).await;
        signal(&self.child.lock().unwrap(), "CONT");
    }

    /// A connection to etcd's JSON gateway.
    pub async fn connect(&self) -> Result<Gateway, String> {
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await;
        let stream = stream.map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        Ok(Gateway { sender })
    }

    /// Asks the gateway, which may refuse or be away.
    pub async fn ask(&self, path: &str, body: Value) -> Result<Value, String> {
        self.connect().await?.ask(path, body).await
    }

    /// Compacts; that may be refused.
    pub async fn compact(&self, revision: u64) -> Result<(), String> {
        self.ask("/v3/kv/compaction", json!({"revision": revision.to_string()}))
            .await
            .map(drop)
    }

    /// The newest revision.
    pub async fn revision(&self) -> Result<u64, String> {
        let key = BASE64_STANDARD.encode("/");
        let answer = self.ask("/v3/kv/range", json!({"key": key})).await?;
        revision(&answer)
    }

    /// Copies what it holds, for which it is ended and started again.
    pub fn copy_to(&self, folder: &Path) {
        let mut child = self.child.lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        copy(&self.folder, folder);
        *child = spawn(&self.program, &self.folder, self.port, self.peer_port);
        self.wait();
    }

    /// Puts what was copied in the place of what it holds.
    pub fn put_back(&self, folder: &Path) {
        let mut child = self.child.lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        std::fs::remove_dir_all(&self.folder).unwrap();
        copy(folder, &self.folder);
        *child = spawn(&self.program, &self.folder, self.port, self.peer_port);
        self.wait();
    }

    fn wait(&self) {
        let since = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(since.elapsed() < PATIENCE, "etcd does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// See [`Etcd::connect`].
pub struct Gateway {
    sender: http1::SendRequest<Full<Bytes>>,
}

impl Gateway {
    async fn ask(&mut self, path: &str, body: Value) -> Result<Value, String> {
        let request = http::Request::post(path)
            .header("host", "etcd")
            .body(Full::new(Bytes::from(body.to_string())))
            .unwrap();
        let answer = async {
            let response = self
                .sender
                .send_request(request)
                .await
                .map_err(|error| error.to_string())?;
            let status = response.status().as_u16();
            let body = response
                .into_body()
                .collect()
                .await
                .map_err(|error| error.to_string())?;
            Ok((status, body.to_bytes()))
        };
        let answered = tokio::time::timeout(Duration::from_secs(5), answer).await;
        let (status, body) = answered
            .map_err(|error| error.to_string())?
            .map_err(|error: String| error)?;
        match status {
            200 => serde_json::from_slice(&body).map_err(|error| error.to_string()),
            other => Err(format!("status {other}")),
        }
    }

    /// Puts a key under a lease (null: none). The revision that made it.
    pub async fn put(&mut self, key: &str, value: &str, lease: &Value) -> Result<u64, String> {
        let mut body = json!({"key": BASE64_STANDARD.encode(key), "value": BASE64_STANDARD.encode(value)});
        if !lease.is_null() {
            body["lease"] = lease.clone();
        }
        revision(&self.ask("/v3/kv/put", body).await?)
    }
}

fn revision(answer: &Value) -> Result<u64, String> {
    let revision = answer["header"]["revision"].as_str().and_then(|text| text.parse().ok());
    revision.ok_or_else(|| format!("no revision: {answer}"))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        if let Ok(mut child) = self.child.lock() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(program: &Path, folder: &Path, port: u16, peer_port: u16) -> Child {
    let (client, peer) = (
        format!("http://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{peer_port}"),
    );
    Command::new(program)
        .arg("--data-dir")
        .arg(folder)
        .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("default={peer}")])
        // what kill -9 leaves is in the file cache
        .args(["--log-level", "error", "--unsafe-no-fsync"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}
