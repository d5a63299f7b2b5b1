//! A store in one folder on disk, for one process: SQLite keeps the data, memory answers all reads.
//!
//! A write is answered, seen by readers and told to watches after fsync. Many writers share one fsync. When the disk
//! refuses a write, that write fails, reads go on, and [`Store::health`] says why until a write works again. When the
//! disk is full, nothing can be put, but deletions are written into space that was set aside for them.

mod database;
pub(crate) mod fill;
mod folder;
mod index;
mod load;
mod log;
mod main_file;
pub mod offline;
mod open;
mod proof;
mod repair;
mod reserve;
mod shared;
#[cfg(test)]
pub(crate) mod stepped;
#[cfg(test)]
mod tests;
mod writer;
mod writing;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::sync::{Semaphore, mpsc, oneshot};

use self::database::{Database, explain};
pub use self::repair::{Repaired, repair};
use self::reserve::Reserve;
use self::shared::{Pages, Progress, Shared};
use self::writer::{Answer, Command, MOVE_PAGES, REST_PAGES, ROUND_PAGES, Writer};
use crate::lease_pool::LeasePool;
use crate::maintenance::{Maintenance, Schedule};
use crate::{
    Clock, Event, Expect, Got, HistoryLimits, LeaseId, ListOptions, Listed, Position, Revision, Snapshot, Store,
    StoreCopy, StoreError, SystemClock, Timeline, WatchStream, Write, Written,
};

/// Writes that wait for the writer at most; more wait in their callers.
const QUEUE: usize = 1024;
/// Passes over the log in which upkeep tries to come near its end while writes go on.
const PASSES: u32 = 4;

/// A [`Store`] on disk.
pub struct EmbeddedStore {
    shared: Arc<Shared>,
    path: PathBuf,
    /// See [`Database::timeline`].
    timeline: u64,
    queue: mpsc::Sender<Command>,
    /// `None`: somebody else does it.
    upkeep: Option<Maintenance>,
    leases: Mutex<LeasePool>,
    /// One copy at a time: each takes as much room as the store.
    copying: Arc<Semaphore>,
}

impl EmbeddedStore {
    /// Opens the store of a folder, which is made if it is missing.
    ///
    /// Fails if another process uses it, or with [`StoreError::Corrupt`] if a row is not as it was written.
    pub fn open(dir: &Path, limits: HistoryLimits) -> Result<Self, StoreError> {
        Self::with_clock(dir, limits, Arc::new(SystemClock::new()))
    }

    /// As [`EmbeddedStore::open`], with leases and history that go by `clock`.
    pub fn with_clock(dir: &Path, limits: HistoryLimits, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let (queue, commands) = mpsc::channel(QUEUE);
        let mut writer = Writer::open(dir, clock, commands)?;
        let mut store = Self::over(&writer, queue);
        let upkeep = Maintenance::spawn(upkeep(&store.shared, &store.queue, limits, &store.path)?)?;
        writer.upkeep = Some(upkeep.waker());
        store.upkeep = Some(upkeep);
        std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| StoreError::Unavailable(format!("starting a thread: {error}")))?;
        Ok(store)
    }

    /// A store that a writer answers for.
    fn over(writer: &Writer, queue: mpsc::Sender<Command>) -> Self {
        EmbeddedStore {
            shared: writer.shared.clone(),
            path: writer.path.clone(),
            timeline: writer.timeline,
            queue,
            upkeep: None,
            leases: Mutex::default(),
            copying: Arc::new(Semaphore::new(1)),
        }
    }

    async fn ask<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        if self.queue.send(command(answer)).await.is_err() {
            return Err(self.ended());
        }
        answered.await.unwrap_or_else(|_| Err(self.ended()))
    }

    fn stop_upkeep(&self) {
        if let Some(upkeep) = &self.upkeep {
            upkeep.stop();
        }
    }

    /// Why the writer answers no more.
    fn ended(&self) -> StoreError {
        let died = || StoreError::Unavailable("the store's writer has died; see the log".to_owned());
        self.shared.mvcc.view().map_or_else(|closed| closed, |_| died())
    }

    fn pool(&self) -> MutexGuard<'_, LeasePool> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the upkeep thread does at each tick.
fn upkeep(
    shared: &Arc<Shared>,
    queue: &mpsc::Sender<Command>,
    limits: HistoryLimits,
    path: &Path,
) -> Result<impl FnMut() + Send + 'static, StoreError> {
    let mut schedule = Schedule::new(shared.mvcc.clone(), shared.clock.clone(), limits);
    let checkpoints = Database::connect(path).map_err(|error| explain(path, &error))?;
    let (shared, queue) = (shared.clone(), queue.downgrade());
    let reserve = Reserve::beside(path);
    let mut before = Pages::default();
    Ok(move || {
        let Some(queue) = queue.upgrade() else { return };
        // the writer being busy, the next tick finds the same due
        let _ = queue.try_send(Command::Tick(schedule.due()));
        if !shared.is_full() && !reserve.is_there() {
            match reserve.take() {
                Ok(()) => {}
                Err(error) => tracing::warn!(%error, "setting space aside for a full disk; it is tried again"),
            }
        }
        let pages = shared.progress.now();
        let idle = pages == before;
        before = pages;
        if pages.waiting() > MOVE_PAGES || (idle && pages.waiting() > 0) {
            if let Err(error) = move_log(&checkpoints, &shared.progress) {
                tracing::warn!(%error, "checkpoint of the store; it is tried again");
            }
            before = shared.progress.now();
        }
    })
}

/// Moves the log into the database file: a long one again and again, until little of it is left.
fn move_log(checkpoints: &Database, progress: &Progress) -> rusqlite::Result<()> {
    for _ in 0..PASSES {
        progress.checkpoint(checkpoints)?;
        let pages = progress.now();
        if pages.written < ROUND_PAGES || pages.waiting() <= REST_PAGES / 2 {
            break;
        }
    }
    Ok(())
}

impl Store for EmbeddedStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Got, StoreError>> {
        ready(self.shared.mvcc.get(key)).boxed()
    }

    fn list<'a>(&'a self, prefix: &'a str, options: ListOptions) -> BoxFuture<'a, Result<Listed, StoreError>> {
        async move { self.shared.mvcc.list(prefix, &options) }.boxed()
    }

    fn snapshot<'a>(&'a self, _prefix: &'a str) -> BoxFuture<'a, Result<Snapshot, StoreError>> {
        ready(self.shared.mvcc.snapshot()).boxed()
    }

    fn held(&self, _prefix: &str) -> Option<Snapshot> {
        self.shared.mvcc.snapshot().ok()
    }

    fn held_position(&self, _prefix: &str) -> Option<Position> {
        self.shared.mvcc.position()
    }

    fn unchanged_since(&self, prefix: &str, position: Position) -> Option<Position> {
        self.shared.mvcc.unchanged_since(prefix, position)
    }

    fn forget(&self, prefix: &str) {
        self.shared.mvcc.forget(prefix);
    }

    fn events(&self, prefix: &str, after: Position, until: Revision, limit: usize) -> Option<Vec<Event>> {
        self.shared.mvcc.events(prefix, after, until, limit)
    }

    fn write<'a>(&'a self, key: &'a str, expect: Expect, write: Write) -> BoxFuture<'a, Result<Written, StoreError>> {
        self.ask(move |answer| Command::Write {
            key: key.to_owned(),
            expect,
            write,
            answer,
        })
        .boxed()
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<WatchStream, StoreError>> {
        ready(self.shared.mvcc.watch(prefix, after)).boxed()
    }

    fn request_progress(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.shared.mvcc.request_progress();
        ready(self.shared.mvcc.view().map(drop)).boxed()
    }

    fn snapshot_to<'a>(&'a self, file: &'a Path) -> BoxFuture<'a, Result<(), StoreError>> {
        async move {
            self.shared.mvcc.view()?;
            let (shared, path, file) = (self.shared.clone(), self.path.clone(), file.to_owned());
            let copied = move || shared.copying(|show| EmbeddedStore::copy_to(&path, &file, show));
            let copied = tokio::task::spawn_blocking(copied);
            copied.await.unwrap_or_else(|_| Err(self.ended()))
        }
        .boxed()
    }

    fn copy(&self) -> Option<BoxFuture<'_, Result<StoreCopy, StoreError>>> {
        let made = async move {
            self.shared.mvcc.view()?;
            let permit = self.copying.clone().try_acquire_owned();
            let permit = permit.map_err(|_| StoreError::Unavailable("another copy is being made".to_owned()))?;
            let (shared, path) = (self.shared.clone(), self.path.clone());
            // The permit goes along: a copy whose client has left is made to its end, and keeps the next one waiting.
            let copied = tokio::task::spawn_blocking(move || {
                let file = shared.copying(|show| offline::copy_unseen(&path, show))?;
                Ok(StoreCopy { file, _permit: permit })
            });
            copied.await.unwrap_or_else(|_| Err(self.ended()))
        };
        Some(made.boxed())
    }

    fn size(&self) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        let bytes = |path: PathBuf| path.metadata().map_or(0, |file| file.len());
        let log = self.path.with_extension("db-wal");
        ready(Ok(Some(bytes(self.path.clone()) + bytes(log)))).boxed()
    }

    fn timeline(&self) -> Option<Timeline> {
        Some(Timeline::of(self.timeline))
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
        ready(self.shared.mvcc.current_revision()).boxed()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        self.ask(move |answer| Command::Compact { revision, answer }).boxed()
    }

    fn grant(&self, ttl: Duration) -> BoxFuture<'_, Result<LeaseId, StoreError>> {
        async move {
            self.shared.mvcc.view()?;
            let now = self.shared.clock.now();
            if let Some(id) = self.pool().reuse(now, ttl) {
                return Ok(id);
            }
            let id = self
                .ask(|answer| Command::Grant {
                    ttl: LeasePool::lifetime(ttl),
                    answer,
                })
                .await?;
            self.pool().granted(id, now, ttl);
            Ok(id)
        }
        .boxed()
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(match self.shared.fault() {
            None if self.queue.is_closed() => Err(self.ended()),
            None => self.shared.mvcc.view().map(drop),
            Some(fault) => Err(fault),
        })
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            self.shared.mvcc.close();
            self.stop_upkeep();
            let (answer, closed) = oneshot::channel();
            if self.queue.send(Command::Close { answer }).await.is_ok() {
                let _ = closed.await;
            }
        }
        .boxed()
    }
}
