//! A store that ends with its process: for tests and servers that are thrown away.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use crate::lease_pool::LeasePool;
use crate::maintenance::{EXPIRE, Maintenance, Schedule};
use crate::mvcc::{Batch, Mvcc};
use crate::timeline;
use crate::{
    Clock, Event, Expect, Got, HistoryLimits, LeaseId, ListOptions, Listed, Position, Revision, Snapshot, Store,
    StoreError, SystemClock, Timeline, WatchStream, Write, Written,
};

/// A [`Store`] in memory.
pub struct MemoryStore {
    heart: Arc<Heart>,
    /// `None`: somebody else does it.
    upkeep: Option<Maintenance>,
    leases: Mutex<LeasePool>,
    clock: Arc<dyn Clock>,
    timeline: Timeline,
}

struct Heart {
    mvcc: Arc<Mvcc>,
    /// Held from the plan of a write until it is visible.
    writer: Mutex<()>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(limits: HistoryLimits) -> Result<Self, StoreError> {
        Self::with_clock(limits, Arc::new(SystemClock::new()))
    }

    /// An empty store whose leases and history go by `clock`.
    pub fn with_clock(limits: HistoryLimits, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let (mut store, upkeep) = Self::without_upkeep(limits, clock);
        store.upkeep = Some(Maintenance::spawn(upkeep)?);
        Ok(store)
    }

    /// An empty store, and what is to be called from time to time for its leases and history.
    pub(crate) fn without_upkeep(
        limits: HistoryLimits,
        clock: Arc<dyn Clock>,
    ) -> (Self, impl FnMut() + Send + 'static) {
        let heart = Arc::new(Heart {
            mvcc: Mvcc::empty(),
            writer: Mutex::new(()),
        });
        let mut schedule = Schedule::new(heart.mvcc.clone(), clock.clone(), limits);
        let busy = heart.clone();
        let upkeep = move || {
            let due = schedule.due();
            busy.expire(&due.expired);
            if let Some(revision) = due.compact {
                busy.mvcc.compact(revision);
            }
        };
        let store = MemoryStore {
            heart,
            upkeep: None,
            leases: Mutex::default(),
            clock,
            timeline: Timeline::of(timeline::random()),
        };
        (store, upkeep)
    }

    fn mvcc(&self) -> &Arc<Mvcc> {
        &self.heart.mvcc
    }

    fn grant_now(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        self.mvcc().view()?;
        let now = self.clock.now();
        let mut pool = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = pool.reuse(now, ttl) {
            return Ok(id);
        }
        let mut leases = self.mvcc().leases();
        let id = leases.next_id();
        leases.insert(id, now + LeasePool::lifetime(ttl));
        pool.granted(id, now, ttl);
        Ok(id)
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        self.mvcc().close();
    }
}

impl Heart {
    fn writer(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, key: &str, expect: Expect, write: Write) -> Result<Written, StoreError> {
        let _writer = self.writer();
        let mut batch = Batch::new(&self.mvcc)?;
        let written = batch.write(key, expect, write)?;
        self.mvcc.apply(&batch.into_changes());
        Ok(written)
    }

    fn expire(&self, mut leases: &[LeaseId]) {
        while !leases.is_empty() {
            let _writer = self.writer();
            let Ok(mut batch) = Batch::new(&self.mvcc) else { return };
            let (ended, rest) = leases.split_at(batch.expire(leases, EXPIRE));
            self.mvcc.apply(&batch.into_changes());
            let mut known = self.mvcc.leases();
            ended.iter().for_each(|lease| known.remove(*lease));
            leases = rest;
        }
    }
}

impl Store for MemoryStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Got, StoreError>> {
        ready(self.mvcc().get(key)).boxed()
    }

    fn list<'a>(&'a self, prefix: &'a str, options: ListOptions) -> BoxFuture<'a, Result<Listed, StoreError>> {
        async move { self.mvcc().list(prefix, &options) }.boxed()
    }

    fn snapshot<'a>(&'a self, _prefix: &'a str) -> BoxFuture<'a, Result<Snapshot, StoreError>> {
        ready(self.mvcc().snapshot()).boxed()
    }

    fn held(&self, _prefix: &str) -> Option<Snapshot> {
        self.mvcc().snapshot().ok()
    }

    fn held_position(&self, _prefix: &str) -> Option<Position> {
        self.mvcc().position()
    }

    fn unchanged_since(&self, prefix: &str, position: Position) -> Option<Position> {
        self.mvcc().unchanged_since(prefix, position)
    }

    fn forget(&self, prefix: &str) {
        self.mvcc().forget(prefix);
    }

    fn events(&self, prefix: &str, after: Position, until: Revision, limit: usize) -> Option<Vec<Event>> {
        self.mvcc().events(prefix, after, until, limit)
    }

    fn write<'a>(&'a self, key: &'a str, expect: Expect, write: Write) -> BoxFuture<'a, Result<Written, StoreError>> {
        async move { self.heart.write(key, expect, write) }.boxed()
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<WatchStream, StoreError>> {
        ready(self.mvcc().watch(prefix, after)).boxed()
    }

    fn request_progress(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.mvcc().request_progress();
        ready(self.mvcc().view().map(drop)).boxed()
    }

    fn timeline(&self) -> Option<Timeline> {
        Some(self.timeline)
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
        ready(self.mvcc().current_revision()).boxed()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        async move {
            if self.mvcc().check_compaction(revision)? {
                self.mvcc().compact(revision);
            }
            Ok(())
        }
        .boxed()
    }

    fn grant(&self, ttl: Duration) -> BoxFuture<'_, Result<LeaseId, StoreError>> {
        ready(self.grant_now(ttl)).boxed()
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(self.mvcc().view().map(drop)).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            self.mvcc().close();
            if let Some(upkeep) = &self.upkeep {
                upkeep.stop();
            }
        }
        .boxed()
    }
}
