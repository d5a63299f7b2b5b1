//! A store made anew from entries of elsewhere, with their revisions.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::database::{Database, explain};
use super::folder::{self, Folder};
use super::main_file::MainFile;
use super::offline::{Report, part, remove_all, report};
use crate::mvcc::Change;
use crate::{Entry, LeaseId, Revision, StoreError, Version};

/// A store that is being filled. Nothing is in its place before [`Filling::finish`].
pub(crate) struct Filling {
    folder: Folder,
    path: PathBuf,
    part: PathBuf,
    database: Database,
    /// Revisions of the entries so far.
    taken: HashSet<u64>,
    /// Entries whose revision another key has: they get new ones.
    shared: Vec<Entry>,
}

impl Filling {
    /// Takes the folder, which is made if it is missing.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if it holds keys already and `overwrite` is not set.
    pub fn begin(dir: &Path, overwrite: bool) -> Result<Filling, StoreError> {
        let folder = Folder::take(dir)?;
        let path = folder.database();
        if folder.holds_store() {
            folder.check()?;
            let file = MainFile::read(&path);
            let old = Database::open_existing(&path)?;
            file.check(&old, &path)?;
            let report = report(&folder, &old)?;
            if !overwrite && report.keys > 0 {
                return Err(StoreError::Unavailable(format!(
                    "{} holds {} keys already, which were not to be overwritten",
                    dir.display(),
                    report.keys
                )));
            }
        }
        let part = part(&path);
        remove_all(&part);
        folder::create(&part).map_err(|error| failed(&part, &error))?;
        let database = Database::open(&part)?;
        Ok(Filling {
            folder,
            path,
            part,
            database,
            taken: HashSet::new(),
            shared: Vec::new(),
        })
    }

    /// Adds entries in one transaction. Each key may come once.
    pub fn add(&mut self, entries: Vec<Entry>) -> Result<(), StoreError> {
        let (own, shared): (Vec<Entry>, Vec<Entry>) = entries
            .into_iter()
            .partition(|entry| self.taken.insert(entry.mod_revision.0));
        self.shared.extend(shared);
        self.write(own.into_iter().map(|entry| (entry.mod_revision.0, entry)).collect())
    }

    fn write(&mut self, entries: Vec<(u64, Entry)>) -> Result<(), StoreError> {
        let written = || {
            let writing = self.database.begin()?;
            for (revision, Entry { key, held }) in entries {
                writing.set_current(&key, Some(revision))?;
                writing.change(&Change {
                    revision,
                    key,
                    before: None,
                    after: Some(held),
                })?;
            }
            writing.commit()
        };
        written().map_err(|error| explain(&self.part, &error))
    }

    /// Puts the store into its place, as one that was compacted at `revision`, where it goes on. Leases begin anew when
    /// it is opened, with these times.
    pub fn finish(mut self, revision: Revision, leases: &[(LeaseId, Duration)]) -> Result<Report, StoreError> {
        let mut last = self.taken.iter().copied().max().unwrap_or(0).max(revision.0);
        let mut moved = Vec::new();
        for Entry { key, held } in std::mem::take(&mut self.shared) {
            last += 1;
            let (value, lease) = (held.value.clone(), held.lease);
            let version = Version::new(value, held.create_revision, Revision(last), held.version);
            let held = Arc::new(version.with_lease(lease));
            moved.push((last, Entry { key, held }));
        }
        self.write(moved)?;
        let mut settled = || {
            let writing = self.database.begin()?;
            for (id, time) in leases {
                writing.grant(*id, u64::try_from(time.as_millis()).unwrap_or(u64::MAX))?;
            }
            writing.set_indexed_revision(last)?;
            writing.set_last_revision(last)?;
            writing.set_compact_revision(last)?;
            writing.commit()?;
            self.database.empty_log()
        };
        settled().map_err(|error| explain(&self.part, &error))?;
        self.put_into_place()
    }

    fn put_into_place(self) -> Result<Report, StoreError> {
        let Filling {
            folder,
            path,
            part,
            database,
            ..
        } = self;
        drop(database);
        let synced = File::open(&part).and_then(|file| file.sync_all());
        synced.map_err(|error| failed(&part, &error))?;
        if folder.holds_store() {
            // Whole until the new one takes its place.
            let old = Database::connect(&path).map_err(|error| explain(&path, &error))?;
            old.empty_log().map_err(|error| explain(&path, &error))?;
        }
        // The log of the old store must not be taken for one of the new.
        folder.remove_log().map_err(|error| failed(&path, &error))?;
        fs::rename(&part, &path).map_err(|error| failed(&path, &error))?;
        remove_all(&part);
        folder.sync().map_err(|error| failed(&path, &error))?;
        let database = Database::open(&path)?;
        report(&folder, &database)
    }
}

fn failed(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Unavailable(format!("{}: {error}", path.display()))
}
