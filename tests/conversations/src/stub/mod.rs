//! The stub: an HTTPS server on loopback that stands for webhooks and aggregated servers. It answers what a case says
//! and keeps what it was asked.

mod convert;
mod made;
mod reply;
mod serve;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::case::{Answers, AreaStub};
use crate::fault::Fault;

/// A running stub. It ends when dropped.
pub struct Stub {
    pub port: u16,
    /// The PEM bundle that its certificate is checked with, in base64.
    pub ca: String,
    state: Arc<State>,
    _listening: serve::Listening,
}

/// PEM files of a stub.
struct Files {
    /// What its certificate is checked with.
    authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    /// Those that were made in a folder.
    fn made(folder: &Path) -> Files {
        Files {
            authority: folder.join(made::AUTHORITY),
            certificate: folder.join(made::CERTIFICATE),
            key: folder.join(made::KEY),
        }
    }
}

/// What it answers and what it was asked, by path.
#[derive(Default)]
pub(crate) struct State {
    answers: Mutex<HashMap<String, Answers>>,
    requests: Mutex<HashMap<String, Vec<Value>>>,
}

impl Stub {
    /// A stub on a free port with a certificate made for it.
    pub async fn start() -> Result<Stub, Fault> {
        let folder = tempfile::tempdir().map_err(Fault::unusable)?;
        made::make(folder.path())?;
        Stub::listen(0, &Files::made(folder.path())).await
    }

    /// The stub of an area, whose file `STUB` names its port and may name its certificate. What was made is in the copy
    /// of the area that the server reads.
    pub async fn of_area(folder: &Path, copy: Option<&Path>) -> Result<Stub, Fault> {
        let wrong = |error: &dyn std::fmt::Display| Fault::unusable(format!("{}: {error}", folder.display()));
        let area = AreaStub::read(folder).map_err(|error| wrong(&error))?;
        let files = match (&area.certificate, &area.key, copy) {
            (Some(certificate), Some(key), _) => Files {
                authority: folder.join(certificate),
                certificate: folder.join(certificate),
                key: folder.join(key),
            },
            (_, _, Some(copy)) => Files::made(copy),
            (_, _, None) => {
                return Err(wrong(
                    &"its stub's certificate is in a copy of the area, and none was named",
                ));
            }
        };
        let stub = Stub::listen(area.port, &files).await?;
        stub.state.answers().extend(area.answers);
        Ok(stub)
    }

    async fn listen(port: u16, files: &Files) -> Result<Stub, Fault> {
        let state = Arc::new(State::default());
        let identity = crate::client::identity_of(&files.certificate, &files.key)?;
        let bundle = std::fs::read(&files.authority).map_err(Fault::unusable)?;
        let listening = serve::listen(port, identity, state.clone()).await?;
        Ok(Stub {
            port: listening.port,
            ca: BASE64_STANDARD.encode(bundle),
            state,
            _listening: listening,
        })
    }

    /// Answers so at a path from now on.
    pub fn answer(&self, path: String, answers: Answers) {
        self.state.requests().remove(&path);
        self.state.answers().insert(path, answers);
    }

    /// Answers no more at a path.
    pub fn forget(&self, path: &str) {
        self.state.answers().remove(path);
    }

    /// What was asked at a path: method, path, headers, body.
    pub fn requests(&self, path: &str) -> Vec<Value> {
        self.state.requests().get(path).cloned().unwrap_or_default()
    }
}

impl State {
    fn answers(&self) -> MutexGuard<'_, HashMap<String, Answers>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<String, Vec<Value>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stubs of a run: one for all cases, and one for each area that asks for its own.
#[derive(Default)]
pub struct Stubs {
    usual: OnceCell<Arc<Stub>>,
    areas: tokio::sync::Mutex<HashMap<PathBuf, Arc<Stub>>>,
}

/// The stub that a case talks to.
pub struct Chosen {
    pub stub: Arc<Stub>,
    /// Whether chance chose its port.
    pub by_chance: bool,
}

impl Stubs {
    /// The stub for a case in this folder, of which the server may read a copy.
    pub async fn of(&self, folder: &Path, copy: Option<&Path>) -> Result<Chosen, Fault> {
        if !folder.join("STUB").exists() {
            let start = || async { Stub::start().await.map(Arc::new) };
            let stub = self.usual.get_or_try_init(start).await?.clone();
            return Ok(Chosen { stub, by_chance: true });
        }
        let mut areas = self.areas.lock().await;
        let stub = match areas.get(folder) {
            Some(stub) => stub.clone(),
            None => {
                let stub = Arc::new(Stub::of_area(folder, copy).await?);
                areas.insert(folder.to_path_buf(), stub.clone());
                stub
            }
        };
        Ok(Chosen { stub, by_chance: false })
    }
}

pub use made::make as make_certificate;

#[cfg(test)]
mod tests;
