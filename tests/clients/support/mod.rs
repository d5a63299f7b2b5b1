//! Starts a server program in a folder of its own, waits until it is ready, ends it.

mod etcd;
mod programs;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub use etcd::Etcd;
pub use programs::{bookings, keelson, tool, widgets};

/// How long anything may take before a test gives up. Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server. It is killed when dropped.
pub struct Server {
    child: Child,
    folder: TempDir,
    pub kubeconfig: PathBuf,
}

impl Server {
    /// Starts `program` with its data in a new folder, on a free port, and waits until `/readyz` says ok.
    pub async fn start(program: &Path, flags: &[&str]) -> Server {
        let folder = tempfile::tempdir().unwrap();
        Server::start_in(program, folder, flags).await
    }

    /// As [`Server::start`], with the data of an earlier server.
    pub async fn start_in(program: &Path, folder: TempDir, flags: &[&str]) -> Server {
        Server::start_until(program, folder, flags, "/readyz").await
    }

    /// As [`Server::start_in`], for a server that need not become ready: waits until this path says ok.
    pub async fn start_until(program: &Path, folder: TempDir, flags: &[&str], path: &str) -> Server {
        let port = free_port();
        let mut child = command(program, folder.path())
            .arg(format!("--secure-port={port}"))
            .args(flags)
            .stderr(File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let kubeconfig = printed_kubeconfig(&mut child, folder.path());
        let server = Server {
            child,
            folder,
            kubeconfig,
        };
        server.wait_for(path).await;
        server
    }

    /// A client with the admin's certificate.
    pub async fn client(&self) -> kube::Client {
        let file = kube::config::Kubeconfig::read_from(&self.kubeconfig).unwrap();
        let config = kube::Config::from_custom_kubeconfig(file, &Default::default())
            .await
            .unwrap();
        kube::Client::try_from(config).unwrap()
    }

    async fn wait_for(&self, path: &str) {
        let client = self.client().await;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let request = http::Request::get(path).body(Vec::new()).unwrap();
            match client.request_text(request).await {
                Ok(text) if text == "ok" => return,
                other if Instant::now() > deadline => panic!("not ready: {other:?}\n{}", self.log()),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// What the server logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The folder of its data.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills it, and gives the folder for another start.
    pub fn kill(mut self) -> TempDir {
        self.child.kill().unwrap();
        wait(&mut self.child);
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }

    /// Sends SIGTERM and waits for the end: its status, the time it took, and the folder for another start.
    pub fn terminate(mut self) -> (ExitStatus, Duration, TempDir) {
        let begin = Instant::now();
        signal(&self.child, "TERM");
        let status = wait(&mut self.child);
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        (status, begin.elapsed(), folder)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `program` with its data in `folder` and nothing of the developer's environment.
pub fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_remove("KUBECONFIG")
        .env("HOME", folder)
        .env("XDG_DATA_HOME", folder);
    command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// `PROGRAM store ARGUMENTS…` of a folder at rest: whether it succeeded, and all that it printed.
pub fn at_rest(program: &Path, folder: &Path, arguments: &[&str]) -> (bool, String) {
    let done = command(program, folder).arg("store").args(arguments).output().unwrap();
    let text = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8(text).unwrap())
}

/// A port of the loopback address that nobody listens on.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Reads the line that tells where the kubeconfig is.
fn printed_kubeconfig(child: &mut Child, folder: &Path) -> PathBuf {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    match line.trim_end().strip_prefix("export KUBECONFIG=") {
        Some(path) => PathBuf::from(path),
        None => {
            let _ = child.wait();
            panic!(
                "printed {line:?}; log:\n{}",
                std::fs::read_to_string(folder.join("log")).unwrap_or_default()
            )
        }
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return status,
            None if Instant::now() > deadline => panic!("still running"),
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}
