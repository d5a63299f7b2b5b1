//! The heart of the memory and the embedded store: the current state, its recent past, and who watches it.
//!
//! Reads clone a persistent [`View`] under a short lock and never wait for a write's way to disk. Whoever writes
//! plans a [`Batch`] on top of the newest view, makes it durable in its own way, and then calls [`Mvcc::apply`]: only
//! then do readers and watchers see it. There must be one such writer at a time.

mod batch;
mod history;
mod lease;
#[cfg(test)]
mod tests;
mod version;
mod view;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

pub(crate) use batch::Batch;
pub(crate) use history::History;
pub(crate) use lease::Leases;
pub(crate) use version::{Change, Version};
pub(crate) use view::View;
use watch::Watchers;

use crate::{Got, LeaseId, ListOptions, Listed, Revision, StoreError, WatchStream};

/// Changes that compaction forgets under one lock, so that it never holds up readers for long.
const COMPACTION_STEP: usize = 2048;

struct State {
    view: View,
    history: History,
    closed: bool,
}

/// See the module's description.
pub(crate) struct Mvcc {
    state: RwLock<State>,
    leases: Mutex<Leases>,
    watchers: Watchers,
}

impl Mvcc {
    /// A heart that holds `view` and its `history`.
    pub fn new(view: View, history: History, leases: Leases) -> Arc<Self> {
        let watchers = Watchers::new(view.revision());
        let state = RwLock::new(State {
            view,
            history,
            closed: false,
        });
        Arc::new(Mvcc {
            state,
            leases: Mutex::new(leases),
            watchers,
        })
    }

    pub fn empty() -> Arc<Self> {
        Self::new(View::default(), History::default(), Leases::default())
    }

    /// The newest view, which stays as it is.
    pub fn view(&self) -> Result<View, StoreError> {
        let state = self.read();
        if state.closed {
            Err(StoreError::Closed)
        } else {
            Ok(state.view.clone())
        }
    }

    pub fn get(&self, key: &str) -> Result<Got, StoreError> {
        let state = self.read();
        if state.closed {
            return Err(StoreError::Closed);
        }
        Ok(Got {
            entry: state.view.get(key),
            revision: Revision(state.view.revision()),
        })
    }

    pub fn list(&self, prefix: &str, options: &ListOptions) -> Result<Listed, StoreError> {
        self.view()?.list(prefix, options)
    }

    pub fn current_revision(&self) -> Result<Revision, StoreError> {
        let state = self.read();
        if state.closed {
            Err(StoreError::Closed)
        } else {
            Ok(Revision(state.view.revision()))
        }
    }

    pub fn watch(self: &Arc<Self>, prefix: &str, after: Revision) -> Result<WatchStream, StoreError> {
        watch::stream(self.clone(), prefix, after.0)
    }

    pub fn request_progress(&self) {
        self.watchers.progress();
    }

    /// Makes durable changes visible, in the order given.
    pub fn apply(&self, changes: &[Arc<Change>]) {
        if changes.is_empty() {
            return;
        }
        let mut leases = self.leases();
        for change in changes {
            leases.follow(change);
        }
        drop(leases);
        let mut state = self.write();
        for change in changes {
            state.view.apply(change);
            state.history.push(change.clone());
        }
        drop(state);
        self.watchers.publish(changes);
    }

    /// Checks that history before `revision` may be forgotten; false: it is forgotten already.
    pub fn check_compaction(&self, revision: Revision) -> Result<bool, StoreError> {
        let state = self.read();
        let current = Revision(state.view.revision());
        if state.closed {
            Err(StoreError::Closed)
        } else if revision > current {
            Err(StoreError::Future {
                wanted: revision,
                current,
            })
        } else {
            Ok(revision.0 > state.view.oldest())
        }
    }

    /// Forgets history before `revision` and returns the revisions of the versions that are gone.
    pub fn compact(&self, revision: Revision) -> Vec<u64> {
        self.write().view.set_oldest(revision.0);
        let mut gone = Vec::new();
        loop {
            let mut state = self.write();
            let forgotten = state.history.pop_before(revision.0, COMPACTION_STEP);
            for change in &forgotten {
                state.view.forget(change, &mut gone);
            }
            if forgotten.len() < COMPACTION_STEP {
                if let Some(change) = state.history.at(revision.0) {
                    state.view.forget_previous(&change, &mut gone);
                }
                return gone;
            }
        }
    }

    /// The oldest revision to keep so that history stays within `bytes`; `None`: it does.
    pub fn over_budget(&self, bytes: usize) -> Option<Revision> {
        self.read().history.cut_to(bytes).map(Revision)
    }

    pub fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leases whose time is over at `now`.
    pub fn expired(&self, now: Duration) -> Vec<LeaseId> {
        self.leases().expired(now)
    }

    /// Ends watches and refuses everything from now on.
    pub fn close(&self) {
        self.write().closed = true;
        self.watchers.close();
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}
