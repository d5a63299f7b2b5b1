//! A real etcd for tests: the program named by `ETCD_BIN`, or the `etcd` of the search path.

use std::ffi::OsString;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::EtcdConfig;

/// etcd in a folder of its own, stopped and deleted when dropped.
pub(crate) struct EtcdServer {
    program: OsString,
    dir: tempfile::TempDir,
    port: u16,
    /// Where it is not now.
    was_at: Option<u16>,
    peer_port: u16,
    scheme: &'static str,
    more: Vec<OsString>,
    child: Child,
}

impl EtcdServer {
    /// `None`: there is no etcd, which `KEELSON_REQUIRE_ETCD=1` forbids.
    pub fn start() -> Option<Self> {
        Self::start_with("http", |_| vec![])
    }

    /// etcd with further arguments, made from its folder.
    pub fn start_with(scheme: &'static str, more: impl Fn(&Path) -> Vec<OsString>) -> Option<Self> {
        let program = find()?;
        let dir = tempfile::tempdir().unwrap();
        let more = more(dir.path());
        let (port, peer_port) = (free_port(), free_port());
        let child = run(&program, dir.path(), scheme, port, peer_port, &more);
        let server = EtcdServer {
            program,
            dir,
            port,
            was_at: None,
            peer_port,
            scheme,
            more,
            child,
        };
        server.wait();
        Some(server)
    }

    pub fn endpoint(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port)
    }

    pub fn config(&self) -> EtcdConfig {
        EtcdConfig {
            endpoints: vec![self.endpoint()],
            ..Default::default()
        }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops answering, without going away.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Goes on after a pause.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Starts what was stopped again, where nobody looks for it but who asks for the endpoint.
    pub fn restart_elsewhere(&mut self) {
        let port = std::mem::replace(&mut self.port, free_port());
        self.was_at.get_or_insert(port);
        self.restart();
    }

    /// As [`EtcdServer::restart`], where it was before that.
    pub fn restart_where_it_was(&mut self) {
        self.port = self.was_at.take().unwrap_or(self.port);
        self.restart();
    }

    /// Starts again what was stopped.
    pub fn restart(&mut self) {
        self.child = run(
            &self.program,
            self.dir.path(),
            self.scheme,
            self.port,
            self.peer_port,
            &self.more,
        );
        self.wait();
    }

    fn wait(&self) {
        let since = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(since.elapsed() < Duration::from_secs(60), "etcd does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Three members that hold an election when one goes away.
pub(crate) struct EtcdCluster {
    pub members: Vec<EtcdServer>,
}

impl EtcdCluster {
    /// `None`: there is no etcd.
    pub fn start() -> Option<Self> {
        let program = find()?;
        let peers: Vec<u16> = (0..3).map(|_| free_port()).collect();
        let all: Vec<String> = peers
            .iter()
            .enumerate()
            .map(|(n, port)| format!("m{n}=http://127.0.0.1:{port}"))
            .collect();
        let member = |(n, peer_port): (usize, u16)| {
            // Of a flag that is given twice the last one counts.
            let more = ["--name", &format!("m{n}"), "--initial-cluster", &all.join(",")].map(OsString::from);
            let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
            let child = run(&program, dir.path(), "http", port, peer_port, &more);
            EtcdServer {
                program: program.clone(),
                dir,
                port,
                was_at: None,
                peer_port,
                scheme: "http",
                more: more.into(),
                child,
            }
        };
        let members: Vec<EtcdServer> = peers.iter().copied().enumerate().map(member).collect();
        members.iter().for_each(EtcdServer::wait);
        Some(EtcdCluster { members })
    }

    pub fn config(&self) -> EtcdConfig {
        EtcdConfig {
            endpoints: self.members.iter().map(EtcdServer::endpoint).collect(),
            ..Default::default()
        }
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find() -> Option<OsString> {
    if let Some(program) = std::env::var_os("ETCD_BIN") {
        return Some(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|dir: PathBuf| dir.join("etcd"))
        .find(|file| file.is_file());
    if found.is_none() {
        let required = std::env::var_os("KEELSON_REQUIRE_ETCD").is_some_and(|value| value == "1");
        assert!(!required, "neither ETCD_BIN nor an etcd in PATH");
        println!("skipped: neither ETCD_BIN nor an etcd in PATH");
    }
    found.map(PathBuf::into_os_string)
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn run(program: &OsString, dir: &Path, scheme: &str, port: u16, peer_port: u16, more: &[OsString]) -> Child {
    let client = format!("{scheme}://127.0.0.1:{port}");
    let peer = format!("http://127.0.0.1:{peer_port}");
    Command::new(program)
        .arg("--data-dir")
        .arg(dir.join("data"))
        .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
        .args([
            "--initial-cluster",
            &format!("default={peer}"),
            "--log-level",
            "error",
            "--unsafe-no-fsync",
        ])
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}
