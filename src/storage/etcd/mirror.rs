//! A prefix of etcd held in memory: read once, then kept up to date by one watch, for any number of readers.
//!
//! What it shows is etcd's past, a moment ago. A reader that must not see the past says which revision it needs, and
//! the mirror asks etcd how far it is rather than wait for the next event.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::calls::{Calls, ListFailure};
use super::watch::Signal;
use crate::maintenance::Schedule;
use crate::mvcc::{Change, Leases, Mvcc, View};
use crate::{
    Entry, Event, HistoryLimits, ListOptions, Revision, Snapshot, StoreError, SystemClock, WatchItem, WatchStream,
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

/// What the mirror holds now; `None` while it is being read.
type Held = Option<Arc<Mvcc>>;

pub(super) struct Mirror {
    held: watch::Receiver<Held>,
    reached: watch::Receiver<Revision>,
    signal: watch::Sender<Signal>,
}

impl Mirror {
    /// Begins to read `prefix`; goes on until [`Mirror::close`].
    pub fn start(calls: Calls, prefix: &str, limits: HistoryLimits) -> Arc<Mirror> {
        let (signal, signals) = watch::channel(Signal::default());
        let (hold, held) = watch::channel(None);
        let (reach, reached) = watch::channel(Revision::default());
        let keeper = Keeper {
            calls,
            prefix: prefix.to_owned(),
            limits,
            hold,
            reach,
            signals,
        };
        tokio::spawn(keeper.run());
        Arc::new(Mirror { held, reached, signal })
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

    /// A watch from memory; `None`: history does not reach back so far here.
    pub fn watch(&self, prefix: &str, after: Revision) -> Option<WatchStream> {
        self.now()?.watch(prefix, after).ok()
    }

    pub fn events(&self, prefix: &str, after: Revision, until: Revision, limit: usize) -> Option<Vec<Event>> {
        self.now()?.events(prefix, after, until, limit)
    }

    /// The mirror's own entry in the place of one that etcd has just given, so that readers share what they derive.
    pub fn share(&self, entry: Entry) -> Entry {
        let held = self.now().and_then(|mvcc| mvcc.get(&entry.key).ok()?.entry);
        held.filter(|held| held.mod_revision == entry.mod_revision)
            .unwrap_or(entry)
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
            () = work => {}
            _ = closed.wait_for(|signal| signal.closed) => {}
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
        let events = super::watch::start(self.calls.clone(), &self.prefix, revision, self.signals.clone()).await?;
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
                item = events.next() => item,
                _ = upkeep.tick() => {
                    if let Some(revision) = schedule.due().compact {
                        mvcc.compact(revision);
                    }
                    continue;
                }
            };
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
