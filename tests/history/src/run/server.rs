//! A server as a child process that can be killed, stopped and started again where it was.

use std::fs::OpenOptions;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Method;

use super::client::{Client, Target};

/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// A server that was asked to end has so long. Less than history is kept, or no watch could go on after it.
const GRACE: Duration = Duration::from_secs(3);
/// Lines of a log that are shown when something is wrong.
const LAST_WORDS: usize = 30;

pub struct Server {
    program: PathBuf,
    folder: PathBuf,
    port: u16,
    flags: Mutex<Vec<String>>,
    environment: Environment,
    child: Mutex<Child>,
}

type Environment = Vec<(&'static str, PathBuf)>;

impl Server {
    pub fn start(program: &Path, folder: &Path, flags: Vec<String>) -> Server {
        Server::start_with(program, folder, flags, Vec::new())
    }

    /// As [`Server::start`], with more in its environment.
    pub fn start_with(program: &Path, folder: &Path, flags: Vec<String>, environment: Environment) -> Server {
        std::fs::create_dir_all(folder).unwrap();
        let port = free_port();
        Server {
            child: Mutex::new(spawn(program, folder, port, &flags, &environment)),
            program: program.to_owned(),
            folder: folder.to_owned(),
            port,
            flags: Mutex::new(flags),
            environment,
        }
    }

    /// What another server says that is started with the same data, and must end at once.
    pub fn refused(program: &Path, folder: &Path) -> String {
        let output = Command::new(program)
            .env_remove("KUBECONFIG")
            .arg(format!("--data-dir={}", folder.join("data").display()))
            .arg(format!("--kubeconfig-out={}", folder.join("second").display()))
            .arg(format!("--secure-port={}", free_port()))
            .output()
            .unwrap();
        assert!(!output.status.success(), "two servers use one folder");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// What clients need; waits until the server has written it.
    pub fn target(&self) -> Arc<Target> {
        let file = self.folder.join("kubeconfig");
        let since = Instant::now();
        loop {
            if let Some(target) = Target::read(&file, self.port) {
                return Arc::new(target);
            }
            assert!(
                since.elapsed() < PATIENCE,
                "no server in {}:\n{}",
                self.folder.display(),
                self.last_words()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns when it answers. The error is the end of its log: it has ended, or answers nothing.
    pub async fn serves(&self) -> Result<(), String> {
        let since = Instant::now();
        loop {
            let mut client = Client::new(self.target(), false);
            // Any answer will do, and none need be whole.
            let answer = client
                .send(Method::GET, "/livez/ping", "application/json", String::new())
                .await;
            if answer.is_ok() && !self.has_ended() {
                return Ok(());
            }
            if self.has_ended() || since.elapsed() > PATIENCE {
                return Err(self.last_words());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.child.lock().unwrap().id()
    }

    /// The end of the server's log.
    pub fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(LAST_WORDS).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Whether it has ended by itself, or was ended and not started again.
    pub fn has_ended(&self) -> bool {
        self.child.lock().unwrap().try_wait().unwrap().is_some()
    }

    /// Reads the embedded store of a server that has ended, and compares it with its checksums. An error is what the
    /// server's program says.
    pub fn check(&self) -> Result<(), String> {
        self.store(&["check"]).map(drop)
    }

    /// `store` of the server's program, on its data. What it prints.
    pub fn store(&self, args: &[&str]) -> Result<String, String> {
        let output = Command::new(&self.program)
            .arg("store")
            .args(args)
            .arg(format!("--data-dir={}", self.data().display()))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    pub fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Asks the server to end, and waits until it has; kills it when that takes too long, as who runs servers does:
    /// a reader that is slow to take what was sent keeps it for as long as requests may last.
    pub async fn terminate(&self) {
        self.terminate_within(GRACE).await;
    }

    /// False: it did not end in time, and was killed.
    pub async fn terminate_within(&self, grace: Duration) -> bool {
        signal(&self.child.lock().unwrap(), "TERM");
        let since = Instant::now();
        while !self.has_ended() {
            if since.elapsed() > grace {
                self.kill();
                return false;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        true
    }

    /// Where its data are.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// As [`Server::start_again`], with other flags.
    pub fn start_again_with(&self, flags: Vec<String>) {
        *self.flags.lock().unwrap() = flags;
        self.start_again();
    }

    pub fn start_again(&self) {
        let flags = self.flags.lock().unwrap().clone();
        let child = spawn(&self.program, &self.folder, self.port, &flags, &self.environment);
        *self.child.lock().unwrap() = child;
    }

    pub async fn freeze(&self, time: Duration) {
        signal(&self.child.lock().unwrap(), "STOP");
        tokio::time::sleep(time).await;
        signal(&self.child.lock().unwrap(), "CONT");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(mut child) = self.child.lock() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(program: &Path, folder: &Path, port: u16, flags: &[String], environment: &Environment) -> Child {
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("log"))
        .unwrap();
    Command::new(program)
        .env_remove("KUBECONFIG")
        .env("HOME", folder)
        .envs(environment.iter().cloned())
        .arg(format!("--data-dir={}", folder.join("data").display()))
        .arg(format!("--kubeconfig-out={}", folder.join("kubeconfig").display()))
        .arg(format!("--secure-port={port}"))
        // Pods need none here: the accounts of the run come and go in bursts.
        .arg("--disable-admission-plugins=ServiceAccount")
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}

pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
