//! Watches: history first, then changes as they happen, without a gap between the two.
//!
//! Each watch has a short queue that the writer fills. A watch that does not empty its queue is taken off the list and
//! its queue is emptied; when its reader comes back it continues from history, and only if history does not reach back
//! so far does it end with an error. So a slow reader costs itself, and a bounded amount of memory. An idle watch is
//! two small allocations and is never woken.

mod queue;
mod reader;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;

use self::queue::Queue;
use self::reader::Reader;
use super::Mvcc;
use super::version::Change;
use crate::{Revision, StoreError, WatchStream};

/// The open watches.
pub(crate) struct Watchers {
    registry: Mutex<Registry>,
    /// All changes up to this revision are in the queues.
    published: AtomicU64,
    /// The next time that [`Watchers::advance`] is called, all watches are to tell how far they are.
    wanted: AtomicBool,
}

#[derive(Default)]
struct Registry {
    /// By the folder of their prefix (what stands before its last slash, with the slash), and then by number.
    folders: HashMap<Arc<str>, BTreeMap<u64, Watcher>>,
    last_id: u64,
}

pub(super) struct Watcher {
    pub prefix: Arc<str>,
    /// Older changes come from history.
    pub after: u64,
    queue: Arc<Queue>,
}

impl Watchers {
    pub fn new(published: u64) -> Self {
        Watchers {
            registry: Mutex::default(),
            published: AtomicU64::new(published),
            wanted: AtomicBool::new(false),
        }
    }

    /// Queues changes for those who watch their keys. All changes of a revision come in one call: a reader finds all of
    /// them or none.
    pub fn publish(&self, changes: &[Arc<Change>]) {
        let mut registry = self.lock();
        for revision in changes.chunk_by(|a, b| a.revision == b.revision) {
            match revision {
                [change] => folders_of(&change.key).for_each(|folder| registry.queue(folder, revision)),
                _ => registry.queue_together(revision),
            }
            let queued = revision.last().map_or(0, |change| change.revision);
            self.published.fetch_max(queued, Ordering::AcqRel);
        }
    }

    /// Makes all watches tell how far they are.
    pub fn progress(&self) {
        let registry = self.lock();
        let watchers = registry.folders.values().flat_map(BTreeMap::values);
        watchers.for_each(|watcher| watcher.queue.ask());
    }

    /// As [`Watchers::progress`], but only when it is known again how far things are.
    pub fn want_progress(&self) {
        self.wanted.store(true, Ordering::Release);
    }

    /// Nothing happened up to `revision`.
    pub fn advance(&self, revision: u64) {
        let registry = self.lock();
        self.published.fetch_max(revision, Ordering::AcqRel);
        drop(registry);
        if self.wanted.swap(false, Ordering::AcqRel) {
            self.progress();
        }
    }

    pub fn close(&self) {
        let folders = std::mem::take(&mut self.lock().folders);
        let watchers = folders.values().flat_map(BTreeMap::values);
        watchers.for_each(|watcher| watcher.queue.close());
    }

    /// Ends some watches; what is queued is still read.
    pub fn forget_where(&self, is_over: impl Fn(&Watcher) -> bool) {
        let mut registry = self.lock();
        let mut gone = Vec::new();
        registry.folders.retain(|_, watchers| {
            gone.extend(watchers.extract_if(.., |_, watcher| is_over(watcher)));
            !watchers.is_empty()
        });
        drop(registry);
        gone.iter().for_each(|(_, watcher)| watcher.queue.forget());
    }

    /// All changes up to here are in the queues: whoever finds a queue empty after having read this has seen them all.
    fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    /// Queues those changes of one revision that are in a folder.
    fn queue(&mut self, folder: &str, changes: &[Arc<Change>]) {
        let Some(watchers) = self.folders.get_mut(folder) else {
            return;
        };
        let wants = |watcher: &Watcher, change: &Change| {
            change.revision > watcher.after && change.key.starts_with(&*watcher.prefix)
        };
        watchers.retain(|_, watcher| match changes {
            [change] => !wants(watcher, change) || watcher.queue.push(changes),
            _ => {
                let wanted = changes.iter().filter(|change| wants(watcher, change));
                let wanted: Vec<_> = wanted.cloned().collect();
                wanted.is_empty() || watcher.queue.push(&wanted)
            }
        });
        if watchers.is_empty() {
            self.folders.remove(folder);
        }
    }

    /// Queues several changes of one revision.
    fn queue_together(&mut self, changes: &[Arc<Change>]) {
        let mut watched: HashMap<&str, Vec<Arc<Change>>> = HashMap::new();
        for change in changes {
            for folder in folders_of(&change.key).filter(|folder| self.folders.contains_key(*folder)) {
                watched.entry(folder).or_default().push(change.clone());
            }
        }
        watched.iter().for_each(|(folder, changes)| self.queue(folder, changes));
    }
}

/// All folders that a key is in.
fn folders_of(key: &str) -> impl Iterator<Item = &str> {
    let folders = key.match_indices('/').map(|(slash, _)| &key[..=slash]);
    folders.chain(std::iter::once(""))
}

fn folder(prefix: &str) -> &str {
    prefix.rfind('/').map_or("", |slash| &prefix[..=slash])
}

/// A place on the list of watchers; leaves it when dropped.
struct Subscription {
    mvcc: Arc<Mvcc>,
    prefix: Arc<str>,
    id: u64,
    queue: Arc<Queue>,
    /// History up to here has to be read before the queue.
    history_until: u64,
}

impl Subscription {
    fn new(mvcc: &Arc<Mvcc>, prefix: &Arc<str>, after: u64) -> Result<Self, StoreError> {
        let queue = Arc::new(Queue::default());
        let mut registry = mvcc.watchers.lock();
        // Read under the registry's lock: what is applied later is published later too, hence queued here.
        let state = mvcc.read();
        if let Some(why) = &state.ended {
            return Err(why.clone());
        }
        if !state.reaches_back_to(after) {
            return Err(StoreError::Compacted {
                oldest: Revision(state.view.oldest()),
            });
        }
        let history_until = state.view.revision();
        drop(state);
        registry.last_id += 1;
        let id = registry.last_id;
        let watcher = Watcher {
            prefix: prefix.clone(),
            after: after.max(history_until),
            queue: queue.clone(),
        };
        let folder = folder(prefix);
        match registry.folders.get_mut(folder) {
            Some(watchers) => watchers.insert(id, watcher),
            None => {
                let watchers = BTreeMap::from([(id, watcher)]);
                registry.folders.insert(Arc::from(folder), watchers);
                None
            }
        };
        drop(registry);
        Ok(Subscription {
            mvcc: mvcc.clone(),
            prefix: prefix.clone(),
            id,
            queue,
            history_until,
        })
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut registry = self.mvcc.watchers.lock();
        let folder = folder(&self.prefix);
        let Some(watchers) = registry.folders.get_mut(folder) else {
            return;
        };
        watchers.remove(&self.id);
        if watchers.is_empty() {
            registry.folders.remove(folder);
        }
    }
}

pub(super) fn stream(mvcc: Arc<Mvcc>, prefix: &str, after: u64) -> Result<WatchStream, StoreError> {
    let subscription = Subscription::new(&mvcc, &Arc::from(prefix), after)?;
    Ok(Reader::new(subscription, after).boxed())
}
