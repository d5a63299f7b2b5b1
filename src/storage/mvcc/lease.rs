//! Leases and the keys under them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::version::Change;
use crate::LeaseId;

#[derive(Default)]
pub(crate) struct Leases {
    leases: BTreeMap<LeaseId, Lease>,
    last: i64,
}

struct Lease {
    expires: Duration,
    keys: BTreeSet<Arc<str>>,
}

impl Leases {
    /// An id that no lease has had since the store was opened.
    pub fn next_id(&mut self) -> LeaseId {
        self.last += 1;
        LeaseId(self.last)
    }

    pub fn insert(&mut self, id: LeaseId, expires: Duration) {
        self.last = self.last.max(id.0);
        self.leases.insert(
            id,
            Lease {
                expires,
                keys: BTreeSet::new(),
            },
        );
    }

    pub fn contains(&self, id: LeaseId) -> bool {
        self.leases.contains_key(&id)
    }

    pub fn remove(&mut self, id: LeaseId) {
        self.leases.remove(&id);
    }

    /// The keys under a lease.
    pub fn keys(&self, id: LeaseId) -> Vec<Arc<str>> {
        self.leases
            .get(&id)
            .map(|lease| lease.keys.iter().cloned().collect())
            .unwrap_or_default()
    }

    pub fn expired(&self, now: Duration) -> Vec<LeaseId> {
        self.leases
            .iter()
            .filter(|(_, lease)| lease.expires <= now)
            .map(|(id, _)| *id)
            .collect()
    }

    /// Puts the key of a change under its lease and takes it from the one before.
    pub fn follow(&mut self, change: &Change) {
        let before = change.before.as_ref().and_then(|version| version.lease);
        let after = change.after.as_ref().and_then(|version| version.lease);
        if before == after {
            return;
        }
        if let Some(lease) = before.and_then(|id| self.leases.get_mut(&id)) {
            lease.keys.remove(&change.key);
        }
        self.attach(&change.key, after);
    }

    pub fn attach(&mut self, key: &Arc<str>, lease: Option<LeaseId>) {
        if let Some(lease) = lease.and_then(|id| self.leases.get_mut(&id)) {
            lease.keys.insert(key.clone());
        }
    }
}
