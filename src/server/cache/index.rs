//! Which objects have a certain label or field value, without looking at the others.
//!
//! An index is made when a term was asked for often enough, and brought up to the revision of the list that asks: so a
//! list through it shows what a list without it would. Nothing runs when nobody asks.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keelson_machinery::status::StatusError;
use keelson_storage::{Entry, Event, Position, Snapshot};

use super::Meta;

/// A smaller collection is looked through.
const MIN_OBJECTS: usize = 200;
/// A label has an index from this request for it on; a field from the first.
const MIN_REQUESTS: u32 = 2;
/// Indexes of one resource; another one takes the place of the one that was asked for least.
const MAX_INDEXES: usize = 8;
/// Terms that are counted before they have an index.
const MAX_COUNTED: usize = 64;
/// Events that bring indexes up to date; when there are more, they are made anew.
const MAX_EVENTS: usize = 10_000;

/// What can be indexed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Term {
    Label(Box<str>),
    /// By place among the resource's selectable fields.
    Field(usize),
}

impl Term {
    fn value<'a>(&self, meta: &'a Meta) -> Option<&'a str> {
        match self {
            Term::Label(key) => meta.label(key),
            Term::Field(place) => meta.fields.get(*place).map(|value| &**value),
        }
    }
}

/// A term that must have one of these values.
pub(crate) struct Wanted<'a> {
    pub term: Term,
    pub values: Vec<&'a str>,
}

/// What the indexes say.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    /// Keys, in order, among which are all that are wanted.
    Keys(Vec<Arc<str>>),
    /// No index helps: look at all.
    Scan,
    /// Another request has brought the indexes beyond this snapshot: take a newer one.
    Stale,
}

/// How to learn what happened, and what an entry is.
pub(crate) trait Source {
    /// Events after a position up to the snapshot's; `None`: too many, forgotten, or of another timeline.
    fn events(&self, after: Position, limit: usize) -> Option<Vec<Event>>;
    fn meta<'e>(&self, entry: &'e Entry) -> Result<&'e Meta, StatusError>;
}

/// The indexes of one resource.
#[derive(Default)]
pub(crate) struct Indexes {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// What the indexes show.
    at: Position,
    indexes: Vec<Index>,
    counted: Vec<(Term, u32)>,
}

struct Index {
    term: Term,
    requests: u64,
    keys: HashMap<Box<str>, BTreeSet<Arc<str>>>,
}

impl Index {
    fn add(&mut self, key: &Arc<str>, meta: &Meta) {
        let Some(value) = self.term.value(meta) else { return };
        match self.keys.get_mut(value) {
            Some(keys) => drop(keys.insert(key.clone())),
            None => drop(self.keys.insert(value.into(), BTreeSet::from([key.clone()]))),
        }
    }

    fn remove(&mut self, key: &Arc<str>, meta: &Meta) {
        let Some(value) = self.term.value(meta) else { return };
        let Some(keys) = self.keys.get_mut(value) else { return };
        keys.remove(key);
        if keys.is_empty() {
            self.keys.remove(value);
        }
    }

    fn count(&self, values: &[&str]) -> usize {
        values
            .iter()
            .filter_map(|value| self.keys.get(*value).map(BTreeSet::len))
            .sum()
    }
}

impl Indexes {
    /// Keys of `prefix` in `snapshot`, all of whose keys below `root` the indexes cover.
    pub fn find(
        &self,
        wanted: &[Wanted<'_>],
        snapshot: &Snapshot,
        root: &str,
        prefix: &str,
        source: &dyn Source,
    ) -> Result<Found, StatusError> {
        if wanted.is_empty() || snapshot.count(prefix) < MIN_OBJECTS {
            return Ok(Found::Scan);
        }
        // What was read for this list alone is looked through: it says nothing about the snapshots of others.
        let Some(to) = snapshot.position() else {
            return Ok(Found::Scan);
        };
        let mut inner = self.lock();
        if !inner.indexes.is_empty() && is_before(to, inner.at) {
            return Ok(Found::Stale);
        }
        inner.catch_up(to, snapshot, root, source)?;
        for wanted in wanted {
            inner.ask(&wanted.term, snapshot, root, source)?;
        }
        let best = wanted
            .iter()
            .filter_map(|wanted| Some((inner.index(&wanted.term)?, &wanted.values)))
            .min_by_key(|(index, values)| index.count(values));
        let Some((index, values)) = best else {
            return Ok(Found::Scan);
        };
        let mut keys: Vec<Arc<str>> = values
            .iter()
            .filter_map(|value| index.keys.get(*value))
            .flat_map(|keys| {
                keys.range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
                    .take_while(|key| key.starts_with(prefix))
            })
            .cloned()
            .collect();
        if values.len() > 1 {
            keys.sort_unstable();
        }
        Ok(Found::Keys(keys))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether memory has moved on from one position to the other, on the same timeline or to a later one.
fn is_before(one: Position, other: Position) -> bool {
    (one.epoch, one.revision) < (other.epoch, other.revision)
}

impl Inner {
    fn index(&self, term: &Term) -> Option<&Index> {
        self.indexes.iter().find(|index| index.term == *term)
    }

    /// Brings the indexes to where the snapshot is.
    fn catch_up(
        &mut self,
        to: Position,
        snapshot: &Snapshot,
        root: &str,
        source: &dyn Source,
    ) -> Result<(), StatusError> {
        let from = std::mem::replace(&mut self.at, to);
        if self.indexes.is_empty() || from == to {
            return Ok(());
        }
        let events = (from.epoch == to.epoch).then(|| source.events(from, MAX_EVENTS));
        let done = match events.flatten() {
            Some(events) => events.iter().try_for_each(|event| self.follow(event, source)),
            None => self.rebuild(snapshot, root, source),
        };
        if done.is_err() {
            // Half a step is worse than none: they are made again when they are asked for.
            self.indexes.clear();
        }
        done
    }

    fn follow(&mut self, event: &Event, source: &dyn Source) -> Result<(), StatusError> {
        let (now, before) = match event {
            Event::Put { entry, previous } => (Some(entry), previous),
            Event::Delete { previous, .. } => (None, previous),
        };
        if let Some(before) = before {
            let meta = source.meta(before)?;
            self.indexes
                .iter_mut()
                .for_each(|index| index.remove(&before.key, meta));
        }
        if let Some(now) = now {
            let meta = source.meta(now)?;
            self.indexes.iter_mut().for_each(|index| index.add(&now.key, meta));
        }
        Ok(())
    }

    fn rebuild(&mut self, snapshot: &Snapshot, root: &str, source: &dyn Source) -> Result<(), StatusError> {
        self.indexes.iter_mut().for_each(|index| index.keys.clear());
        for entry in snapshot.range(root, root) {
            let meta = source.meta(&entry)?;
            self.indexes.iter_mut().for_each(|index| index.add(&entry.key, meta));
        }
        Ok(())
    }

    /// Counts a request for a term, and makes its index if it is time to.
    fn ask(&mut self, term: &Term, snapshot: &Snapshot, root: &str, source: &dyn Source) -> Result<(), StatusError> {
        if let Some(index) = self.indexes.iter_mut().find(|index| index.term == *term) {
            index.requests += 1;
            return Ok(());
        }
        if !self.is_due(term) {
            return Ok(());
        }
        let mut index = Index {
            term: term.clone(),
            requests: 1,
            keys: HashMap::new(),
        };
        for entry in snapshot.range(root, root) {
            index.add(&entry.key, source.meta(&entry)?);
        }
        if self.indexes.len() >= MAX_INDEXES {
            let least = (0..self.indexes.len()).min_by_key(|place| self.indexes.get(*place).map(|i| i.requests));
            if let Some(least) = least {
                self.indexes.swap_remove(least);
            }
        }
        self.indexes.push(index);
        Ok(())
    }

    fn is_due(&mut self, term: &Term) -> bool {
        if matches!(term, Term::Field(_)) {
            return true;
        }
        match self.counted.iter().position(|(counted, _)| counted == term) {
            Some(place) => {
                let (_, requests) = &mut self.counted[place];
                *requests += 1;
                let due = *requests >= MIN_REQUESTS;
                if due {
                    self.counted.swap_remove(place);
                }
                due
            }
            None => {
                if self.counted.len() >= MAX_COUNTED {
                    self.counted.remove(0);
                }
                self.counted.push((term.clone(), 1));
                false
            }
        }
    }
}
