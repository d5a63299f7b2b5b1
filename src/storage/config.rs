//! The configuration of stores.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::embedded::EmbeddedStore;
use crate::etcd::EtcdStore;
use crate::memory::MemoryStore;
use crate::{Store, StoreError};

/// How much history a store keeps for watches and for lists at an old revision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistoryLimits {
    /// Changes stay at least so long, and at most twice as long; `None`: no limit by age.
    pub age: Option<Duration>,
    /// History over this many bytes of keys and values is cut to half of it, however young.
    pub bytes: usize,
}

impl Default for HistoryLimits {
    /// Five minutes, as kube-apiserver compacts etcd, and 256 MiB.
    fn default() -> Self {
        HistoryLimits {
            age: Some(Duration::from_secs(300)),
            bytes: 256 << 20,
        }
    }
}

/// Which store to open, and where.
#[derive(Clone, Debug)]
pub enum StoreConfig {
    /// In memory; ends with the process.
    Memory { history: HistoryLimits },
    /// In a folder on disk, which one process at a time can use; made if missing (mode 0700).
    Embedded { dir: PathBuf, history: HistoryLimits },
    /// etcd 3.5 or later.
    Etcd(EtcdConfig),
}

/// How to reach etcd.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct EtcdConfig {
    /// `http://host:port` or `https://host:port`, one per member.
    pub endpoints: Vec<String>,
    /// PEM file of the authorities that sign etcd's certificates. https needs it: the system's are not asked.
    pub ca: Option<PathBuf>,
    /// PEM file of the client certificate; with `key`.
    pub cert: Option<PathBuf>,
    /// PEM file of the client certificate's key; with `cert`.
    pub key: Option<PathBuf>,
    /// How often history is compacted, in turn with the other servers of the same etcd; `None`: never.
    pub compaction_interval: Option<Duration>,
}

/// Opens a store. The connections of an etcd store belong to the tokio runtime that calls this, and end with it.
pub async fn open(config: StoreConfig) -> Result<Arc<dyn Store>, StoreError> {
    match config {
        StoreConfig::Memory { history } => Ok(Arc::new(MemoryStore::new(history)?)),
        StoreConfig::Embedded { dir, history } => Ok(Arc::new(EmbeddedStore::open(&dir, history)?)),
        StoreConfig::Etcd(config) => Ok(Arc::new(EtcdStore::connect(&config).await?)),
    }
}
