//! The changes since the oldest revision that is kept, in order.

use std::collections::VecDeque;
use std::sync::Arc;

use super::version::Change;

/// Changes in the order of their revisions, which several may share. Revisions may be missing only before the first
/// that is kept, except where the store lies elsewhere.
#[derive(Default)]
pub(crate) struct History {
    changes: VecDeque<Arc<Change>>,
    /// Sum of [`Change::size`].
    bytes: usize,
}

impl History {
    pub fn push(&mut self, change: Arc<Change>) {
        self.bytes += change.size();
        self.changes.push_back(change);
    }

    /// Removes up to `limit` changes older than `revision`.
    pub fn pop_before(&mut self, revision: u64, limit: usize) -> Vec<Arc<Change>> {
        let count = self.index_after(revision.saturating_sub(1)).min(limit);
        let popped: Vec<_> = self.changes.drain(..count).collect();
        self.bytes -= popped.iter().map(|change| change.size()).sum::<usize>();
        popped
    }

    /// All changes of a revision.
    pub fn at(&self, revision: u64) -> impl Iterator<Item = &Arc<Change>> {
        self.slice(revision.saturating_sub(1), revision)
    }

    /// The changes after `after`, up to and including `until`.
    pub fn slice(&self, after: u64, until: u64) -> impl Iterator<Item = &Arc<Change>> {
        let start = self.index_after(after);
        self.changes
            .range(start..)
            .take_while(move |change| change.revision <= until)
    }

    /// The oldest revision to keep in order to be within half of `bytes`, if history is over `bytes`. A revision that
    /// would have to be cut for it goes whole, unless it is the last.
    pub fn cut_to(&self, bytes: usize) -> Option<u64> {
        if self.bytes <= bytes {
            return None;
        }
        let mut size = self.bytes;
        let place = self.changes.iter().position(|change| {
            size -= change.size();
            size <= bytes / 2
        })?;
        let revision = |place: usize| self.changes.get(place).map(|change| change.revision);
        let kept = revision(place)?;
        if place == 0 || revision(place - 1) != Some(kept) {
            return Some(kept);
        }
        revision(self.index_after(kept)).or(Some(kept))
    }

    fn index_after(&self, revision: u64) -> usize {
        self.changes.partition_point(|change| change.revision <= revision)
    }
}
