//! Writes planned on top of a view, before they are durable.

use std::collections::HashMap;
use std::sync::Arc;

use super::Mvcc;
use super::version::{Change, Version, entry};
use super::view::View;
use crate::{Expect, LeaseId, Revision, StoreError, Write, Written};

/// Changes in order, each seeing those before it.
pub(crate) struct Batch<'a> {
    mvcc: &'a Mvcc,
    view: View,
    changed: HashMap<Arc<str>, Option<Arc<Version>>>,
    revision: u64,
    changes: Vec<Arc<Change>>,
}

/// What a write will have come to once its batch is durable.
pub(crate) type Planned = Result<Written, StoreError>;

impl<'a> Batch<'a> {
    pub fn new(mvcc: &'a Mvcc) -> Result<Self, StoreError> {
        let view = mvcc.view()?;
        let revision = view.revision();
        Ok(Batch {
            mvcc,
            view,
            changed: HashMap::new(),
            revision,
            changes: Vec::new(),
        })
    }

    /// The revision of the last change, or the one before all.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn write(&mut self, key: &str, expect: Expect, write: Write) -> Planned {
        let (key, before) = self.held(key);
        let holds = match (expect, &before) {
            (Expect::Absent | Expect::Revision(Revision(0)), held) => held.is_none(),
            (Expect::Revision(wanted), Some(held)) => held.mod_revision == wanted,
            (Expect::Revision(_), None) => false,
        };
        if !holds {
            return Ok(Written::Conflict {
                current: before.as_ref().map(|version| entry(&key, version)),
                revision: Revision(self.revision),
            });
        }
        match write {
            Write::Put { lease: Some(lease), .. } if !self.mvcc.leases().contains(lease) => {
                return Err(StoreError::LeaseNotFound(lease));
            }
            Write::Put { value, lease } => {
                let modified = Revision(self.revision + 1);
                let (created, version) = before
                    .as_ref()
                    .map_or((modified, 1), |before| (before.create_revision, before.version + 1));
                let after = Version::new(value, created, modified, version).with_lease(lease);
                self.change(key, before, Some(Arc::new(after)));
            }
            Write::Delete if before.is_some() => self.change(key, before, None),
            Write::Delete => {}
        }
        Ok(Written::Done {
            revision: Revision(self.revision),
        })
    }

    /// Deletes keys of leases that have expired, in their order, but no more than `room`. Returns how many of the
    /// leases have no key left.
    pub fn expire(&mut self, leases: &[LeaseId], mut room: usize) -> usize {
        let lease_of = |version: &Option<Arc<Version>>| version.as_ref().and_then(|version| version.lease);
        let planned = self
            .changed
            .iter()
            .filter_map(|(key, version)| Some((lease_of(version)?, key.clone())));
        let planned: Vec<(LeaseId, Arc<str>)> = planned.collect();
        for (ended, &lease) in leases.iter().enumerate() {
            let mut keys = self.mvcc.leases().keys(lease);
            keys.extend(
                planned
                    .iter()
                    .filter(|(id, _)| *id == lease)
                    .map(|(_, key)| key.clone()),
            );
            for key in keys {
                let (key, before) = self.held(&key);
                if lease_of(&before) != Some(lease) {
                    continue;
                }
                if room == 0 {
                    return ended;
                }
                room -= 1;
                self.change(key, before, None);
            }
        }
        leases.len()
    }

    /// The changes, to be made durable and then applied. Lets go of the view, so that applying copies less.
    pub fn into_changes(self) -> Vec<Arc<Change>> {
        self.changes
    }

    fn held(&self, key: &str) -> (Arc<str>, Option<Arc<Version>>) {
        if let Some((key, version)) = self.changed.get_key_value(key) {
            return (key.clone(), version.clone());
        }
        match self.view.version(key) {
            Some((key, version)) => (key.clone(), Some(version.clone())),
            None => (Arc::from(key), None),
        }
    }

    fn change(&mut self, key: Arc<str>, before: Option<Arc<Version>>, after: Option<Arc<Version>>) {
        self.revision += 1;
        self.changed.insert(key.clone(), after.clone());
        self.changes.push(Arc::new(Change {
            revision: self.revision,
            key,
            before,
            after,
        }));
    }
}
