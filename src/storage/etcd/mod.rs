//! A store in etcd 3.5 or later, which several servers share.
//!
//! Keys and values stand in etcd as they are given. Reads are linearizable. A request that could not reach a member is
//! tried again; a write only if it can't have happened. Watches outlive connections and members.

pub(crate) mod api;
pub(crate) mod calls;
mod compactor;
pub(crate) mod connect;
mod convert;
mod grpc;
mod keeper;
mod liveness;
mod members;
mod mirror;
mod past;
mod reads;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;
mod watch;
pub(crate) mod witness;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::sync::watch as signals;

use self::calls::{Calls, ListFailure};
use self::mirror::Mirror;
use self::reads::Reads;
use self::watch::Signal;
use crate::lease_pool::LeasePool;
use crate::{
    Clock, Entry, EtcdConfig, Event, Expect, Got, HistoryLimits, LeaseId, ListOptions, Listed, Position, Recent,
    Revision, Snapshot, Store, StoreError, SystemClock, Timeline, WatchStream, Write, Written,
};

/// History of a mirror beyond this many bytes is cut to half of it.
const MIRROR_HISTORY_BYTES: usize = 32 << 20;

/// A [`Store`] in etcd.
pub struct EtcdStore {
    calls: Calls,
    leases: Mutex<LeasePool>,
    clock: SystemClock,
    /// By prefix.
    mirrors: Mutex<HashMap<String, Arc<Mirror>>>,
    /// What is read where they lag.
    reads: Arc<Reads>,
    /// How much history the mirrors keep.
    history: HistoryLimits,
    signal: signals::Sender<Signal>,
}

impl EtcdStore {
    /// Connects, and returns when a member has answered; gives up after 5 s. What goes on in the background does so on
    /// the runtime that calls this.
    pub async fn connect(config: &EtcdConfig) -> Result<Self, StoreError> {
        let calls = Calls::connect(config).await?;
        let begun = Self::begin(calls, config.compaction_interval).await;
        begun.map_err(|error| match error {
            StoreError::Unavailable(reason) => {
                StoreError::Unavailable(format!("{} at {}", reason, config.endpoints.join(",")))
            }
            other => other,
        })
    }

    /// Begins when a member has answered.
    pub(crate) async fn begin(calls: Calls, compaction_interval: Option<Duration>) -> Result<Self, StoreError> {
        calls.current_revision().await?;
        let (signal, signals) = signals::channel(Signal::default());
        members::begin(&calls, signals.clone()).await;
        if let Some(interval) = compaction_interval {
            calls.tasks.spawn(compactor::run(calls.clone(), interval, signals));
        }
        Ok(EtcdStore {
            calls,
            leases: Mutex::default(),
            clock: SystemClock::new(),
            mirrors: Mutex::default(),
            reads: Arc::default(),
            history: HistoryLimits {
                bytes: MIRROR_HISTORY_BYTES,
                ..HistoryLimits::default()
            },
            signal,
        })
    }

    /// Lets a call go on unless the store is closed, or gets closed meanwhile.
    async fn unless_closed<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let mut signal = self.signal.subscribe();
        tokio::select! {
            biased;
            _ = signal.wait_for(|signal| signal.closed) => Err(StoreError::Closed),
            done = call => done,
        }
    }

    fn mirrors(&self) -> MutexGuard<'_, HashMap<String, Arc<Mirror>>> {
        self.mirrors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mirror that holds a key or prefix.
    fn mirror_of(&self, key: &str) -> Option<Arc<Mirror>> {
        let mirrors = self.mirrors();
        let mut folders = key.rmatch_indices('/').map(|(slash, _)| &key[..=slash]);
        folders.find_map(|folder| mirrors.get(folder)).cloned()
    }

    /// The mirror that holds a prefix, begun if there is none.
    fn mirror(&self, prefix: &str) -> Arc<Mirror> {
        self.mirror_of(prefix).unwrap_or_else(|| {
            let start = || Mirror::start(self.calls.clone(), prefix, self.history);
            self.mirrors().entry(prefix.to_owned()).or_insert_with(start).clone()
        })
    }

    /// Tells mirrors of a write before it is answered.
    fn wrote(&self, key: &str, revision: Revision) {
        let mirrors = self.mirrors();
        for (slash, _) in key.match_indices('/') {
            if let Some(mirror) = mirrors.get(&key[..=slash]) {
                mirror.wrote(key, revision);
            }
        }
    }

    async fn recent_now(&self, prefix: &str) -> Result<Recent, StoreError> {
        let mirror = self.mirror(prefix);
        let revision = self.calls.current_revision().await?;
        let held = mirror.snapshot(revision).await;
        Ok(held.map_or(Recent::Behind(revision), Recent::Held))
    }

    async fn snapshot_now(&self, prefix: &str) -> Result<Snapshot, StoreError> {
        match self.recent_now(prefix).await? {
            Recent::Held(snapshot) => Ok(snapshot),
            Recent::Behind(revision) => {
                let all = ListOptions::default();
                let read = self.reads.list(&self.calls, prefix, &all, revision).await?;
                Ok(read.snapshot())
            }
        }
    }

    fn end(&self) {
        self.signal.send_modify(|signal| signal.closed = true);
        self.mirrors().values().for_each(|mirror| mirror.close());
    }

    fn pool(&self) -> MutexGuard<'_, LeasePool> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn list_now(&self, prefix: &str, options: &ListOptions) -> Result<Listed, StoreError> {
        if let (None, Some(at_least)) = (options.revision, options.at_least) {
            let read = self.reads.list(&self.calls, prefix, options, at_least).await?;
            return Ok(read.listed.clone());
        }
        let falls = self.calls.witness.falls();
        self.check_number(options.revision.unwrap_or_default()).await?;
        let listed = match self.calls.list(prefix, options).await {
            Err(ListFailure::Other(error)) => return Err(error),
            listed => listed,
        };
        if let Some(revision) = options.revision {
            // Not before: etcd may have gone back until the answer was given.
            self.check_past(prefix, revision, falls).await?;
        }
        match listed {
            Ok(listed) => Ok(listed),
            Err(ListFailure::Compacted) => Err(StoreError::Compacted {
                oldest: watch::oldest(&self.calls).await,
            }),
            Err(ListFailure::Future) => {
                let current = self.calls.current_revision().await?;
                Err(StoreError::Future {
                    wanted: options.revision.unwrap_or_default(),
                    current,
                })
            }
            Err(ListFailure::Other(error)) => Err(error),
        }
    }

    /// A watch that memory can't serve, or not before etcd has confirmed that its revision has come.
    async fn watch_now(&self, prefix: &str, after: Revision) -> Result<WatchStream, StoreError> {
        let falls = self.calls.witness.falls();
        match self.mirror_of(prefix) {
            Some(mirror) if !mirror.is_settled().await => return Err(in_doubt()),
            Some(mirror) if mirror.is_followed() => {
                self.confirm(prefix, after, falls).await?;
                if let Some(stream) = mirror.watch_ahead(prefix, after) {
                    return Ok(stream);
                }
            }
            _ => {}
        }
        let started = watch::start(self.calls.clone(), prefix, after, falls, self.signal.subscribe()).await?;
        // Not before: etcd may go back as long as no stream is open that would break.
        self.confirm(prefix, after, falls).await?;
        Ok(started)
    }

    /// An error for a revision that has not come, or may be of a past that was lost since etcd had gone back so often.
    async fn confirm(&self, prefix: &str, revision: Revision, falls: u64) -> Result<(), StoreError> {
        let current = self.calls.current_revision().await?;
        self.check_past(prefix, revision, falls).await?;
        match revision > current {
            true => Err(StoreError::Future {
                wanted: revision,
                current,
            }),
            false => Ok(()),
        }
    }

    /// An error if a revision may be of another past than the one that etcd has shown by now: etcd has gone back more
    /// often than so, or has perhaps done so and nobody has noticed yet.
    async fn check_past(&self, prefix: &str, revision: Revision, falls: u64) -> Result<(), StoreError> {
        let mirror = self.mirror_of(prefix);
        if let Some(mirror) = &mirror
            && !mirror.is_alive().await
        {
            return Err(in_doubt());
        }
        let witness = &self.calls.witness;
        let is_lost = witness.falls() != falls || witness.may_be_lost(revision);
        match is_lost || mirror.is_some_and(|mirror| mirror.is_in_doubt(revision)) {
            true => Err(witness.compacted()),
            false => Ok(()),
        }
    }

    /// An error for a revision that etcd has no number for: it would read that as none at all.
    async fn check_number(&self, revision: Revision) -> Result<(), StoreError> {
        match i64::try_from(revision.0) {
            Ok(_) => Ok(()),
            Err(_) => Err(StoreError::Future {
                wanted: revision,
                current: self.calls.current_revision().await?,
            }),
        }
    }

    async fn grant_now(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        let now = self.clock.now();
        if let Some(id) = self.pool().reuse(now, ttl) {
            return Ok(id);
        }
        let seconds = LeasePool::lifetime(ttl).as_secs_f64().ceil() as i64;
        let id = self.calls.grant(seconds).await?;
        self.pool().granted(id, now, ttl);
        Ok(id)
    }
}

fn in_doubt() -> StoreError {
    StoreError::Unavailable("etcd: it can't be told whether it is still what it was".to_owned())
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.end();
    }
}

impl Store for EtcdStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Got, StoreError>> {
        self.unless_closed(async move {
            let (entry, revision) = self.calls.get(key).await?;
            let entry = match self.mirror_of(key) {
                Some(mirror) => entry.map(|entry| mirror.share(entry)),
                None => entry,
            };
            Ok(Got { entry, revision })
        })
        .boxed()
    }

    fn list<'a>(&'a self, prefix: &'a str, options: ListOptions) -> BoxFuture<'a, Result<Listed, StoreError>> {
        self.unless_closed(async move { self.list_now(prefix, &options).await })
            .boxed()
    }

    fn snapshot<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Snapshot, StoreError>> {
        self.unless_closed(self.snapshot_now(prefix)).boxed()
    }

    fn recent<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Recent, StoreError>> {
        self.unless_closed(self.recent_now(prefix)).boxed()
    }

    fn held(&self, prefix: &str) -> Option<Snapshot> {
        self.mirror_of(prefix)?.held()
    }

    fn held_position(&self, prefix: &str) -> Option<Position> {
        self.mirror_of(prefix)?.position()
    }

    fn recall(&self, prefix: &str, key: &str) -> Option<Entry> {
        let closed = self.signal.borrow().closed;
        (!closed).then(|| self.mirror(prefix))?.recall(key)
    }

    fn forget(&self, prefix: &str) {
        let gone = self
            .mirrors()
            .extract_if(|held, _| held.starts_with(prefix))
            .collect::<Vec<_>>();
        gone.iter().for_each(|(_, mirror)| mirror.close());
    }

    fn events(&self, prefix: &str, after: Position, until: Revision, limit: usize) -> Option<Vec<Event>> {
        self.mirror_of(prefix)?.events(prefix, after, until, limit)
    }

    fn write<'a>(&'a self, key: &'a str, expect: Expect, write: Write) -> BoxFuture<'a, Result<Written, StoreError>> {
        let call = async move {
            let written = self.calls.write(key, expect, &write).await;
            match &written {
                Ok(Written::Done { revision }) => self.wrote(key, *revision),
                Err(StoreError::LeaseNotFound(lease)) => self.pool().forget(*lease),
                Ok(Written::Conflict { .. }) | Err(_) => {}
            }
            written
        };
        self.unless_closed(call).boxed()
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<WatchStream, StoreError>> {
        if let Some(stream) = self.mirror_of(prefix).and_then(|mirror| mirror.watch(prefix, after)) {
            return ready(Ok(stream)).boxed();
        }
        self.unless_closed(self.watch_now(prefix, after)).boxed()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn timeline(&self) -> Option<Timeline> {
        Some(self.calls.witness.timeline())
    }

    fn is_other_timeline(&self, other: Timeline) -> bool {
        self.calls.witness.is_other_timeline(other)
    }

    fn request_progress(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.unless_closed(async {
            self.signal.send_modify(|signal| signal.progress += 1);
            self.mirrors().values().for_each(|mirror| mirror.tell_watches());
            Ok(())
        })
        .boxed()
    }

    fn size(&self) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        self.unless_closed(async { self.calls.size().await.map(Some) }).boxed()
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
        self.unless_closed(self.calls.current_revision()).boxed()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        self.unless_closed(async move {
            self.check_number(revision).await?;
            if self.calls.compact(revision).await? {
                return Ok(());
            }
            Err(StoreError::Future {
                wanted: revision,
                current: self.calls.current_revision().await?,
            })
        })
        .boxed()
    }

    fn grant(&self, ttl: Duration) -> BoxFuture<'_, Result<LeaseId, StoreError>> {
        self.unless_closed(self.grant_now(ttl)).boxed()
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.unless_closed(self.calls.health()).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async { self.end() }.boxed()
    }
}
