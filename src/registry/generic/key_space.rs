//! Key spaces: the prefixes of the store that resources take. When a resource has gone, and with it the last request
//! that could ask for its objects, the store forgets its prefix.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use keelson_storage::Store;

/// The key spaces of one server that are in use.
#[derive(Clone, Default)]
pub(super) struct KeySpaces(Arc<Mutex<HashMap<String, Weak<KeySpace>>>>);

/// One of them, which all resources share that have had its prefix.
pub(super) struct KeySpace {
    prefix: String,
    store: Arc<dyn Store>,
    /// Resources that are served from it. None: it is to be forgotten.
    served: AtomicUsize,
    all: KeySpaces,
}

impl KeySpaces {
    /// That of a prefix, for a resource that is served from now on.
    pub fn take(&self, prefix: &str, store: &Arc<dyn Store>) -> Arc<KeySpace> {
        let mut all = self.lock();
        let used = all.get(prefix).and_then(Weak::upgrade);
        let space = used.unwrap_or_else(|| {
            Arc::new(KeySpace {
                prefix: prefix.to_owned(),
                store: store.clone(),
                served: AtomicUsize::new(0),
                all: self.clone(),
            })
        });
        space.served.fetch_add(1, Ordering::AcqRel);
        all.insert(prefix.to_owned(), Arc::downgrade(&space));
        space
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<KeySpace>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeySpace {
    /// A resource that took it is not served any more. When none is, and the last request has ended, the store forgets
    /// the prefix.
    pub fn release(&self) {
        self.served.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for KeySpace {
    fn drop(&mut self) {
        // The server as a whole ends.
        if self.served.load(Ordering::Acquire) > 0 {
            return;
        }
        // Under the lock: who takes the prefix again begins after the store has forgotten it.
        let mut all = self.all.lock();
        if all.get(&self.prefix).is_some_and(|used| used.strong_count() > 0) {
            return;
        }
        all.remove(&self.prefix);
        self.store.forget(&self.prefix);
    }
}

#[cfg(test)]
mod tests {
    use keelson_storage::memory::MemoryStore;
    use keelson_storage::{HistoryLimits, Revision, StoreError};

    use futures_util::StreamExt;

    use super::*;

    #[tokio::test]
    async fn a_prefix_is_forgotten_with_its_last_user() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap());
        let spaces = KeySpaces::default();
        let first = spaces.take("/a/", &store);
        let mut watch = store.watch("/a/", Revision(1)).await.unwrap();
        // Taken again before the last request of the first one has ended.
        let second = spaces.take("/a/", &store);
        first.release();
        drop(first);
        let told = |item: Option<Result<_, _>>| matches!(item, Some(Err(StoreError::Closed)));
        assert!(futures_util::poll!(watch.next()).is_pending());
        second.release();
        drop(second);
        assert!(told(watch.next().await));
        assert!(spaces.lock().is_empty());
    }
}
