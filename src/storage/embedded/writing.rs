//! Table writes of one transaction.

use rusqlite::{Transaction, params};

#[cfg(test)]
use super::database::CommitFault;
#[cfg(doc)]
use super::database::Database;
use super::database::{COMPACT_REVISION, INDEXED_REVISION, LAST_REVISION, Row, TIMELINE, checksum_of};
use crate::LeaseId;
use crate::mvcc::Change;

/// A transaction.
pub(super) struct Writing<'a> {
    transaction: Transaction<'a>,
    #[cfg(test)]
    fault: Option<CommitFault>,
}

impl<'a> Writing<'a> {
    /// Nothing of it stays unless it is committed.
    pub fn new(transaction: Transaction<'a>) -> Writing<'a> {
        Writing {
            transaction,
            #[cfg(test)]
            fault: None,
        }
    }

    /// This transaction, whose commit fails.
    #[cfg(test)]
    pub fn failing(self, fault: Option<CommitFault>) -> Writing<'a> {
        Writing { fault, ..self }
    }

    pub fn change(&self, change: &Change) -> rusqlite::Result<()> {
        let held = change.after.as_deref();
        let row = Row {
            revision: change.revision,
            key: &change.key,
            value: held.map(|version| version.value.as_ref()),
            created: held.map_or(0, |version| version.create_revision.0),
            version: held.map_or(0, |version| version.version),
            lease: held.and_then(|version| version.lease).map(|lease| lease.0),
        };
        let insert = "INSERT INTO history (revision, key, value, create_revision, version, lease, checksum)
                      VALUES (?, ?, ?, ?, ?, ?, ?)";
        let revision = row.revision as i64;
        let values = params![
            revision,
            row.key,
            row.value,
            row.created as i64,
            row.version as i64,
            row.lease,
            row.checksum()
        ];
        self.transaction.prepare_cached(insert)?.execute(values)?;
        Ok(())
    }

    /// Notes the revision of a key in `current`; `None`: it holds nothing.
    pub fn set_current(&self, key: &str, revision: Option<u64>) -> rusqlite::Result<()> {
        let Some(revision) = revision else {
            let delete = "DELETE FROM current WHERE key = ?";
            return self.transaction.prepare_cached(delete)?.execute([key]).map(drop);
        };
        let set = "INSERT INTO current (key, revision) VALUES (?, ?)
                   ON CONFLICT (key) DO UPDATE SET revision = excluded.revision";
        let values = params![key, revision as i64];
        self.transaction.prepare_cached(set)?.execute(values).map(drop)
    }

    /// Empties `current`.
    pub fn clear_current(&self) -> rusqlite::Result<()> {
        self.transaction.execute("DELETE FROM current", []).map(drop)
    }

    /// Deletes rows that compaction has made useless.
    pub fn forget<'r>(&self, revisions: impl Iterator<Item = &'r u64>) -> rusqlite::Result<()> {
        let mut delete = self
            .transaction
            .prepare_cached("DELETE FROM history WHERE revision = ?")?;
        for revision in revisions {
            delete.execute([*revision as i64])?;
        }
        Ok(())
    }

    /// `current` has to be right as of this revision or a later one.
    pub fn set_compact_revision(&self, revision: u64) -> rusqlite::Result<()> {
        self.set(COMPACT_REVISION, revision)
    }

    pub fn set_indexed_revision(&self, revision: u64) -> rusqlite::Result<()> {
        self.set(INDEXED_REVISION, revision)
    }

    pub fn set_last_revision(&self, revision: u64) -> rusqlite::Result<()> {
        self.set(LAST_REVISION, revision)
    }

    fn set(&self, name: &str, revision: u64) -> rusqlite::Result<()> {
        let set = "UPDATE meta SET value = ?, checksum = ? WHERE name = ?";
        let revision = revision as i64;
        let values = params![revision, checksum_of(name.as_bytes(), revision), name];
        self.transaction.prepare_cached(set)?.execute(values).map(drop)
    }

    /// Names the timeline; see [`Database::timeline`].
    pub fn set_timeline(&self, timeline: u64) -> rusqlite::Result<()> {
        let set = "INSERT INTO meta (name, value, checksum) VALUES (?, ?, ?)
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value, checksum = excluded.checksum";
        let value = timeline as i64;
        let values = params![TIMELINE, value, checksum_of(TIMELINE.as_bytes(), value)];
        self.transaction.execute(set, values).map(drop)
    }

    pub fn grant(&self, id: LeaseId, ttl_ms: u64) -> rusqlite::Result<()> {
        let insert = "INSERT INTO leases (id, ttl_ms, checksum) VALUES (?, ?, ?)";
        let (id, ttl_ms) = (id.0, ttl_ms as i64);
        let values = params![id, ttl_ms, checksum_of(&id.to_le_bytes(), ttl_ms)];
        self.transaction.prepare_cached(insert)?.execute(values).map(drop)
    }

    pub fn revoke(&self, id: LeaseId) -> rusqlite::Result<()> {
        self.transaction
            .prepare_cached("DELETE FROM leases WHERE id = ?")?
            .execute([id.0])
            .map(drop)
    }

    /// Writes, but changes nothing.
    pub fn probe(&self) -> rusqlite::Result<()> {
        self.transaction
            .execute("UPDATE meta SET value = value WHERE name = 'format'", [])
            .map(drop)
    }

    /// Returns after fsync.
    pub fn commit(self) -> rusqlite::Result<()> {
        #[cfg(test)]
        if let Some(fault) = self.fault {
            if fault == CommitFault::Durable {
                self.transaction.commit()?;
            }
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR);
            return Err(rusqlite::Error::SqliteFailure(code, None));
        }
        self.transaction.commit()
    }
}
