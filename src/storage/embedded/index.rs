//! The table `current`, brought up to date for many changes at once: a page of it takes the changes of many keys, and
//! keys that change again and again hardly cost anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::writing::Writing;
use crate::mvcc::Change;

/// Keys that may wait for the table.
const WAITING: usize = 512;

/// What the table does not have yet.
pub(super) struct Index {
    /// The last change of each key that changed.
    changed: BTreeMap<Arc<str>, Last>,
    most: usize,
}

#[derive(Clone, Copy)]
struct Last {
    revision: u64,
    /// The key holds something; else the change deleted it.
    holds: bool,
}

/// As of which revision a transaction has made the table right. It is true once the transaction is committed.
#[must_use]
pub(super) struct Indexed(u64);

impl Default for Index {
    fn default() -> Self {
        Index {
            changed: BTreeMap::new(),
            most: WAITING,
        }
    }
}

impl Index {
    /// Notes what has become durable.
    pub fn note(&mut self, change: &Change) {
        let last = Last {
            revision: change.revision,
            holds: change.after.is_some(),
        };
        self.changed.insert(change.key.clone(), last);
    }

    /// Whether the next transaction has to bring the table up to date.
    pub fn is_due(&self) -> bool {
        self.changed.len() >= self.most
    }

    /// Has the table brought up to date when so many keys wait for it.
    #[cfg(test)]
    pub fn limit(&mut self, most: usize) {
        self.most = most;
    }

    /// Brings the table to where `changes`, made in the same transaction, end; `revision` is theirs, or the last
    /// before.
    pub fn write(&self, writing: &Writing<'_>, changes: &[Arc<Change>], revision: u64) -> rusqlite::Result<Indexed> {
        for (key, last) in &self.changed {
            writing.set_current(key, last.holds.then_some(last.revision))?;
        }
        for change in changes {
            writing.set_current(&change.key, change.after.as_ref().map(|_| change.revision))?;
        }
        writing.set_indexed_revision(revision)?;
        Ok(Indexed(revision))
    }

    /// A transaction with these changes is committed. Only what it has written into the table waits no longer.
    pub fn committed(&mut self, changes: &[Arc<Change>], indexed: Option<Indexed>) {
        changes.iter().for_each(|change| self.note(change));
        if let Some(Indexed(revision)) = indexed {
            self.changed.retain(|_, last| last.revision > revision);
        }
    }
}
