//! The task behind a mirror: reads a prefix of etcd and follows it by one stream after the other, as long as each goes
//! on where the one before ended.
//!
//! When a stream has broken, etcd is asked whether it held at the mirror's revision what the mirror holds: etcd that
//! was put back to an older state may have come to the same revision, or beyond it, before anybody looks. Events that
//! don't go on from what is held are not taken in. Either way the prefix is read again, on a timeline of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::calls::{Calls, ListFailure};
use super::watch::{From, Signal, one_stream};
use super::witness::Landmark;
use crate::maintenance::Schedule;
use crate::mvcc::{Change, Leases, Mvcc, View};
use crate::{Event, HistoryLimits, ListOptions, Revision, StoreError, SystemClock, WatchItem, WatchStream};

/// So often history is looked at.
const UPKEEP: Duration = Duration::from_secs(5);
/// The pause before etcd is asked again; each failure doubles it.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// What is held is given up when etcd was away for so long.
const AWAY: Duration = Duration::from_secs(60);
/// Breaks of streams whose doubts are remembered.
const DOUBTS: usize = 64;
/// A client has come with what it was told before a break, or read anew, within this time.
const TOLD_ANEW: Duration = Duration::from_secs(15);

/// What a mirror holds.
pub(super) struct Held {
    pub mvcc: Arc<Mvcc>,
    /// How often etcd had gone back before.
    pub falls: u64,
    doubts: Mutex<VecDeque<Doubt>>,
}

/// Revisions after the first and up to the second one had come, but not yet here, when a stream broke: nobody can tell
/// whether etcd has still the past that they were of.
struct Doubt {
    after: Revision,
    until: Revision,
    since: Instant,
}

impl Doubt {
    /// The last revision is the present one until etcd goes on: after a while whoever tells it has read it anew.
    fn is_about(&self, revision: Revision) -> bool {
        let is_told_anew = revision == self.until && self.since.elapsed() > TOLD_ANEW;
        self.after < revision && revision <= self.until && !is_told_anew
    }
}

impl Held {
    fn doubt(&self, after: Revision, until: Revision) {
        let mut doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        if after >= until {
            return;
        }
        if doubts.len() >= DOUBTS {
            doubts.pop_front();
        }
        let since = Instant::now();
        doubts.push_back(Doubt { after, until, since });
    }

    pub fn is_in_doubt(&self, revision: Revision) -> bool {
        let doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        doubts.iter().any(|doubt| doubt.is_about(revision))
    }
}

/// How far it is.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Reached {
    pub revision: Revision,
    /// Rises with each word of the stream.
    pub words: u64,
    /// So many elections had been noticed when the stream said something last, or was opened.
    pub elections: u64,
    /// A stream follows etcd, which has not gone back as far as anybody knows.
    pub followed: bool,
}

/// When etcd said something last.
pub(super) struct Heard {
    start: Instant,
    /// Milliseconds after that.
    last: AtomicU64,
}

impl Heard {
    pub fn new() -> Heard {
        Heard {
            start: Instant::now(),
            last: AtomicU64::default(),
        }
    }

    fn now(&self) {
        self.at(Instant::now());
    }

    fn at(&self, time: Instant) {
        let since = time.saturating_duration_since(self.start).as_millis();
        self.last.store(since as u64, Ordering::Relaxed);
    }

    pub fn silence(&self) -> Duration {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        self.start.elapsed().saturating_sub(last)
    }
}

pub(super) struct Keeper {
    pub calls: Calls,
    pub prefix: String,
    pub limits: HistoryLimits,
    pub hold: watch::Sender<Option<Arc<Held>>>,
    pub reach: watch::Sender<Reached>,
    pub heard: Arc<Heard>,
    pub signals: watch::Receiver<Signal>,
}

/// Why the events of a stream ended.
enum End {
    /// The stream broke: another one may go on.
    Broken,
    /// Something was missed, or is not as it was.
    Gap,
}

/// What goes on from one stream to the next.
struct Following<'a> {
    held: &'a Held,
    schedule: Schedule,
    upkeep: Interval,
    /// Events up to this revision may come though they are in memory already: those of a stream that is older than the
    /// list.
    listed: Revision,
    /// What happened up to this revision was missed, and is told by the stream that goes on: as long as it is, what is
    /// heard is not the present.
    missed: Revision,
}

impl Keeper {
    /// Keeps the prefix until the store is closed.
    pub async fn run(self) {
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

    /// Reads the prefix and follows it as long as that goes.
    async fn keep(&self) -> Result<(), StoreError> {
        let (falls, elections) = (self.calls.witness.falls(), self.calls.witness.elections());
        // The stream first: if etcd goes back while the list is read, it breaks.
        let events = self.open(From::Now, falls).await?;
        let asked = Instant::now();
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
        let doubts = Mutex::default();
        let held = Arc::new(Held { mvcc, falls, doubts });
        // A list shows etcd as it was when its first page was read, and the last may take long; the stream, if it is
        // mute, does not say what happened meanwhile.
        self.heard.at(asked);
        self.hold.send_replace(Some(held.clone()));
        self.reach.send_modify(|reached| {
            reached.revision = revision;
            reached.elections = elections;
            reached.followed = true;
        });
        tokio::select! {
            biased;
            () = self.calls.witness.fallen(falls) => {}
            () = self.follow_all(&held, revision, events) => {}
        }
        // The stream ends with the store too, and may be seen to before that is heard of.
        let is_closed = self.signals.borrow().closed;
        self.drop_held(match is_closed {
            true => StoreError::Closed,
            // Whoever watches has missed something and has to list again.
            false => StoreError::Compacted { oldest: revision },
        });
        Ok(())
    }

    async fn open(&self, from: From, falls: u64) -> Result<WatchStream, StoreError> {
        one_stream(self.calls.clone(), &self.prefix, from, falls, self.signals.clone()).await
    }

    fn drop_held(&self, why: StoreError) {
        self.reach.send_modify(|reached| reached.followed = false);
        if let Some(held) = self.hold.send_replace(None) {
            held.mvcc.end(why);
        }
    }

    /// Follows one stream after the other until something is missed.
    async fn follow_all(&self, held: &Held, listed: Revision, mut events: WatchStream) {
        let mut upkeep = interval(UPKEEP);
        upkeep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut following = Following {
            held,
            schedule: Schedule::new(held.mvcc.clone(), Arc::new(SystemClock::new()), self.limits),
            upkeep,
            listed,
            missed: Revision::default(),
        };
        while let End::Broken = self.follow(&mut following, events).await {
            self.reach.send_modify(|reached| reached.followed = false);
            let Some((again, elections)) = self.resume(held).await else {
                return;
            };
            events = again;
            // What happened since the last stream is still to come, so nothing was heard yet.
            following.listed = Revision::default();
            following.missed = self.calls.witness.newest();
            self.reach.send_modify(|reached| {
                reached.elections = elections;
                reached.followed = true;
            });
        }
    }

    async fn follow(&self, following: &mut Following<'_>, mut events: WatchStream) -> End {
        let mvcc = &following.held.mvcc;
        loop {
            let item = tokio::select! {
                biased;
                _ = following.upkeep.tick() => {
                    if let Some(revision) = following.schedule.due().compact {
                        mvcc.compact(revision);
                    }
                    continue;
                }
                item = events.next() => item,
            };
            match item {
                Some(Ok(WatchItem::Events(mut events))) => {
                    if following.listed != Revision::default() {
                        events.retain(|event| event.revision() > following.listed);
                    }
                    if events.is_empty() {
                        self.raise(Revision::default());
                        continue;
                    }
                    following.listed = Revision::default();
                    if let Err(event) = self.take(following.held, events) {
                        tracing::error!(
                            %event,
                            prefix = self.prefix,
                            "an event of etcd goes on from another state than memory's"
                        );
                        return End::Gap;
                    }
                }
                Some(Ok(WatchItem::Progress(revision))) => {
                    mvcc.advance(revision);
                    self.raise(revision);
                }
                Some(Err(StoreError::Unavailable(_))) => return End::Broken,
                Some(Err(error)) => {
                    tracing::warn!(%error, prefix = self.prefix, "the watch that keeps etcd in memory has ended");
                    return End::Gap;
                }
                None => return End::Gap,
            }
            if self.reach.borrow().revision >= following.missed {
                self.heard.now();
            }
        }
    }

    /// Another stream that goes on where memory is, from etcd that still has the same past, and how many elections had
    /// been noticed before it was opened; `None`: there is none.
    async fn resume(&self, held: &Held) -> Option<(WatchStream, u64)> {
        let mut pause = PAUSE;
        let since = Instant::now();
        loop {
            tokio::time::sleep(pause).await;
            let elections = self.calls.witness.elections();
            match self.try_to_resume(held).await {
                Ok(resumed) => return resumed.map(|stream| (stream, elections)),
                Err(error) if since.elapsed() >= AWAY => {
                    tracing::warn!(%error, prefix = self.prefix, "etcd was away for too long");
                    return None;
                }
                Err(_) => pause = (2 * pause).min(LONGEST_PAUSE),
            }
        }
    }

    async fn try_to_resume(&self, held: &Held) -> Result<Option<WatchStream>, StoreError> {
        let snapshot = held.mvcc.snapshot()?;
        let events = self.open(From::After(snapshot.revision()), held.falls).await?;
        // Not before: etcd may go back as long as no stream is open that would break.
        let shown = self.calls.has_shown(&self.prefix, &snapshot).await?;
        let witness = &self.calls.witness;
        match shown {
            Some(true) => {
                held.doubt(snapshot.revision(), witness.newest());
                held.mvcc.forget_ahead(snapshot.revision());
            }
            Some(false) => witness.gone_back(held.falls),
            None => witness.forgotten(held.falls, self.calls.current_revision().await?),
        }
        Ok((shown == Some(true)).then_some(events))
    }

    fn take(&self, held: &Held, events: Vec<Event>) -> Result<(), Discontinuity> {
        let mvcc = &held.mvcc;
        let Ok(view) = mvcc.view() else { return Ok(()) };
        let changes = changes(&view, events)?;
        drop(view);
        mvcc.apply(&changes);
        if let Some(last) = changes.last() {
            let landmark = Landmark {
                key: last.key.clone(),
                revision: Revision(last.revision),
                is_put: last.after.is_some(),
            };
            self.calls.witness.passed(held.falls, landmark);
            self.raise(Revision(last.revision));
        }
        Ok(())
    }

    /// Notes a word of the stream, and how far it goes.
    fn raise(&self, revision: Revision) {
        let elections = self.calls.witness.elections();
        self.reach.send_modify(|reached| {
            reached.revision = revision.max(reached.revision);
            reached.words += 1;
            reached.elections = elections;
        });
    }
}

/// An event that does not go on from what is held.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key} at {revision}, after {last} and what is held at {held}")]
struct Discontinuity {
    key: Arc<str>,
    revision: Revision,
    /// The least revision that it could have.
    last: Revision,
    held: u64,
}

/// What events change in a view.
fn changes(view: &View, events: Vec<Event>) -> Result<Vec<Arc<Change>>, Discontinuity> {
    let mut changes: Vec<Arc<Change>> = Vec::with_capacity(events.len());
    let mut places: HashMap<Arc<str>, usize> = HashMap::new();
    let mut last = Revision(view.revision() + 1);
    for event in events {
        let (key, revision, after) = match event {
            Event::Put { entry, .. } => (entry.key, entry.held.mod_revision, Some(entry.held)),
            Event::Delete { key, revision, .. } => (key, revision, None),
        };
        // The version in memory, which readers have derived from, rather than etcd's copy of it.
        let earlier = places.get(&key).and_then(|place| changes.get(*place));
        let (key, before) = match (earlier, view.version(&key)) {
            (Some(change), _) => (change.key.clone(), change.after.clone()),
            (None, Some((key, held))) => (key.clone(), Some(held.clone())),
            (None, None) => (key, None),
        };
        let change = Change {
            revision: revision.0,
            key,
            before,
            after,
        };
        if revision < last || !change.goes_on() {
            return Err(Discontinuity {
                key: change.key,
                revision,
                last,
                held: view.revision(),
            });
        }
        last = revision;
        places.insert(change.key.clone(), changes.len());
        changes.push(Arc::new(change));
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{Entry, Version};

    fn put(key: &str, created: u64, modified: u64, version: u64) -> Event {
        Event::Put {
            entry: entry(key, created, modified, version),
            previous: None,
        }
    }

    fn entry(key: &str, created: u64, modified: u64, version: u64) -> Entry {
        let held = Version::new(Bytes::new(), Revision(created), Revision(modified), version);
        Entry::new(key, held)
    }

    fn delete(key: &str, revision: u64) -> Event {
        Event::Delete {
            key: key.into(),
            revision: Revision(revision),
            previous: None,
        }
    }

    /// A view of `/a`, made at 3 and changed at 5, as of revision 7.
    #[test]
    fn events_go_on_from_what_is_held_or_are_refused() {
        let view = View::of(vec![entry("/a", 3, 5, 2)], Revision(7));
        for (events, good) in [
            (vec![], true),
            (vec![put("/a", 3, 8, 3)], true),
            (vec![put("/a", 3, 8, 3), put("/b", 8, 8, 1), delete("/b", 9)], true),
            (vec![delete("/a", 8), put("/a", 9, 9, 1), put("/a", 9, 12, 2)], true),
            (
                vec![
                    put("/b", 8, 8, 1),
                    put("/b", 8, 9, 2),
                    delete("/b", 10),
                    put("/b", 11, 11, 1),
                ],
                true,
            ),
            // From the past.
            (vec![put("/a", 3, 7, 3)], false),
            (vec![put("/b", 6, 6, 1)], false),
            (vec![delete("/a", 6)], false),
            (vec![put("/b", 9, 9, 1), put("/c", 8, 8, 1)], false),
            // Of another key of this name.
            (vec![put("/a", 4, 8, 3)], false),
            (vec![put("/a", 8, 8, 1)], false),
            // Something was missed.
            (vec![put("/a", 3, 8, 4)], false),
            (vec![put("/a", 3, 8, 2)], false),
            (vec![put("/b", 4, 8, 2)], false),
            (vec![put("/b", 4, 8, 1)], false),
            (vec![delete("/b", 8)], false),
            (vec![delete("/a", 8), delete("/a", 9)], false),
            (vec![put("/b", 8, 8, 1), put("/b", 8, 9, 3)], false),
        ] {
            let told = format!("{events:?}");
            assert_eq!(changes(&view, events).is_ok(), good, "{told}");
        }
    }
}
