//! Reads the tables into memory when a store is opened, and refuses what is not as it was written.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::database::{Database, Row, explain};
use super::index::Index;
use crate::mvcc::{Change, History, Leases, Mvcc, Version, View};
use crate::{LeaseId, Revision, StoreError};

/// A store's memory, and the rows that compaction has not deleted yet.
pub(super) struct Loaded {
    pub mvcc: Arc<Mvcc>,
    pub garbage: Vec<u64>,
    /// What the table of current keys does not have yet.
    pub index: Index,
}

/// Leases begin anew at `now`, since the time that the store was closed is unknown.
pub(super) fn load(database: &Database, path: &Path, now: Duration) -> Result<Loaded, StoreError> {
    let failed = |error| explain(path, &error);
    let oldest = database.compact_revision().map_err(failed)?;
    let mut loader = Loader {
        path,
        oldest,
        view: View::default(),
        history: History::default(),
        garbage: Vec::new(),
    };
    let indexed = database.indexed_revision().map_err(failed)?;
    database
        .rows(0, indexed, |row, checksum| loader.take(&row, checksum).map(drop))
        .map_err(failed)??;
    loader.check_current(database)?;
    let mut index = Index::default();
    let newer = database.rows(indexed, u64::MAX, |row, checksum| {
        loader.take(&row, checksum).map(|change| index.note(&change))
    });
    newer.map_err(failed)??;
    loader.view.set_oldest(oldest);
    loader.check_last(database.last_revision().map_err(failed)?)?;

    let mut leases = Leases::default();
    for (id, ttl_ms) in database.leases().map_err(failed)? {
        leases.insert(id, now + Duration::from_millis(ttl_ms));
    }
    for (key, version) in loader.view.iter() {
        leases.attach(key, version.lease);
    }
    Ok(Loaded {
        mvcc: Mvcc::new(loader.view, loader.history, leases),
        garbage: loader.garbage,
        index,
    })
}

/// Changes on disk that memory does not know: a commit that was reported as failed but was not.
pub(super) fn missed(database: &Database, path: &Path, view: View) -> Result<Vec<Arc<Change>>, StoreError> {
    let (oldest, revision) = (view.oldest(), view.revision());
    let mut loader = Loader {
        path,
        oldest,
        view,
        history: History::default(),
        garbage: Vec::new(),
    };
    let taken = database.rows(revision, u64::MAX, |row, checksum| {
        loader.take(&row, checksum).map(drop)
    });
    taken.map_err(|error| explain(path, &error))??;
    Ok(loader.history.pop_before(u64::MAX, usize::MAX))
}

struct Loader<'a> {
    path: &'a Path,
    oldest: u64,
    view: View,
    history: History,
    garbage: Vec<u64>,
}

impl Loader<'_> {
    fn take(&mut self, row: &Row<'_>, checksum: u32) -> Result<Arc<Change>, StoreError> {
        if row.checksum() != checksum {
            return Err(self.damaged(row, "its checksum is wrong"));
        }
        if row.revision <= self.view.revision() {
            return Err(self.damaged(row, "a later revision comes before it"));
        }
        if row.revision > self.oldest.max(1) + 1 && row.revision != self.view.revision().max(self.oldest) + 1 {
            return Err(self.damaged(row, "the revision before it is missing"));
        }
        let (key, before) = match self.view.version(row.key) {
            Some((key, version)) => (key.clone(), Some(version.clone())),
            None => (Arc::from(row.key), None),
        };
        let after = row.value.map(|value| {
            let value = Bytes::copy_from_slice(value);
            let held = Version::new(value, Revision(row.created), Revision(row.revision), row.version);
            Arc::new(held.with_lease(row.lease.map(LeaseId)))
        });
        let change = Arc::new(Change {
            revision: row.revision,
            key,
            before,
            after,
        });
        self.view.apply(&change);
        if row.revision < self.oldest {
            self.view.forget(&change, &mut self.garbage);
            return Ok(change);
        }
        if row.revision == self.oldest {
            self.view.forget_previous(&change, &mut self.garbage);
        }
        self.history.push(change.clone());
        Ok(change)
    }

    /// Compares with what was the last revision.
    fn check_last(&self, last: u64) -> Result<(), StoreError> {
        let (found, last) = (self.view.revision(), last.max(View::default().revision()));
        if found == last {
            return Ok(());
        }
        let path = self.path.display();
        Err(StoreError::Corrupt(format!(
            "{path}: the last revision is {found}, and was {last}"
        )))
    }

    /// Compares with the table of current keys.
    fn check_current(&self, database: &Database) -> Result<(), StoreError> {
        let mut left = self.view.iter().count();
        let mut lost = None;
        let compared = database.current(|key, revision| match self.view.version(key) {
            Some((_, version)) if version.mod_revision.0 == revision => left -= 1,
            _ => {
                lost = Some(format!(
                    "{}: key {key}: revision {revision} is missing",
                    self.path.display()
                ))
            }
        });
        compared.map_err(|error| explain(self.path, &error))?;
        match lost {
            Some(lost) => Err(StoreError::Corrupt(lost)),
            None if left > 0 => Err(StoreError::Corrupt(format!(
                "{}: {left} keys are not in the table current",
                self.path.display()
            ))),
            None => Ok(()),
        }
    }

    fn damaged(&self, row: &Row<'_>, what: &str) -> StoreError {
        StoreError::Corrupt(format!(
            "{}: key {} at revision {}: {what}",
            self.path.display(),
            row.key,
            row.revision
        ))
    }
}
