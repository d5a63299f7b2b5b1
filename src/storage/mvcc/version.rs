//! Changes between versions of keys.

use std::sync::Arc;

pub(crate) use crate::Version;
use crate::{Entry, Event, Revision};

/// One write: `after` replaces `before` at `revision`.
#[derive(Debug)]
pub(crate) struct Change {
    pub revision: u64,
    pub key: Arc<str>,
    /// `None`: the key was absent, or what it held is forgotten.
    pub before: Option<Arc<Version>>,
    /// `None`: the key was deleted.
    pub after: Option<Arc<Version>>,
}

/// A key that holds a version.
pub(crate) fn entry(key: &Arc<str>, held: &Arc<Version>) -> Entry {
    Entry {
        key: key.clone(),
        held: held.clone(),
    }
}

impl Change {
    pub fn event(&self) -> Event {
        let previous = self.before.as_ref().map(|held| entry(&self.key, held));
        match &self.after {
            Some(held) => Event::Put {
                entry: entry(&self.key, held),
                previous,
            },
            None => Event::Delete {
                key: self.key.clone(),
                revision: Revision(self.revision),
                previous,
            },
        }
    }

    /// Whether nothing was missed between the version before and the one after. (In a store that numbers them.)
    pub fn goes_on(&self) -> bool {
        match (&self.before, &self.after) {
            (None, None) => false,
            (Some(before), None) => before.mod_revision.0 < self.revision,
            (None, Some(after)) => after.version == 1 && after.create_revision == after.mod_revision,
            (Some(before), Some(after)) => {
                let follows = after.version == before.version + 1 && after.create_revision == before.create_revision;
                follows && before.mod_revision < after.mod_revision
            }
        }
    }

    /// Bytes that keeping this change costs, about.
    pub fn size(&self) -> usize {
        const OVERHEAD: usize = 256;
        OVERHEAD + self.key.len() + self.after.as_ref().map_or(0, |version| version.value.len())
    }
}
