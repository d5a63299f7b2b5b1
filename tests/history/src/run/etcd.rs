//! etcd as a child process.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

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

    /// Compacts through etcd's JSON gateway, which may refuse or be away.
    pub async fn compact(&self, revision: u64) -> Result<(), String> {
        let text = |error: &dyn std::error::Error| error.to_string();
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await;
        let stream = stream.map_err(|error| text(&error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| text(&error))?;
        tokio::spawn(connection);
        let request = http::Request::post("/v3/kv/compaction")
            .header("host", "etcd")
            .body(Full::new(Bytes::from(format!("{{\"revision\":\"{revision}\"}}"))))
            .unwrap();
        let sent = tokio::time::timeout(Duration::from_secs(5), sender.send_request(request)).await;
        let response = sent.map_err(|error| text(&error))?.map_err(|error| text(&error))?;
        match response.status().as_u16() {
            200 => Ok(()),
            other => Err(format!("status {other}")),
        }
    }

    fn wait(&self) {
        let since = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(since.elapsed() < PATIENCE, "etcd does not start");
            std::thread::sleep(Duration::from_millis(20));
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
