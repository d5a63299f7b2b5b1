//! A prefix of etcd held in memory: read once, then kept up to date by one watch, for any number of readers.
//!
//! What it shows is etcd's past, a moment ago. A reader that must not see the past says which revision it needs, and
//! the mirror asks etcd how far it is rather than wait for the next event.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::calls::Calls;
use super::keeper::{Heard, Held, Keeper, Reached};
use super::watch::Signal;
use crate::mvcc::Mvcc;
use crate::{Entry, Event, HistoryLimits, Position, Revision, Snapshot, WatchStream};

/// A reader waits so long for a mirror that is being read.
const LOADING: Duration = Duration::from_secs(10);
/// A reader waits so long for a revision before it asks etcd itself.
const LAG: Duration = Duration::from_millis(250);
/// A stream that is asked for a sign of life gives it within this time.
const SIGN: Duration = Duration::from_secs(2);
/// A watch begins from memory without a question to etcd if etcd has said something within this time: a stream that is
/// silent asks every 5 s.
const FRESH: Duration = Duration::from_secs(6);
/// What is recalled is not older than this: a watch that is silent for half of it asks etcd how far it is.
const SILENCE: Duration = Duration::from_secs(10);
/// So many writes of the store itself are remembered before those that the mirror has seen are forgotten.
const OWN_WRITES: usize = 256;

pub(super) struct Mirror {
    calls: Calls,
    /// What it holds now; `None` while it is being read.
    held: watch::Receiver<Option<Arc<Held>>>,
    reached: watch::Receiver<Reached>,
    signal: watch::Sender<Signal>,
    heard: Arc<Heard>,
    own: Mutex<OwnWrites>,
}

/// Writes of the store itself that the mirror may not have seen.
#[derive(Default)]
struct OwnWrites {
    /// How often etcd had gone back before.
    falls: u64,
    of_keys: HashMap<String, Revision>,
    /// Of any key.
    of_all: Revision,
}

impl OwnWrites {
    /// Forgets writes of a past that is no more.
    fn since(&mut self, falls: u64) -> &mut OwnWrites {
        if self.falls != falls {
            *self = OwnWrites {
                falls,
                ..OwnWrites::default()
            };
        }
        self
    }

    fn note(&mut self, key: &str, revision: Revision, seen: Revision) {
        if self.of_keys.len() >= OWN_WRITES {
            self.of_keys.retain(|_, written| *written > seen);
        }
        if self.of_keys.len() >= OWN_WRITES {
            // The mirror is far behind: until it has come up it is not asked.
            self.of_all = self
                .of_keys
                .drain()
                .map(|(_, written)| written)
                .fold(self.of_all, Revision::max);
        }
        let written = self.of_keys.entry(key.to_owned()).or_default();
        *written = revision.max(*written);
    }

    /// The last one of a key.
    fn of(&self, key: &str) -> Revision {
        self.of_keys.get(key).copied().unwrap_or_default().max(self.of_all)
    }
}

impl Mirror {
    /// Begins to read `prefix`; goes on until [`Mirror::close`].
    pub fn start(calls: Calls, prefix: &str, limits: HistoryLimits) -> Arc<Mirror> {
        let (signal, signals) = watch::channel(Signal::default());
        let (hold, held) = watch::channel(None);
        let (reach, reached) = watch::channel(Reached::default());
        let heard = Arc::new(Heard::new());
        let (own, tasks) = (calls.clone(), calls.tasks.clone());
        let keeper = Keeper {
            calls,
            prefix: prefix.to_owned(),
            limits,
            hold,
            reach,
            heard: heard.clone(),
            signals,
        };
        tasks.spawn_at_home(keeper.run());
        Arc::new(Mirror {
            calls: own,
            held,
            reached,
            signal,
            heard,
            own: Mutex::default(),
        })
    }

    /// Notes a write of the store itself, before it is answered.
    pub fn wrote(&self, key: &str, revision: Revision) {
        let seen = self.position().unwrap_or_default().revision;
        if seen < revision {
            let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            own.since(self.calls.witness.falls()).note(key, revision, seen);
        }
    }

    /// See [`crate::Store::recall`].
    pub fn recall(&self, key: &str) -> Option<Entry> {
        // Before the mirror is looked at: what is forgotten here it has.
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let written = own.since(self.calls.witness.falls()).of(key);
        drop(own);
        if !self.is_followed() || self.heard.silence() > SILENCE {
            return None;
        }
        let got = self.now()?.get(key).ok()?;
        got.entry.filter(|_| got.revision >= written)
    }

    /// All of the prefix at `revision` or later, which etcd has just told; `None`: the mirror is not so far, or its
    /// stream has said nothing since etcd elected a leader: etcd has to be asked.
    pub async fn snapshot(&self, revision: Revision) -> Option<Snapshot> {
        let mut held = self.held.clone();
        let now = |held: &Option<Arc<Held>>| held.as_ref().is_some_and(|held| self.is_current(held));
        let loaded = tokio::time::timeout(LOADING, held.wait_for(now)).await;
        let held = loaded.ok()?.ok()?.clone()?;
        let elections = self.calls.witness.elections();
        let is_there =
            |reached: &Reached| reached.followed && reached.revision >= revision && reached.elections >= elections;
        if !is_there(&self.reached.borrow()) {
            if !self.calls.members.all_answer_in_order() {
                return None;
            }
            self.ask();
            let mut reached = self.reached.clone();
            let waited = reached.wait_for(is_there);
            tokio::time::timeout(LAG, waited).await.ok()?.ok()?;
        }
        let snapshot = held.mvcc.snapshot().ok()?;
        (snapshot.revision() >= revision && self.is_current(&held)).then_some(snapshot)
    }

    /// What is in memory now; `None` while it is being read.
    pub fn held(&self) -> Option<Snapshot> {
        self.now()?.snapshot().ok()
    }

    /// Where that is.
    pub fn position(&self) -> Option<Position> {
        self.now()?.position()
    }

    /// Whether a stream keeps it up to date now.
    pub fn is_followed(&self) -> bool {
        self.reached.borrow().followed
    }

    /// Returns when it is known whether etcd is still what this mirror has read: not while its stream is broken and
    /// etcd's past has not been looked at again. False: that takes too long.
    pub async fn is_settled(&self) -> bool {
        self.is_held_or(LOADING, |reached| reached.followed).await
    }

    /// As [`Mirror::is_settled`], but a stream is not believed to live before it has said something from now on: one
    /// that is mute would not break if etcd was put back. Of members that can't be asked all are believed.
    pub async fn is_alive(&self) -> bool {
        let is_settled = self.is_settled().await;
        if !is_settled || !self.calls.members.all_answer_in_order() {
            return is_settled;
        }
        let words = self.reached.borrow().words;
        self.ask();
        self.is_held_or(SIGN, |reached| reached.followed && reached.words > words)
            .await
    }

    /// Waits until it is as far as that, or holds nothing.
    async fn is_held_or(&self, limit: Duration, is_there: impl Fn(&Reached) -> bool) -> bool {
        let mut reached = self.reached.clone();
        let mut held = self.held.clone();
        let in_doubt = |held: &Option<Arc<Held>>| held.as_ref().is_some_and(|held| self.is_current(held));
        let there = async {
            tokio::select! {
                biased;
                _ = reached.wait_for(|reached| is_there(reached)) => {}
                _ = held.wait_for(|held| !in_doubt(held)) => {}
            }
        };
        tokio::time::timeout(limit, there).await.is_ok()
    }

    /// Whether a revision had come, but not yet here, when a stream broke, so that it may be of another past.
    pub fn is_in_doubt(&self, revision: Revision) -> bool {
        let held = self.held.borrow();
        held.as_ref().is_some_and(|held| held.is_in_doubt(revision))
    }

    /// A watch from memory; `None`: history does not reach back so far here, `after` has not come here yet, or nobody
    /// has heard of etcd for a while.
    pub fn watch(&self, prefix: &str, after: Revision) -> Option<WatchStream> {
        if !self.is_followed() || self.heard.silence() > FRESH {
            return None;
        }
        if self.is_in_doubt(after) {
            return None;
        }
        self.now()?.watch(prefix, after).ok()
    }

    /// As [`Mirror::watch`], when etcd has just confirmed that the revision has come.
    pub fn watch_ahead(&self, prefix: &str, after: Revision) -> Option<WatchStream> {
        if !self.is_followed() {
            return None;
        }
        self.now()?.watch_ahead(prefix, after).ok()
    }

    pub fn events(&self, prefix: &str, after: Position, until: Revision, limit: usize) -> Option<Vec<Event>> {
        self.now()?.events(prefix, after, until, limit)
    }

    /// The mirror's own entry in the place of one that etcd has just given, so that readers share what they derive.
    pub fn share(&self, entry: Entry) -> Entry {
        let held = self.now().and_then(|mvcc| mvcc.get(&entry.key).ok()?.entry);
        held.filter(|held| held == &entry).unwrap_or(entry)
    }

    /// Asks etcd how far it is, and has all watches told of the answer.
    pub fn tell_watches(&self) {
        if let Some(mvcc) = self.now() {
            mvcc.want_progress();
        }
        self.ask();
    }

    /// Asks etcd how far it is.
    fn ask(&self) {
        self.signal.send_modify(|signal| signal.progress += 1);
    }

    pub fn close(&self) {
        self.signal.send_modify(|signal| signal.closed = true);
    }

    fn now(&self) -> Option<Arc<Mvcc>> {
        let held = self.held.borrow();
        let held = held.as_ref().filter(|held| self.is_current(held))?;
        Some(held.mvcc.clone())
    }

    /// Etcd has not gone back since this was read, as far as anybody knows.
    fn is_current(&self, held: &Held) -> bool {
        held.falls == self.calls.witness.falls()
    }
}
