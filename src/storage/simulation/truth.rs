//! The truth of a run: what was written, revision by revision, by which every reader is measured.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use imbl::OrdMap;
use tokio::time::Instant;

use crate::{Entry, Event, LeaseId, Revision, Version};

/// All keys at one revision.
pub type Keys = OrdMap<Arc<str>, Entry>;

/// One key of a transaction.
#[derive(Clone, Debug)]
pub struct Op {
    pub key: Arc<str>,
    /// `None`: it is deleted.
    pub put: Option<(Bytes, Option<LeaseId>)>,
}

/// What one revision made of the one before.
#[derive(Clone)]
struct Point {
    keys: Keys,
    events: Vec<Event>,
    at: Instant,
}

/// A history without a break. Its first revision is 1, which has no keys.
#[derive(Clone)]
struct Timeline {
    points: Vec<Point>,
    /// The timeline that this one shares its beginning with, and the last revision that they share.
    parent: Option<(usize, u64)>,
    /// The revision when it could be reached first; 0: it can't yet.
    begun: u64,
}

impl Timeline {
    fn last(&self) -> u64 {
        self.points.len() as u64
    }

    fn at(&self, revision: u64) -> Option<&Point> {
        self.points.get(usize::try_from(revision).ok()?.checked_sub(1)?)
    }
}

/// All timelines of a store; the last one is the current one.
pub struct Truth(Mutex<Vec<Timeline>>);

/// A moment in a store's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    pub timeline: usize,
    pub revision: Revision,
}

impl Truth {
    /// Of an empty store.
    pub fn of_nothing() -> Truth {
        let first = Point {
            keys: Keys::new(),
            events: Vec::new(),
            at: Instant::now(),
        };
        let points = vec![first];
        let timeline = Timeline {
            points,
            parent: None,
            begun: 1,
        };
        Truth(Mutex::new(vec![timeline]))
    }

    pub fn now(&self) -> Now {
        let timelines = self.lock();
        Now {
            timeline: timelines.len() - 1,
            revision: Revision(timelines.last().map_or(0, Timeline::last)),
        }
    }

    /// Writes these keys in one revision, which it returns. Absent keys that are deleted count for nothing.
    pub fn commit(&self, ops: &[Op]) -> Revision {
        let mut timelines = self.lock();
        let Some(timeline) = timelines.last_mut() else {
            return Revision::default();
        };
        let (next, mut keys) = (
            timeline.last() + 1,
            timeline.points[timeline.points.len() - 1].keys.clone(),
        );
        let mut events = Vec::new();
        for op in ops {
            let previous = keys.get(&op.key).cloned();
            match &op.put {
                Some((value, lease)) => {
                    let made = previous
                        .as_ref()
                        .map_or((Revision(next), 1), |entry| (entry.create_revision, entry.version + 1));
                    let held = Version::new(value.clone(), made.0, Revision(next), made.1).with_lease(*lease);
                    let entry = Entry::new(op.key.clone(), held);
                    keys.insert(op.key.clone(), entry.clone());
                    events.push(Event::Put { entry, previous });
                }
                None if previous.is_some() => {
                    keys.remove(&op.key);
                    let (key, revision) = (op.key.clone(), Revision(next));
                    events.push(Event::Delete {
                        key,
                        revision,
                        previous,
                    });
                }
                None => {}
            }
        }
        if !events.is_empty() {
            let at = Instant::now();
            timeline.points.push(Point { keys, events, at });
        }
        Revision(timeline.last())
    }

    /// Writes what an event says, at the next revision. False: it says another one.
    pub fn learn(&self, event: &Event) -> bool {
        let put = match event {
            Event::Put { entry, .. } => Some((entry.value.clone(), entry.lease)),
            Event::Delete { .. } => None,
        };
        let key = Arc::from(key(event));
        self.commit(&[Op { key, put }]) == event.revision()
    }

    /// Begins another timeline after a revision of the current one.
    pub fn fork(&self, after: Revision) {
        let mut timelines = self.lock();
        let current = timelines.len() - 1;
        let points = timelines[current].points[..after.0 as usize].to_vec();
        let parent = Some((current, after.0));
        timelines.push(Timeline {
            points,
            parent,
            begun: 0,
        });
    }

    /// The current timeline can be reached from now on.
    pub fn begin(&self) {
        if let Some(timeline) = self.lock().last_mut() {
            timeline.begun = timeline.last();
        }
    }

    /// Whether a revision was there before the current timeline could be reached.
    pub fn is_before_begin(&self, revision: Revision) -> bool {
        self.lock().last().is_some_and(|timeline| revision.0 < timeline.begun)
    }

    /// All keys at a revision, if there was one.
    pub fn keys(&self, timeline: usize, revision: Revision) -> Option<Keys> {
        let timelines = self.lock();
        Some(timelines.get(timeline)?.at(revision.0)?.keys.clone())
    }

    /// What a key held at the current revision.
    pub fn get(&self, key: &str) -> Option<Entry> {
        let timelines = self.lock();
        timelines.last()?.points.last()?.keys.get(key).cloned()
    }

    /// Events of a prefix after a revision up to and with another one.
    pub fn events(&self, timeline: usize, prefix: &str, after: Revision, until: Revision) -> Vec<Event> {
        let timelines = self.lock();
        let points = &timelines[timeline].points;
        let until = (until.0 as usize).min(points.len());
        let points = points.get((after.0 as usize).min(until)..until).unwrap_or_default();
        let events = points.iter().flat_map(|point| &point.events);
        events.filter(|event| key(event).starts_with(prefix)).cloned().collect()
    }

    /// How many events there are of a prefix after a revision.
    pub fn count_after(&self, timeline: usize, prefix: &str, after: Revision) -> usize {
        self.events(timeline, prefix, after, Revision(u64::MAX)).len()
    }

    /// The last revision that two timelines share.
    pub fn shared(&self, one: usize, other: usize) -> Revision {
        let timelines = self.lock();
        let (mut at, least, mut shared) = (one.max(other), one.min(other), u64::MAX);
        while at > least {
            let Some((parent, revision)) = timelines[at].parent else {
                break;
            };
            (at, shared) = (parent, shared.min(revision));
        }
        Revision(shared)
    }

    /// For how long now a key has held something else than at a revision; zero: it holds the same.
    pub fn stale_for(&self, timeline: usize, key: &str, modified: Revision) -> Duration {
        let timelines = self.lock();
        let after = timelines[timeline]
            .points
            .get(modified.0 as usize..)
            .unwrap_or_default();
        let changed = after
            .iter()
            .find(|point| point.events.iter().any(|event| self::key(event) == key));
        changed.map_or(Duration::ZERO, |point| point.at.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Timeline>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of an event.
pub fn key(event: &Event) -> &str {
    match event {
        Event::Put { entry, .. } => &entry.key,
        Event::Delete { key, .. } => key,
    }
}

/// The keys of a prefix.
pub fn below(keys: &Keys, prefix: &str) -> Vec<Entry> {
    let from = keys.range(Arc::<str>::from(prefix)..);
    let below = from.take_while(|(key, _)| key.starts_with(prefix));
    below.map(|(_, entry)| entry.clone()).collect()
}
