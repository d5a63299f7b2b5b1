//! A store that is put back to another state while it is served, as etcd restored from a backup is, or whose memory
//! lags behind it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use keelson_storage::{
    Entry, Event, Expect, Got, LeaseId, ListOptions, Listed, Position, Recent, Revision, Snapshot, Store, StoreError,
    Timeline, WatchStream, Write, Written,
};

/// One store in the place of another.
pub struct Swapped {
    now: RwLock<Arc<dyn Store>>,
    lags: AtomicBool,
    listed: Mutex<Vec<(String, usize)>>,
    /// The store from the next snapshot on.
    next: Mutex<Option<Arc<dyn Store>>>,
}

impl Swapped {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Swapped {
            now: RwLock::new(store),
            lags: AtomicBool::new(false),
            listed: Mutex::default(),
            next: Mutex::default(),
        }
    }

    /// Whether memory lags behind from now on.
    pub fn set_lags(&self, lags: bool) {
        self.lags.store(lags, Ordering::Relaxed);
    }

    /// Prefixes and limits of lists since the last call.
    pub fn listed(&self) -> Vec<(String, usize)> {
        std::mem::take(&mut self.listed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next read of a prefix is what finds out that this is the store.
    pub fn put_back_unseen(&self, store: Arc<dyn Store>) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(store);
    }

    fn take_next(&self) {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(next) = next {
            self.put_back(next);
        }
    }

    /// From now on this is the store.
    pub fn put_back(&self, store: Arc<dyn Store>) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = store;
    }

    pub fn now(&self) -> Arc<dyn Store> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Store for Swapped {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Got, StoreError>> {
        async move { self.now().get(key).await }.boxed()
    }
    fn list<'a>(&'a self, prefix: &'a str, options: ListOptions) -> BoxFuture<'a, Result<Listed, StoreError>> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.push((prefix.to_owned(), options.limit));
        async move { self.now().list(prefix, options).await }.boxed()
    }
    fn recent<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Recent, StoreError>> {
        async move {
            self.take_next();
            match self.lags.load(Ordering::Relaxed) {
                true => self.now().current_revision().await.map(Recent::Behind),
                false => self.now().recent(prefix).await,
            }
        }
        .boxed()
    }
    fn snapshot<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Snapshot, StoreError>> {
        async move {
            self.take_next();
            self.now().snapshot(prefix).await
        }
        .boxed()
    }
    fn held(&self, prefix: &str) -> Option<Snapshot> {
        self.now().held(prefix)
    }
    fn recall(&self, prefix: &str, key: &str) -> Option<Entry> {
        self.now().recall(prefix, key)
    }
    fn events(&self, prefix: &str, after: Position, until: Revision, limit: usize) -> Option<Vec<Event>> {
        self.now().events(prefix, after, until, limit)
    }
    fn write<'a>(&'a self, key: &'a str, expect: Expect, write: Write) -> BoxFuture<'a, Result<Written, StoreError>> {
        async move { self.now().write(key, expect, write).await }.boxed()
    }
    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<WatchStream, StoreError>> {
        async move { self.now().watch(prefix, after).await }.boxed()
    }
    fn request_progress(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        async move { self.now().request_progress().await }.boxed()
    }
    fn timeline(&self) -> Option<Timeline> {
        self.now().timeline()
    }
    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
        async move { self.now().current_revision().await }.boxed()
    }
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        async move { self.now().compact(revision).await }.boxed()
    }
    fn grant(&self, ttl: Duration) -> BoxFuture<'_, Result<LeaseId, StoreError>> {
        async move { self.now().grant(ttl).await }.boxed()
    }
    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        async move { self.now().health().await }.boxed()
    }
    fn close(&self) -> BoxFuture<'_, ()> {
        async move { self.now().close().await }.boxed()
    }
}
