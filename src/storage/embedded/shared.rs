//! What the store, its writer and its upkeep share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::mvcc::Mvcc;
use crate::{Clock, StoreError};

pub(super) struct Shared {
    pub mvcc: Arc<Mvcc>,
    pub clock: Arc<dyn Clock>,
    /// Bytes written since the last checkpoint, about.
    pub log_bytes: AtomicU64,
    fault: Mutex<Option<StoreError>>,
    full: AtomicBool,
}

impl Shared {
    pub fn new(mvcc: Arc<Mvcc>, clock: Arc<dyn Clock>) -> Self {
        Shared {
            mvcc,
            clock,
            log_bytes: AtomicU64::new(0),
            fault: Mutex::default(),
            full: AtomicBool::new(false),
        }
    }

    /// Why the last transaction failed; `None`: it did not.
    pub fn fault(&self) -> Option<StoreError> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the disk is full: the space set aside is in use, and nothing is put until it is set aside again.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    pub fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::Relaxed);
    }

    /// Notes the outcome of a transaction.
    pub fn set_fault(&self, error: Option<&StoreError>) {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*fault, error) {
            (None, Some(error)) => tracing::error!(%error, "the store can't write; it serves reads until it can"),
            (Some(_), None) => tracing::info!("the store can write again"),
            _ => {}
        }
        *fault = error.cloned();
    }
}
