//! Proofs that no row of `history` got lost: the table `current` and two numbers of `meta`. A proof that is behind is
//! written anew when the rows prove themselves; one that names a row which is not there stops the store.
//!
//! Beyond the oldest revision rows prove themselves: their numbers have no gap, and each has a checksum. At the oldest
//! revision and before it only the rows that are needed are kept, and the table `current` says which those are.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::database::{Database, explain};
use crate::StoreError;
use crate::mvcc::View;

/// Keys that an error or a report names; of more it says how many.
const NAMED: usize = 3;

/// How the proofs compare with the rows.
#[derive(Default, Debug)]
pub(super) struct Findings {
    /// Keys of which `current` says something else than the rows, which prove themselves.
    pub stale: usize,
    /// Rows that `current` names and that are not there, by key and revision. No row tells of a later fate of the key.
    pub lost: Vec<(String, u64)>,
    /// What is wrong with a number of `meta` although all rows are there.
    pub number: Option<String>,
}

impl Findings {
    /// Compares `current` with what the rows up to the indexed revision say.
    pub fn compare(&mut self, database: &Database, view: &View, oldest: u64) -> rusqlite::Result<()> {
        let mut left = view.iter().count();
        database.current(|key, revision| {
            let found = view.version(key).map(|(_, held)| held.mod_revision.0);
            left -= usize::from(found.is_some());
            if found == Some(revision) {
                return;
            }
            match revision <= oldest && found.is_none_or(|found| found < revision) {
                true => self.lost.push((key.to_owned(), revision)),
                false => self.stale += 1,
            }
        })?;
        self.stale += left;
        self.acquit(database, oldest)
    }

    /// What a row says was deleted before the oldest revision is not lost, nor what has a row, its own or another
    /// key's.
    fn acquit(&mut self, database: &Database, oldest: u64) -> rusqlite::Result<()> {
        if self.lost.is_empty() {
            return Ok(());
        }
        let keys: HashSet<&str> = self.lost.iter().map(|(key, _)| key.as_str()).collect();
        let revisions: HashSet<u64> = self.lost.iter().map(|(_, revision)| *revision).collect();
        let (mut deleted, mut taken) = (HashMap::new(), HashSet::new());
        let read = database.rows(0, |row, _| {
            if row.value.is_none() && row.revision <= oldest && keys.contains(row.key) {
                deleted.insert(row.key.to_owned(), row.revision);
            }
            if revisions.contains(&row.revision) {
                taken.insert(row.revision);
            }
            Ok(())
        })?;
        debug_assert!(read.is_ok(), "nothing above fails");
        let before = self.lost.len();
        self.lost.retain(|(key, revision)| {
            !taken.contains(revision) && deleted.get(key).is_none_or(|deleted| deleted < revision)
        });
        self.stale += before - self.lost.len();
        Ok(())
    }

    /// Everything is as the proofs say.
    pub fn are_none(&self) -> bool {
        self.stale == 0 && self.lost.is_empty() && self.number.is_none()
    }

    /// Rows that are not there, named; `None`: all are.
    pub fn damage(&self) -> Option<String> {
        let (key, revision) = self.lost.first()?;
        let others = match self.lost.len() {
            1 => String::new(),
            n => format!(", and {} more", n - 1),
        };
        Some(format!("key {key}: revision {revision} is missing{others}"))
    }

    /// What of the proofs is behind, in words.
    pub fn staleness(&self) -> Vec<String> {
        let table = (self.stale > 0).then(|| match self.stale {
            1 => "1 key is not as the table current says".to_owned(),
            n => format!("{n} keys are not as the table current says"),
        });
        table.into_iter().chain(self.number.clone()).collect()
    }

    /// The rows that are lost, a line each, but not too many.
    pub fn losses(&self) -> Vec<String> {
        let named = self.lost.iter().take(NAMED);
        let mut lines: Vec<String> = named
            .map(|(key, revision)| format!("key {key}: revision {revision} is missing"))
            .collect();
        if self.lost.len() > NAMED {
            lines.push(format!("{} more keys are missing", self.lost.len() - NAMED));
        }
        lines
    }
}

/// Writes the proofs anew, in one transaction: what `view` shows is all there is.
pub(super) fn renew(database: &mut Database, path: &Path, view: &View) -> Result<(), StoreError> {
    let mut renewed = || {
        let writing = database.begin()?;
        writing.clear_current()?;
        for (key, held) in view.iter() {
            writing.set_current(key, Some(held.mod_revision.0))?;
        }
        writing.set_indexed_revision(view.revision())?;
        writing.set_last_revision(view.revision())?;
        writing.commit()
    };
    renewed().map_err(|error| explain(path, &error))
}
