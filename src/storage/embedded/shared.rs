//! Shared state of the store, its writer and its upkeep.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::InterruptHandle;

use super::database::Database;
use crate::mvcc::Mvcc;
use crate::{Clock, StoreError};

pub(super) struct Shared {
    pub mvcc: Arc<Mvcc>,
    pub clock: Arc<dyn Clock>,
    pub progress: Progress,
    fault: Mutex<Option<StoreError>>,
    full: AtomicBool,
    /// Ends the copy that is being made.
    copy: Mutex<Option<InterruptHandle>>,
}

impl Shared {
    pub fn new(mvcc: Arc<Mvcc>, clock: Arc<dyn Clock>) -> Self {
        Shared {
            mvcc,
            clock,
            progress: Progress::default(),
            fault: Mutex::default(),
            full: AtomicBool::new(false),
            copy: Mutex::default(),
        }
    }

    /// Makes a copy with `make`, which shows its connection, so that the copy can be ended early.
    pub fn copying<T>(&self, make: impl FnOnce(&dyn Fn(&Database)) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let show = |database: &Database| *self.copy() = Some(database.interrupt_handle());
        let made = make(&show);
        *self.copy() = None;
        made
    }

    /// Ends a copy that is being made, with an error: it keeps the log from being emptied.
    pub fn end_copy(&self) {
        if let Some(copy) = &*self.copy() {
            copy.interrupt();
        }
    }

    fn copy(&self) -> MutexGuard<'_, Option<InterruptHandle>> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
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

/// How far the write-ahead log has been written and moved into the database file.
#[derive(Default)]
pub(super) struct Progress(Mutex<Pages>);

/// Pages of the log.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Pages {
    /// So often the log was begun anew.
    pub round: u64,
    pub written: u64,
    pub moved: u64,
}

impl Pages {
    pub fn waiting(self) -> u64 {
        self.written.saturating_sub(self.moved)
    }
}

impl Progress {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> Pages {
        *self.pages()
    }

    /// A commit left so many pages in the log: no more than before, if it was begun anew, since each adds some.
    pub fn wrote(&self, written: u64) {
        let mut pages = self.pages();
        if written <= pages.written {
            pages.round += 1;
            pages.moved = 0;
        }
        pages.written = written;
    }

    /// Moves the log as far as that holds up no one.
    pub fn checkpoint(&self, database: &Database) -> rusqlite::Result<()> {
        let round = self.now().round;
        self.moved(round, database.checkpoint()?);
        Ok(())
    }

    /// So many pages of the log of a round are in the database file.
    fn moved(&self, round: u64, moved: u64) {
        let mut pages = self.pages();
        if pages.round == round {
            pages.moved = pages.moved.max(moved);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_moved_of_an_older_log_does_not_count() {
        let progress = Progress::default();
        progress.wrote(10);
        let before = progress.now();
        progress.moved(before.round, 8);
        assert_eq!(progress.now().waiting(), 2);
        progress.wrote(3);
        progress.moved(before.round, 10);
        assert_eq!((progress.now().waiting(), progress.now().round), (3, before.round + 1));
        progress.moved(before.round + 1, 3);
        progress.wrote(3);
        assert_eq!((progress.now().waiting(), progress.now().round), (3, before.round + 2));
    }
}
