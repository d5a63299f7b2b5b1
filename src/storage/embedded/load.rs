//! Reads the tables into memory when a store is opened, and refuses what is not as it was written.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::database::{Database, INDEXED_REVISION, LAST_REVISION, Row, explain};
use super::index::Index;
use super::proof::{self, Findings};
use crate::mvcc::{Change, History, Leases, Mvcc, Version, View};
use crate::{LeaseId, Revision, StoreError};

/// A store's memory, and the rows that compaction has not deleted yet.
pub(super) struct Loaded {
    pub mvcc: Arc<Mvcc>,
    pub garbage: Vec<u64>,
    /// What the table of current keys does not have yet.
    pub index: Index,
    /// How the proofs compare with the rows.
    pub findings: Findings,
}

/// Reads everything. Proofs that are behind are written anew, which is told in the log; rows that are lost are
/// [`StoreError::Corrupt`].
pub(super) fn load(database: &mut Database, path: &Path, now: Duration) -> Result<Loaded, StoreError> {
    let mut loaded = examine(database, path, now)?;
    let findings = std::mem::take(&mut loaded.findings);
    if let Some(damage) = findings.damage() {
        return Err(StoreError::Corrupt(format!("{}: {damage}", path.display())));
    }
    if !findings.are_none() {
        let what = findings.staleness().join("; ");
        tracing::warn!(file = %path.display(), what, "proofs of the store are behind its rows, which are all there");
        proof::renew(database, path, &loaded.mvcc.view()?)?;
        loaded.index = Index::default();
    }
    Ok(loaded)
}

/// As [`load`], but writes nothing, and reports what the proofs say. Leases begin anew at `now`, since the time that
/// the store was closed is unknown.
pub(super) fn examine(database: &Database, path: &Path, now: Duration) -> Result<Loaded, StoreError> {
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
    let (mut index, mut as_indexed) = (Index::default(), None);
    // In one go: a part of the rows would end at one that stands where it does not belong, and hide those behind it.
    let taken = database.rows(0, |row, checksum| {
        if row.revision > indexed && as_indexed.is_none() {
            as_indexed = Some(loader.view.clone());
        }
        let change = loader.take(&row, checksum)?;
        if as_indexed.is_some() {
            index.note(&change);
        }
        Ok(())
    });
    taken.map_err(failed)??;
    let mut findings = Findings::default();
    let shown = as_indexed.as_ref().unwrap_or(&loader.view);
    findings.compare(database, shown, oldest).map_err(failed)?;
    loader.view.set_oldest(oldest);
    findings.number = loader.check_numbers(indexed, database.last_revision().map_err(failed)?)?;

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
        findings,
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
    let taken = database.rows(revision, |row, checksum| loader.take(&row, checksum).map(drop));
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

    /// Compares with what was the last revision: rows after it are no loss, rows up to it must be there. What is
    /// returned says which number is wrong all the same.
    fn check_numbers(&self, indexed: u64, last: u64) -> Result<Option<String>, StoreError> {
        let (found, last) = (self.view.revision(), last.max(View::default().revision()));
        if found < last {
            let path = self.path.display();
            let text = format!("{path}: the last revision is {found}, and was {last}");
            return Err(StoreError::Corrupt(text));
        }
        let number = |name: &str, value| format!("meta says {name} {value}, and the last revision is {found}");
        Ok(if found > last {
            Some(number(LAST_REVISION, last))
        } else {
            (indexed > found).then(|| number(INDEXED_REVISION, indexed))
        })
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
