//! An etcd of the test's own.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::{free_port, tool};

/// A running etcd with its data in a folder of its own. It is killed when dropped.
pub struct Etcd {
    child: Child,
    _folder: TempDir,
    pub url: String,
}

impl Etcd {
    /// Starts the etcd that `ETCD_BIN` or PATH names; `None` where there is none (see [`tool`]). The servers that
    /// use it wait until it answers.
    pub fn start() -> Option<Etcd> {
        let program = tool("etcd", "ETCD_BIN")?;
        Some(Etcd::run(&program))
    }

    fn run(program: &Path) -> Etcd {
        let folder = tempfile::tempdir().unwrap();
        let (client, peer) = (
            format!("http://127.0.0.1:{}", free_port()),
            format!("http://127.0.0.1:{}", free_port()),
        );
        let child = Command::new(program)
            .arg("--data-dir")
            .arg(folder.path())
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args([
                "--initial-cluster",
                &format!("default={peer}"),
                "--unsafe-no-fsync",
                "--log-level=error",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for_port(&client);
        Etcd {
            child,
            _folder: folder,
            url: client,
        }
    }
}

fn wait_for_port(url: &str) {
    let address = url.trim_start_matches("http://");
    let deadline = std::time::Instant::now() + super::PATIENCE;
    while std::net::TcpStream::connect(address).is_err() {
        assert!(std::time::Instant::now() < deadline, "etcd does not listen");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
