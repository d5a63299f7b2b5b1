//! A prefix of etcd held in memory: read once, then kept up to date by one watch, for any number of readers.
//!
//! What it shows is etcd's past, a moment ago. A reader that must not see the past says which revision it needs, and
//! the mirror asks etcd how far it is rather than wait for the next event.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::calls::{Calls, ListFailure};
use super::watch::Signal;
use crate::maintenance::Schedule;
use crate::mvcc::{Change, Leases, Mvcc, View};
use crate::{
    Entry, Event, HistoryLimits, ListOptions, Position, Revision, Snapshot, StoreError, SystemClock, WatchItem,
    WatchStream,
};

/// A reader waits so long for a mirror that is being read.
const LOADING: Duration = Duration::from_secs(10);
/// A reader waits so long for a revision before it asks etcd itself.
const LAG: Duration = Duration::from_millis(250);
/// So often history is looked at.
const UPKEEP: Duration = Duration::from_secs(5);
/// The pause before etcd is read again; each failure doubles it.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What is recalled is not older than this: a watch that is silent for half of it asks etcd how far it is.
const SILENCE: Duration = Duration::from_secs(10);
/// So many writes of the store itself are remembered before those that the mirror has seen are forgotten.
const OWN_WRITES: usize = 256;

/// What the mirror holds now; `None` while it is being read.
type Held = Option<Arc<Mvcc>>;

pub(super) struct Mirror {
    held: watch::Receiver<Held>,
    reached: watch::Receiver<Revision>,
    signal: watch::Sender<Signal>,
    heard: Arc<Heard>,
    own: Mutex<OwnWrites>,
}

/// When etcd said something last.
struct Heard {
    start: Instant,
    /// Milliseconds after that.
    last: AtomicU64,
}

impl Heard {
    fn now(&self) {
        let since = self.start.elapsed().as_millis();
        self.last.store(since as u64, Ordering::Relaxed);
    }

    fn silence(&self) -> Duration {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        self.start.elapsed().saturating_sub(last)
    }
}

/// Writes of the store itself that the mirror may not have seen.
#[derive(Default)]
struct OwnWrites {
    of_keys: HashMap<String, Revision>,
    /// Of any key.
    of_all: Revision,
}

impl OwnWrites {
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
        let (reach, reached) = watch::channel(Revision::default());
        let heard = Arc::new(Heard {
            start: Instant::now(),
            last: AtomicU64::default(),
        });
        let tasks = calls.tasks.clone();
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
            own.note(key, revision, seen);
        }
    }

    /// See [`crate::Store::recall`].
    pub fn recall(&self, key: &str) -> Option<Entry> {
        // Before the mirror is looked at: what is forgotten here it has.
        let written = self.own.lock().unwrap_or_else(PoisonError::into_inner).of(key);
        if self.heard.silence() > SILENCE {
            return None;
        }
        let got = self.now()?.get(key).ok()?;
        got.entry.filter(|_| got.revision >= written)
    }

    /// All of the prefix at `revision` or later; `None`: the mirror is not so far, etcd has to be asked.
    pub async fn snapshot(&self, revision: Revision) -> Option<Snapshot> {
        let mut held = self.held.clone();
        let loaded = tokio::time::timeout(LOADING, held.wait_for(Option::is_some)).await;
        let mvcc = loaded.ok()?.ok()?.clone()?;
        if mvcc.current_revision().ok()? < revision {
            self.ask();
            let mut reached = self.reached.clone();
            let waited = reached.wait_for(|reached| *reached >= revision);
            tokio::time::timeout(LAG, waited).await.ok()?.ok()?;
        }
        let snapshot = mvcc.snapshot().ok()?;
        (snapshot.revision() >= revision).then_some(snapshot)
    }

    /// What is in memory now; `None` while it is being read.
    pub fn held(&self) -> Option<Snapshot> {
        self.now()?.snapshot().ok()
    }

    /// Where that is.
    pub fn position(&self) -> Option<Position> {
        self.now()?.position()
    }

    /// A watch from memory; `None`: history does not reach back so far here, or `after` has not come here yet.
    pub fn watch(&self, prefix: &str, after: Revision) -> Option<WatchStream> {
        self.now()?.watch(prefix, after).ok()
    }

    /// As [`Mirror::watch`], after a revision that has come in etcd.
    pub fn watch_ahead(&self, prefix: &str, after: Revision) -> Option<WatchStream> {
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

    fn now(&self) -> Held {
        self.held.borrow().clone()
    }
}

/// The task behind a mirror.
struct Keeper {
    calls: Calls,
    prefix: String,
    limits: HistoryLimits,
    hold: watch::Sender<Held>,
    reach: watch::Sender<Revision>,
    heard: Arc<Heard>,
    signals: watch::Receiver<Signal>,
}

impl Keeper {
    async fn run(self) {
        let mut closed = self.signals.clone();
        let work = async {
            let mut pause = PAUSE;
            loop {
                match self.keep().await {
                    Ok(()) => pause = PAUSE,
                    Err(error) => {
                        tracing::warn!(%error, prefix = self.prefix, "reading etcd into memory; it is tried again");
                        pause = (2 * pause).min(LONGEST_PAUSE);
                    }
                }
                tokio::time::sleep(pause).await;
            }
        };
        tokio::select! {
            biased;
            _ = closed.wait_for(|signal| signal.closed) => {}
            () = work => {}
        }
        self.drop_held(StoreError::Closed);
    }

    /// Reads the prefix and follows it until the watch ends.
    async fn keep(&self) -> Result<(), StoreError> {
        let listed = self.calls.list(&self.prefix, &ListOptions::default()).await;
        let listed = listed.map_err(|failure| match failure {
            ListFailure::Other(error) => error,
            ListFailure::Compacted | ListFailure::Future => {
                StoreError::Unavailable("etcd: compaction overtook the list".to_owned())
            }
        })?;
        let revision = listed.revision;
        let view = View::of(listed.entries, revision);
        let mvcc = Mvcc::new(view, Default::default(), Leases::default());
        let (calls, signals) = (self.calls.clone(), self.signals.clone());
        let events = super::watch::start(calls, &self.prefix, false, revision, signals).await?;
        self.heard.now();
        self.hold.send_replace(Some(mvcc.clone()));
        self.reach.send_replace(revision);
        self.follow(&mvcc, events).await;
        // Whoever watches has missed something and has to list again.
        self.drop_held(StoreError::Compacted { oldest: revision });
        Ok(())
    }

    fn drop_held(&self, why: StoreError) {
        if let Some(mvcc) = self.hold.send_replace(None) {
            mvcc.end(why);
        }
    }

    async fn follow(&self, mvcc: &Arc<Mvcc>, mut events: WatchStream) {
        let mut schedule = Schedule::new(mvcc.clone(), Arc::new(SystemClock::new()), self.limits);
        let mut upkeep = interval(UPKEEP);
        upkeep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let item = tokio::select! {
                biased;
                _ = upkeep.tick() => {
                    if let Some(revision) = schedule.due().compact {
                        mvcc.compact(revision);
                    }
                    continue;
                }
                item = events.next() => item,
            };
            self.heard.now();
            match item {
                Some(Ok(WatchItem::Events(events))) => self.take(mvcc, events),
                Some(Ok(WatchItem::Progress(revision))) => {
                    mvcc.advance(revision);
                    self.reach.send_if_modified(|reached| raise(reached, revision));
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, prefix = self.prefix, "the watch that keeps etcd in memory has ended");
                    return;
                }
                None => return,
            }
        }
    }

    fn take(&self, mvcc: &Mvcc, events: Vec<Event>) {
        let Ok(view) = mvcc.view() else { return };
        let mut last = Revision::default();
        let mut changes: Vec<Arc<Change>> = Vec::with_capacity(events.len());
        for event in events {
            let (key, revision, after) = match event {
                Event::Put { entry, .. } => (entry.key, entry.held.mod_revision, Some(entry.held)),
                Event::Delete { key, revision, .. } => (key, revision, None),
            };
            // The version in memory, which readers have derived from, rather than etcd's copy of it.
            let earlier = changes.iter().rev().find(|change| change.key == key);
            let (key, before) = match (earlier, view.version(&key)) {
                (Some(change), _) => (change.key.clone(), change.after.clone()),
                (None, Some((key, held))) => (key.clone(), Some(held.clone())),
                (None, None) => (key, None),
            };
            last = revision;
            changes.push(Arc::new(Change {
                revision: revision.0,
                key,
                before,
                after,
            }));
        }
        drop(view);
        mvcc.apply(&changes);
        self.reach.send_if_modified(|reached| raise(reached, last));
    }
}

fn raise(reached: &mut Revision, to: Revision) -> bool {
    let raised = to > *reached;
    *reached = to.max(*reached);
    raised
}
