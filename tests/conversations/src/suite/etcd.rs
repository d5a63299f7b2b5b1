//! An etcd of the suite's own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::server::free_port;
use crate::client::Address;
use crate::fault::Fault;

/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// A running etcd. It is killed when dropped.
pub struct Etcd {
    child: Child,
    pub address: Address,
}

impl Etcd {
    /// Starts the etcd that `ETCD_BIN` names or that is in PATH; `None` where there is none.
    pub async fn start(folder: &Path) -> Result<Option<Etcd>, Fault> {
        let Some(program) = program() else {
            return Ok(None);
        };
        let address = Address {
            tls: false,
            host: "127.0.0.1".into(),
            port: free_port()?,
        };
        let (client, peer) = (
            format!("http://{address}"),
            format!("http://127.0.0.1:{}", free_port()?),
        );
        let child = Command::new(&program)
            .arg("--data-dir")
            .arg(folder)
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
            .map_err(|error| Fault::unusable(format!("{}: {error}", program.display())))?;
        let etcd = Etcd { child, address };
        let begin = Instant::now();
        while tokio::net::TcpStream::connect(("127.0.0.1", etcd.address.port))
            .await
            .is_err()
        {
            if begin.elapsed() > PATIENCE {
                return Err(Fault::unusable("etcd does not listen"));
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(Some(etcd))
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> Option<PathBuf> {
    let given = std::env::var_os("ETCD_BIN").filter(|value| !value.is_empty());
    given.map(PathBuf::from).or_else(|| {
        let path = std::env::var_os("PATH")?;
        let mut files = std::env::split_paths(&path).map(|folder| folder.join("etcd"));
        files.find(|file| file.is_file())
    })
}
