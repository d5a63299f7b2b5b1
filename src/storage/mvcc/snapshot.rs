//! Snapshots: one immutable look at the keys that a store holds in memory.

use std::sync::Arc;

use super::View;
use crate::{Entry, Epoch, Position, Revision};

/// The current keys as of one revision. Made and cloned in constant time; does not change when the store does.
#[derive(Clone)]
pub struct Snapshot {
    view: View,
}

impl Snapshot {
    pub(crate) fn new(view: View) -> Snapshot {
        Snapshot { view }
    }

    /// Entries of a list.
    pub(crate) fn of(entries: Vec<Entry>, revision: Revision) -> Snapshot {
        Snapshot::new(View::of(entries, revision))
    }

    /// Every write up to this revision is in the snapshot, and none after it.
    pub fn revision(&self) -> Revision {
        Revision(self.view.revision())
    }

    /// Where that is among what memory holds; `None`: it was read for its reader alone, and memory may know nothing of
    /// it.
    pub fn position(&self) -> Option<Position> {
        let (epoch, revision) = (self.view.epoch(), self.revision());
        (epoch != Epoch::default()).then_some(Position { epoch, revision })
    }

    pub fn get(&self, key: &str) -> Option<Entry> {
        self.view.get(key)
    }

    /// Entries whose keys start with `prefix` and are not before `from`, in the order of their keys.
    pub fn range<'a>(&'a self, prefix: &'a str, from: &'a str) -> impl Iterator<Item = Entry> + 'a {
        let start = if from > prefix { from } else { prefix };
        self.view.range(prefix, start).map(|(key, held)| Entry {
            key: Arc::clone(key),
            held: Arc::clone(held),
        })
    }

    /// How many keys a folder has, which ends with a slash; takes no longer for a large one.
    pub fn count(&self, folder: &str) -> usize {
        self.view.count_in(folder)
    }
}
