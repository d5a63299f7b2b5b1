//! The index of one term: keys by value.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use keelson_machinery::status::StatusError;
use keelson_storage::{Entry, Event, Position};

use super::Meta;
use super::index::Source;

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

/// Keys of all objects by what they have at a term.
pub(super) struct Index {
    pub term: Term,
    /// What it shows.
    pub at: Position,
    pub requests: u64,
    keys: HashMap<Box<str>, BTreeSet<Arc<str>>>,
}

impl Index {
    /// An empty one.
    pub fn new(term: Term, at: Position) -> Index {
        Index {
            term,
            at,
            requests: 1,
            keys: HashMap::new(),
        }
    }

    pub fn add(&mut self, key: &Arc<str>, meta: &Meta) {
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

    /// Takes in all events up to a position. After an error it is not to be used any more.
    pub fn follow(&mut self, events: &[Event], until: Position, source: &dyn Source) -> Result<(), StatusError> {
        for event in events {
            let (now, before) = halves(event);
            if let Some(before) = before {
                self.remove(&before.key, source.meta(before)?);
            }
            if let Some(now) = now {
                self.add(&now.key, source.meta(now)?);
            }
        }
        self.at = until;
        Ok(())
    }

    /// How many keys have one of these values.
    pub fn count(&self, values: &[&str]) -> usize {
        values
            .iter()
            .filter_map(|value| self.keys.get(*value).map(BTreeSet::len))
            .sum()
    }

    /// Those of them that begin with `prefix`; in order for each value.
    pub fn keys(&self, values: &[&str], prefix: &str) -> Vec<Arc<str>> {
        let sets = values.iter().filter_map(|value| self.keys.get(*value));
        let below = sets.flat_map(|keys| {
            keys.range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
                .take_while(|key| key.starts_with(prefix))
        });
        below.cloned().collect()
    }
}

/// What an event put there, and what was there before.
pub(super) fn halves(event: &Event) -> (Option<&Entry>, Option<&Entry>) {
    match event {
        Event::Put { entry, previous } => (Some(entry), previous.as_ref()),
        Event::Delete { previous, .. } => (None, previous.as_ref()),
    }
}
