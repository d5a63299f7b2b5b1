//! The heart of the memory and the embedded store: the current state, its recent past, and who watches it.
//!
//! Reads clone a persistent [`View`] under a short lock and never wait for a write's way to disk. Whoever writes
//! plans a [`Batch`] on top of the newest view, makes it durable in its own way, and then calls [`Mvcc::apply`]: only
//! then do readers and watchers see it. There must be one such writer at a time.

mod batch;
mod history;
mod last_changes;
mod lease;
mod snapshot;
#[cfg(test)]
mod tests;
mod version;
mod view;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

pub(crate) use batch::Batch;
pub(crate) use history::History;
use last_changes::LastChanges;
pub(crate) use lease::Leases;
pub use snapshot::Snapshot;
pub(crate) use version::{Change, Version};
pub(crate) use view::View;
use watch::Watchers;

use crate::{Epoch, Event, Got, LeaseId, ListOptions, Listed, Position, Revision, StoreError, WatchStream};

/// Changes that compaction forgets under one lock, so that it never holds up readers for long.
const COMPACTION_STEP: usize = 2048;
/// Changes, of whatever key, that one question for events looks at.
const MOST_CHANGES_SCANNED: usize = 65_536;

struct State {
    view: View,
    history: History,
    last_changes: LastChanges,
    /// Why nothing is answered any more.
    ended: Option<StoreError>,
}

impl State {
    fn position(&self) -> Option<Position> {
        self.ended.is_none().then(|| Position {
            epoch: self.view.epoch(),
            revision: Revision(self.view.revision()),
        })
    }

    /// Whether every change after a revision is in history. The oldest revision that is kept need not be: a view that
    /// was read from elsewhere begins with it, and nobody knows here how it came to be.
    fn reaches_back_to(&self, after: u64) -> bool {
        let (next, oldest) = (after.saturating_add(1), self.view.oldest());
        let nothing_at_oldest = oldest <= view::FIRST;
        next > oldest || (next == oldest && (nothing_at_oldest || self.history.at(oldest).next().is_some()))
    }
}

/// See the module's description.
pub(crate) struct Mvcc {
    state: RwLock<State>,
    leases: Mutex<Leases>,
    watchers: Watchers,
}

impl Mvcc {
    /// A heart that holds `view` and its `history`: a timeline of its own.
    pub fn new(view: View, history: History, leases: Leases) -> Arc<Self> {
        let watchers = Watchers::new(view.revision());
        let state = RwLock::new(State {
            view: view.begin(Epoch::next()),
            history,
            last_changes: LastChanges::default(),
            ended: None,
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
        match &state.ended {
            Some(why) => Err(why.clone()),
            None => Ok(state.view.clone()),
        }
    }

    /// Where that is; `None`: the store has ended.
    pub fn position(&self) -> Option<Position> {
        self.read().position()
    }

    /// See [`crate::Store::unchanged_since`].
    pub fn unchanged_since(&self, prefix: &str, position: Position) -> Option<Position> {
        let state = self.read();
        let now = state.position()?;
        match state.last_changes.of(prefix) {
            Some(last) => {
                let goes_on = position.epoch == now.epoch && position.revision <= now.revision;
                (goes_on && last <= position.revision.0).then_some(now)
            }
            None => {
                drop(state);
                let mut state = self.write();
                let revision = state.view.revision();
                state.last_changes.follow(prefix, revision);
                None
            }
        }
    }

    pub fn get(&self, key: &str) -> Result<Got, StoreError> {
        let state = self.read();
        if let Some(why) = &state.ended {
            return Err(why.clone());
        }
        Ok(Got {
            entry: state.view.get(key),
            revision: Revision(state.view.revision()),
        })
    }

    pub fn list(&self, prefix: &str, options: &ListOptions) -> Result<Listed, StoreError> {
        self.view()?.list(prefix, options)
    }

    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        self.view().map(Snapshot::new)
    }

    /// See [`crate::Store::events`].
    pub fn events(&self, prefix: &str, after: Position, until: Revision, limit: usize) -> Option<Vec<Event>> {
        let state = self.read();
        let all_are_here = after.epoch == state.view.epoch() && until.0 <= state.view.revision();
        if state.ended.is_some() || !all_are_here || !state.reaches_back_to(after.revision.0) {
            return None;
        }
        let changes = state.history.slice(after.revision.0, until.0);
        let mut events = Vec::new();
        for (scanned, change) in changes.enumerate() {
            if scanned == MOST_CHANGES_SCANNED {
                return None;
            }
            if change.key.starts_with(prefix) {
                let event = change.event();
                if events.len() == limit || event.has_lost_its_past() {
                    return None;
                }
                events.push(event);
            }
        }
        Some(events)
    }

    pub fn current_revision(&self) -> Result<Revision, StoreError> {
        let state = self.read();
        match &state.ended {
            Some(why) => Err(why.clone()),
            None => Ok(Revision(state.view.revision())),
        }
    }

    /// See [`crate::Store::watch`].
    pub fn watch(self: &Arc<Self>, prefix: &str, after: Revision) -> Result<WatchStream, StoreError> {
        let current = self.current_revision()?;
        if after > current {
            return Err(StoreError::Future { wanted: after, current });
        }
        self.watch_ahead(prefix, after)
    }

    /// As [`Mvcc::watch`], after a revision that may be still to come here.
    pub fn watch_ahead(self: &Arc<Self>, prefix: &str, after: Revision) -> Result<WatchStream, StoreError> {
        watch::stream(self.clone(), prefix, after.0)
    }

    pub fn request_progress(&self) {
        self.watchers.progress();
    }

    /// As [`Mvcc::request_progress`], at the next [`Mvcc::advance`].
    pub fn want_progress(&self) {
        self.watchers.want_progress();
    }

    /// Makes durable changes visible, in the order given. Changes that share a revision come in one call.
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
            state.last_changes.note(change);
        }
        drop(state);
        self.watchers.publish(changes);
    }

    /// Checks that history before `revision` may be forgotten; false: it is forgotten already.
    pub fn check_compaction(&self, revision: Revision) -> Result<bool, StoreError> {
        let state = self.read();
        let current = Revision(state.view.revision());
        if let Some(why) = &state.ended {
            Err(why.clone())
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
                let State { view, history, .. } = &mut *state;
                let kept = history.at(revision.0);
                kept.for_each(|change| view.forget_previous(change, &mut gone));
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

    /// Nothing happened up to `revision` but what was applied; watches hear of it.
    pub fn advance(&self, revision: Revision) {
        self.write().view.advance(revision.0);
        self.watchers.advance(revision.0);
    }

    /// Ends watches and refuses everything from now on.
    pub fn close(&self) {
        self.end(StoreError::Closed);
    }

    /// Ends the watches of a prefix and of what is below it, and no longer knows when it changed last.
    pub fn forget(&self, prefix: &str) {
        self.write().last_changes.forget(prefix);
        self.watchers.forget_where(|watcher| watcher.prefix.starts_with(prefix));
    }

    /// Ends watches that began after a revision which has not come here yet, later than this one.
    pub fn forget_ahead(&self, revision: Revision) {
        self.watchers.forget_where(|watcher| watcher.after > revision.0);
    }

    /// As [`Mvcc::close`], with another reason.
    pub fn end(&self, why: StoreError) {
        self.write().ended.get_or_insert(why);
        self.watchers.close();
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}
