//! Servers that the suite starts: programs with data in folders of their own.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::area::flags_of;
use super::etcd::Etcd;
use super::plan::{Group, Store};
use crate::client::{Address, Client, Connector, Sent};
use crate::fault::Fault;
use crate::play::Target;
use crate::users;

/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);
/// What was recorded, but for areas that say otherwise, was recorded where no kube-controller-manager ran.
const NO_CONTROLLERS: &str = "--controllers=-validatingadmissionpolicy-status-controller";
/// Lines of the log of a server that does not start.
const SHOWN: usize = 5;

/// A running server. It is killed when dropped.
pub struct Server {
    child: Child,
    folder: TempDir,
    address: Address,
    /// The copy of the area whose flags it has.
    copy: Option<PathBuf>,
    etcd: Option<Etcd>,
}

impl Server {
    /// Starts the server that a group needs and waits until it is ready; `None` where it needs an etcd and there is
    /// none.
    pub async fn start(program: &Path, group: &Group) -> Result<Option<Server>, Fault> {
        let folder = tempfile::tempdir().map_err(Fault::unusable)?;
        let etcd = match group.store {
            Store::Etcd => match Etcd::start(&folder.path().join("etcd")).await? {
                None => return Ok(None),
                etcd => etcd,
            },
            _ => None,
        };
        let mut flags = vec![match (group.store, &etcd) {
            (Store::Embedded, _) => "--storage-backend=embedded".to_owned(),
            (_, Some(etcd)) => format!("--etcd-servers=http://{}", etcd.address),
            _ => "--storage-backend=memory".to_owned(),
        }];
        let tokens = folder.path().join("tokens.csv");
        std::fs::write(&tokens, users::TOKEN_FILE).map_err(Fault::unusable)?;
        let mut base = users::recorded_with(&tokens);
        base.push(NO_CONTROLLERS.to_owned());
        let copy = folder.path().join("area");
        flags.extend(match &group.flags {
            Some(area) => flags_of(area, &copy, &base)?,
            None => base,
        });
        let address = Address {
            tls: true,
            host: "127.0.0.1".into(),
            port: free_port()?,
        };
        let mut server = Server {
            child: spawn(program, folder.path(), address.port, &flags)?,
            folder,
            address,
            copy: group.flags.as_ref().map(|_| copy),
            etcd,
        };
        server.wait().await?;
        Ok(Some(server))
    }

    /// What a player needs to know of it.
    pub fn target(&self) -> Target {
        Target {
            server: self.address.clone(),
            ca: None,
            tokens: users::tokens(),
            audit_log: self.copy.as_ref().map(|copy| copy.join("audit.log")),
            copy: self.copy.clone(),
            etcd: self.etcd.as_ref().map(|etcd| etcd.address.clone()),
        }
    }

    async fn wait(&mut self) -> Result<(), Fault> {
        let client = Client::new(self.address.clone(), Connector::new(None)?);
        let sent = Sent {
            method: "GET".into(),
            path: "/readyz".into(),
            headers: vec![("authorization".into(), format!("Bearer {}", users::ADMIN_TOKEN))],
            body: None,
        };
        let begin = Instant::now();
        loop {
            if let Ok(answer) = client.send(&sent, None).await
                && answer.body == "ok"
            {
                return Ok(());
            }
            let ended = self.child.try_wait().map_err(Fault::unusable)?.is_some();
            if ended || begin.elapsed() > PATIENCE {
                return Err(Fault::unusable(format!(
                    "the server did not become ready: {}",
                    self.last_words()
                )));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(SHOWN).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n    ")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the program with its data in `folder` and nothing of the developer's environment.
fn spawn(program: &Path, folder: &Path, port: u16, flags: &[String]) -> Result<Child, Fault> {
    let log = File::create(folder.join("log")).map_err(Fault::unusable)?;
    Command::new(program)
        .env_remove("KUBECONFIG")
        .env("HOME", folder)
        .env("XDG_DATA_HOME", folder)
        .current_dir(folder)
        .arg(format!("--data-dir={}", folder.join("data").display()))
        .arg(format!("--secure-port={port}"))
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| Fault::unusable(format!("{}: {error}", program.display())))
}

/// A port of the loopback address that nobody listens on.
pub fn free_port() -> Result<u16, Fault> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(Fault::unusable)?;
    Ok(listener.local_addr().map_err(Fault::unusable)?.port())
}
