//! Watches: history first, then changes as they happen, without a gap between the two.
//!
//! Each watch has a short queue that the writer fills. A watch that does not empty its queue is taken off the list; when
//! its reader comes back it continues from history, and only if history does not reach back so far does it end with
//! an error. So a slow reader costs itself, and a bounded amount of memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::Mvcc;
use super::version::Change;
use crate::{Event, Revision, StoreError, WatchItem, WatchStream};

/// Changes that wait in a watch's queue at most.
const QUEUE: usize = 1024;
/// Events in one item at most.
const EVENTS_PER_ITEM: usize = 256;
/// Changes of history looked at under one lock.
const SCAN: usize = 1024;

enum Note {
    Change(Arc<Change>),
    Progress(u64),
}

/// The open watches.
pub(crate) struct Watchers {
    registry: Mutex<Registry>,
}

struct Registry {
    /// By the folder of their prefix: what stands before its last slash, with the slash.
    folders: HashMap<Arc<str>, Vec<Watcher>>,
    last_id: u64,
    /// Changes up to this revision are in the queues.
    published: u64,
}

struct Watcher {
    id: u64,
    prefix: Arc<str>,
    /// Older changes come from history.
    after: u64,
    queue: Sender<Note>,
}

impl Watchers {
    pub fn new(published: u64) -> Self {
        let registry = Registry {
            folders: HashMap::new(),
            last_id: 0,
            published,
        };
        Watchers {
            registry: Mutex::new(registry),
        }
    }

    /// Queues changes for those who watch their keys.
    pub fn publish(&self, changes: &[Arc<Change>]) {
        let mut registry = self.lock();
        for change in changes {
            registry.published = change.revision;
            for (slash, _) in change.key.match_indices('/') {
                registry.queue(&change.key[..=slash], change);
            }
            registry.queue("", change);
        }
    }

    /// Tells all watches how far they are.
    pub fn progress(&self) {
        let mut registry = self.lock();
        let published = registry.published;
        registry.folders.retain(|_, watchers| {
            watchers.retain(|watcher| watcher.after > published || watcher.send(Note::Progress(published)));
            !watchers.is_empty()
        });
    }

    /// As [`Watchers::progress`], after nothing happened up to `revision`.
    pub fn advance(&self, revision: u64) {
        let mut registry = self.lock();
        registry.published = registry.published.max(revision);
        drop(registry);
        self.progress();
    }

    pub fn close(&self) {
        let mut registry = self.lock();
        registry.folders.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    fn queue(&mut self, folder: &str, change: &Arc<Change>) {
        let Some(watchers) = self.folders.get_mut(folder) else {
            return;
        };
        watchers.retain(|watcher| {
            let wanted = change.revision > watcher.after && change.key.starts_with(&*watcher.prefix);
            !wanted || watcher.send(Note::Change(change.clone()))
        });
        if watchers.is_empty() {
            self.folders.remove(folder);
        }
    }
}

impl Watcher {
    /// False: the watch is gone or too slow.
    fn send(&self, note: Note) -> bool {
        match self.queue.try_send(note) {
            Ok(()) => true,
            // progress can wait for the next time
            Err(TrySendError::Full(Note::Progress(_))) => true,
            Err(TrySendError::Full(Note::Change(_)) | TrySendError::Closed(_)) => false,
        }
    }
}

fn folder(prefix: &str) -> &str {
    prefix.rfind('/').map_or("", |slash| &prefix[..=slash])
}

/// A place on the list of watchers; leaves it when dropped.
struct Subscription {
    mvcc: Arc<Mvcc>,
    prefix: Arc<str>,
    id: u64,
    queue: Receiver<Note>,
    /// History up to here has to be read before the queue.
    history_until: u64,
}

impl Subscription {
    fn new(mvcc: &Arc<Mvcc>, prefix: &Arc<str>, after: u64) -> Result<Self, StoreError> {
        let (sender, queue) = channel(QUEUE);
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
            id,
            prefix: prefix.clone(),
            after: after.max(history_until),
            queue: sender,
        };
        registry
            .folders
            .entry(Arc::from(folder(prefix)))
            .or_default()
            .push(watcher);
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
        if let Some(watchers) = registry.folders.get_mut(folder(&self.prefix)) {
            watchers.retain(|watcher| watcher.id != self.id);
        }
    }
}

struct Reader {
    subscription: Subscription,
    /// Everything up to this revision has been yielded.
    delivered: u64,
    /// To be yielded after the events before it.
    progress: Option<u64>,
}

pub(super) fn stream(mvcc: Arc<Mvcc>, prefix: &str, after: u64) -> Result<WatchStream, StoreError> {
    let subscription = Subscription::new(&mvcc, &Arc::from(prefix), after)?;
    let reader = Reader {
        subscription,
        delivered: after,
        progress: None,
    };
    let stream = stream::unfold(Some(reader), |reader| async {
        let mut reader = reader?;
        match reader.next().await {
            Ok(item) => Some((Ok(item), Some(reader))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(stream.boxed())
}

impl Reader {
    async fn next(&mut self) -> Result<WatchItem, StoreError> {
        if let Some(revision) = self.progress.take() {
            return Ok(WatchItem::Progress(Revision(revision)));
        }
        loop {
            while self.delivered < self.subscription.history_until {
                let events = self.read_history()?;
                if !events.is_empty() {
                    return Ok(WatchItem::Events(events));
                }
                tokio::task::yield_now().await;
            }
            if let Some(item) = self.read_queue().await {
                return Ok(item);
            }
            // the queue overflowed, or the store is closed, which the new subscription would say
            let Subscription { mvcc, prefix, .. } = &self.subscription;
            self.subscription = Subscription::new(mvcc, prefix, self.delivered)?;
        }
    }

    fn read_history(&mut self) -> Result<Vec<Event>, StoreError> {
        let Subscription {
            mvcc,
            prefix,
            history_until,
            ..
        } = &self.subscription;
        let state = mvcc.read();
        if let Some(why) = &state.ended {
            return Err(why.clone());
        }
        if self.delivered + 1 < state.view.oldest() {
            return Err(StoreError::Compacted {
                oldest: Revision(state.view.oldest()),
            });
        }
        let mut events = Vec::new();
        let mut seen = 0;
        for change in state.history.slice(self.delivered, *history_until, SCAN) {
            seen += 1;
            if change.key.starts_with(&**prefix) {
                let event = change.event();
                if event.has_lost_its_past() {
                    // Only the oldest change that is kept can have, after a restart.
                    return Err(StoreError::Compacted {
                        oldest: event.revision(),
                    });
                }
                events.push(event);
            }
            self.delivered = change.revision;
            if events.len() == EVENTS_PER_ITEM {
                return Ok(events);
            }
        }
        if seen < SCAN {
            self.delivered = self.delivered.max(*history_until);
        }
        Ok(events)
    }

    /// `None`: nothing more will come from this subscription.
    async fn read_queue(&mut self) -> Option<WatchItem> {
        let mut note = self.subscription.queue.recv().await;
        let mut events = Vec::new();
        loop {
            match note {
                Some(Note::Change(change)) => {
                    self.delivered = change.revision;
                    events.push(change.event());
                }
                Some(Note::Progress(revision)) => {
                    self.delivered = self.delivered.max(revision);
                    if events.is_empty() {
                        return Some(WatchItem::Progress(Revision(revision)));
                    }
                    self.progress = Some(revision);
                    return Some(WatchItem::Events(events));
                }
                None if events.is_empty() => return None,
                None => return Some(WatchItem::Events(events)),
            }
            if events.len() == EVENTS_PER_ITEM {
                return Some(WatchItem::Events(events));
            }
            note = self.subscription.queue.try_recv().ok();
        }
    }
}
