//! A store that takes its time: answers come late, memory is that of a moment ago, writes fail before they are done or
//! behind it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use keelson_storage::memory::MemoryStore;
use keelson_storage::simulation::random::Dice;
use keelson_storage::{
    Entry, Event, Expect, Got, LeaseId, ListOptions, Listed, Position, Recent, Revision, Snapshot, Store, StoreError,
    Timeline, WatchStream, Write, Written,
};
use tokio::time::sleep;

/// A write that was done: the value, or that the key is gone.
pub struct Done {
    pub key: String,
    pub value: Option<Bytes>,
    pub revision: Revision,
}

/// See the module's description.
pub struct Slow {
    pub inner: Arc<MemoryStore>,
    dice: Dice,
    /// Of a thousand writes.
    failing: usize,
    pub done: Mutex<Vec<Done>>,
    /// What was at each key before the last write.
    before: Mutex<BTreeMap<String, Entry>>,
}

impl Slow {
    pub fn new(inner: Arc<MemoryStore>, dice: Dice, failing: usize) -> Slow {
        Slow {
            inner,
            dice,
            failing,
            done: Mutex::default(),
            before: Mutex::default(),
        }
    }

    async fn pause(&self) {
        match self.dice.below(4) {
            0 => {}
            1 => tokio::task::yield_now().await,
            _ => sleep(self.dice.millis(8)).await,
        }
    }

    async fn written(&self, key: &str, expect: Expect, write: Write) -> Result<Written, StoreError> {
        let lost = || StoreError::Unavailable("the connection is lost".to_owned());
        self.pause().await;
        let fails = self.dice.chance(self.failing);
        if fails && self.dice.chance(500) {
            return Err(lost());
        }
        let value = match &write {
            Write::Put { value, .. } => Some(value.clone()),
            Write::Delete => None,
        };
        let before = self.inner.get(key).await?.entry;
        let written = self.inner.write(key, expect, write).await?;
        if let Written::Done { revision } = &written {
            let mut known = self.before.lock().unwrap();
            match before {
                Some(entry) => drop(known.insert(key.to_owned(), entry)),
                None => drop(known.remove(key)),
            }
            let (key, revision) = (key.to_owned(), *revision);
            self.done.lock().unwrap().push(Done { key, value, revision });
        }
        self.pause().await;
        match fails {
            true => Err(lost()),
            false => Ok(written),
        }
    }
}

impl Store for Slow {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Got, StoreError>> {
        async move {
            self.pause().await;
            let got = self.inner.get(key).await;
            self.pause().await;
            got
        }
        .boxed()
    }
    fn list<'a>(&'a self, prefix: &'a str, options: ListOptions) -> BoxFuture<'a, Result<Listed, StoreError>> {
        async move {
            self.pause().await;
            self.inner.list(prefix, options).await
        }
        .boxed()
    }
    fn recent<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Recent, StoreError>> {
        async move {
            self.pause().await;
            self.inner.recent(prefix).await
        }
        .boxed()
    }
    fn snapshot<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Snapshot, StoreError>> {
        self.inner.snapshot(prefix)
    }
    fn held(&self, prefix: &str) -> Option<Snapshot> {
        self.inner.held(prefix)
    }
    fn recall(&self, prefix: &str, key: &str) -> Option<Entry> {
        match self.dice.below(4) {
            0 => None,
            1 => self.before.lock().unwrap().get(key).cloned(),
            _ => self.inner.recall(prefix, key),
        }
    }
    fn events(&self, prefix: &str, after: Position, until: Revision, limit: usize) -> Option<Vec<Event>> {
        self.inner.events(prefix, after, until, limit)
    }
    fn write<'a>(&'a self, key: &'a str, expect: Expect, write: Write) -> BoxFuture<'a, Result<Written, StoreError>> {
        self.written(key, expect, write).boxed()
    }
    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<WatchStream, StoreError>> {
        self.inner.watch(prefix, after)
    }
    fn request_progress(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.request_progress()
    }
    fn timeline(&self) -> Option<Timeline> {
        self.inner.timeline()
    }
    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
        self.inner.current_revision()
    }
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.compact(revision)
    }
    fn grant(&self, ttl: Duration) -> BoxFuture<'_, Result<LeaseId, StoreError>> {
        self.inner.grant(ttl)
    }
    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.health()
    }
    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
