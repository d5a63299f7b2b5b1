//! The table `current` is brought up to date for many changes at once: a page of it takes the changes of many keys, and
//! keys that change again and again hardly cost anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::writing::Writing;
use crate::mvcc::Change;

/// Keys that may wait for the table.
const WAITING: usize = 512;

/// What the table does not have yet.
#[derive(Default)]
pub(super) struct Index {
    /// The latest revision of each key that changed; `None`: it was deleted.
    changed: BTreeMap<Arc<str>, Option<u64>>,
}

impl Index {
    /// Notes what has become durable.
    pub fn note(&mut self, change: &Change) {
        let revision = change.after.is_some().then_some(change.revision);
        self.changed.insert(change.key.clone(), revision);
    }

    /// Whether the next transaction has to bring the table up to date.
    pub fn is_due(&self) -> bool {
        self.changed.len() >= WAITING
    }

    /// Brings the table to where `changes`, made in the same transaction, end; `revision` is theirs, or the last before.
    pub fn write(&self, writing: &Writing<'_>, changes: &[Arc<Change>], revision: u64) -> rusqlite::Result<()> {
        for (key, revision) in &self.changed {
            writing.set_current(key, *revision)?;
        }
        for change in changes {
            writing.set_current(&change.key, change.after.as_ref().map(|_| change.revision))?;
        }
        writing.set_indexed_revision(revision)
    }

    /// The table has it all.
    pub fn clear(&mut self) {
        self.changed.clear();
    }
}
