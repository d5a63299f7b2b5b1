//! The configuration of stores.

use std::path::PathBuf;
use std::sync::Arc;

use crate::embedded::EmbeddedStore;
#[cfg(feature = "etcd")]
use crate::etcd::EtcdStore;
use crate::memory::MemoryStore;
use crate::{EtcdConfig, HistoryLimits, Store, StoreError};

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

/// Opens a store. The connections of an etcd store belong to the tokio runtime that calls this, and end with it.
pub async fn open(config: StoreConfig) -> Result<Arc<dyn Store>, StoreError> {
    match config {
        StoreConfig::Memory { history } => Ok(Arc::new(MemoryStore::new(history)?)),
        StoreConfig::Embedded { dir, history } => Ok(Arc::new(EmbeddedStore::open(&dir, history)?)),
        #[cfg(feature = "etcd")]
        StoreConfig::Etcd(config) => Ok(Arc::new(EtcdStore::connect(&config).await?)),
        #[cfg(not(feature = "etcd"))]
        StoreConfig::Etcd(_) => Err(StoreError::Unavailable(
            "etcd: this program was built without it".to_owned(),
        )),
    }
}
