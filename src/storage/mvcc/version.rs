//! Versions of keys and the changes between them.

use std::sync::Arc;

use bytes::Bytes;

use crate::{Entry, Event, LeaseId, Revision};

/// What a key held from one revision on. Shared by the current state, its past and the watchers' queues.
#[derive(Debug)]
pub(crate) struct Version {
    pub value: Bytes,
    pub created: u64,
    pub modified: u64,
    /// 1 after the key was made, +1 for each change.
    pub version: u64,
    pub lease: Option<LeaseId>,
}

impl Version {
    pub fn entry(&self, key: &str) -> Entry {
        Entry {
            key: key.to_owned(),
            value: self.value.clone(),
            create_revision: Revision(self.created),
            mod_revision: Revision(self.modified),
            version: self.version,
            lease: self.lease,
        }
    }
}

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

impl Change {
    pub fn event(&self) -> Event {
        let previous = self.before.as_ref().map(|version| version.entry(&self.key));
        match &self.after {
            Some(version) => Event::Put {
                entry: version.entry(&self.key),
                previous,
            },
            None => Event::Delete {
                key: self.key.to_string(),
                revision: Revision(self.revision),
                previous,
            },
        }
    }

    /// Bytes that keeping this change costs, about.
    pub fn size(&self) -> usize {
        const OVERHEAD: usize = 256;
        OVERHEAD + self.key.len() + self.after.as_ref().map_or(0, |version| version.value.len())
    }
}
