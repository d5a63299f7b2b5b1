//! A store that notes what it is asked for.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use keelson_storage::{
    Event, Expect, Got, ListOptions, Listed, Position, Revision, Snapshot, Store, StoreError, WatchStream, Write,
    Written,
};

use crate::forwarded::forwarded;

/// The keys and prefixes that a store was asked for, in the order of the requests.
#[derive(Clone, Default)]
pub struct Asked {
    keys: Arc<Mutex<Vec<String>>>,
    prefixes: Arc<Mutex<Vec<String>>>,
}

impl Asked {
    /// Keys since the last call.
    pub fn keys(&self) -> Vec<String> {
        std::mem::take(&mut self.keys.lock().unwrap())
    }

    /// Prefixes since the last call.
    pub fn prefixes(&self) -> Vec<String> {
        std::mem::take(&mut self.prefixes.lock().unwrap())
    }
}

/// Asks another store and notes it.
pub struct Recorded {
    store: Arc<dyn Store>,
    asked: Asked,
}

impl Recorded {
    pub fn new(store: Arc<dyn Store>, asked: &Asked) -> Self {
        let asked = asked.clone();
        Recorded { store, asked }
    }

    fn key(&self, key: &str) {
        self.asked.keys.lock().unwrap().push(key.to_owned());
    }

    fn prefix(&self, prefix: &str) {
        self.asked.prefixes.lock().unwrap().push(prefix.to_owned());
    }
}

impl Store for Recorded {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Got, StoreError>> {
        self.key(key);
        self.store.get(key)
    }

    fn list<'a>(&'a self, prefix: &'a str, options: ListOptions) -> BoxFuture<'a, Result<Listed, StoreError>> {
        self.prefix(prefix);
        self.store.list(prefix, options)
    }

    fn snapshot<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Snapshot, StoreError>> {
        self.prefix(prefix);
        self.store.snapshot(prefix)
    }

    fn held(&self, prefix: &str) -> Option<Snapshot> {
        self.prefix(prefix);
        self.store.held(prefix)
    }

    fn events(&self, prefix: &str, after: Position, until: Revision, limit: usize) -> Option<Vec<Event>> {
        self.prefix(prefix);
        self.store.events(prefix, after, until, limit)
    }

    fn write<'a>(&'a self, key: &'a str, expect: Expect, write: Write) -> BoxFuture<'a, Result<Written, StoreError>> {
        self.key(key);
        self.store.write(key, expect, write)
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<WatchStream, StoreError>> {
        self.prefix(prefix);
        self.store.watch(prefix, after)
    }

    forwarded!(
        request_progress,
        snapshot_to,
        current_revision,
        compact,
        grant,
        health,
        close,
    );
}
