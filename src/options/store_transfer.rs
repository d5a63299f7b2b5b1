//! `store import` and `store export`: all keys of an embedded store, from elsewhere or to etcd.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use keelson_storage::migrate::{self, Exported, Imported, Options};
use keelson_storage::{EtcdConfig, StoreError};

use super::store_command::line;

/// How often a line says how far it is.
const PROGRESS: Duration = Duration::from_secs(2);

/// The other end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    Etcd(EtcdConfig),
    Snapshot(PathBuf),
}

/// What is carried, between a store and the other end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Carry {
    pub(super) end: End,
    pub(super) options: Options,
}

impl Carry {
    pub(super) fn import(&self, folder: &Path) -> Result<String, StoreError> {
        let mut progress = Progress::new("read");
        let mut tell = |keys| progress.tell(keys);
        let Imported { report, expired } = match &self.end {
            End::Etcd(etcd) => run(migrate::from_etcd(etcd, folder, &self.options, &mut tell))?,
            End::Snapshot(file) => migrate::from_snapshot(file, folder, &self.options, &mut tell)?,
        };
        let left_out = match expired {
            0 => String::new(),
            n => format!("; {n} keys had expired and were left out"),
        };
        Ok(format!("{}: imported {}{left_out}", folder.display(), line(&report)))
    }

    pub(super) fn export(&self, folder: &Path) -> Result<String, StoreError> {
        let End::Etcd(etcd) = &self.end else {
            return Err(StoreError::Unavailable("only etcd can be exported to".to_owned()));
        };
        let mut progress = Progress::new("written");
        let mut tell = |keys| progress.tell(keys);
        let Exported { keys, value_bytes } = run(migrate::to_etcd(folder, etcd, &self.options, &mut tell))?;
        let servers = etcd.endpoints.join(",");
        Ok(format!("{servers}: exported {keys} keys with {value_bytes} bytes"))
    }
}

fn run<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| StoreError::Unavailable(format!("starting: {error}")))?;
    runtime.block_on(work)
}

/// Lines on standard error while it takes long.
struct Progress {
    done: &'static str,
    told: Instant,
}

impl Progress {
    fn new(done: &'static str) -> Progress {
        Progress {
            done,
            told: Instant::now(),
        }
    }

    fn tell(&mut self, keys: usize) {
        if self.told.elapsed() >= PROGRESS {
            self.told = Instant::now();
            let _ = writeln!(std::io::stderr(), "{keys} keys {}", self.done);
        }
    }
}
