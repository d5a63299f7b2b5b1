//! The folder of an embedded store: who may read it, and that one process at a time uses it.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::log::{self, Log};
use super::reserve::Reserve;
use crate::StoreError;

/// Only the owner may enter the folder …
const FOLDER_MODE: u32 = 0o700;
/// … and read its files.
const FILE_MODE: u32 = 0o600;

/// SQLite's file; those beside it get its mode.
pub(super) const DATABASE: &str = "store.db";
/// SQLite's write-ahead log.
const LOG: &str = "store.db-wal";

/// A folder that is ours until this is dropped.
pub(super) struct Folder {
    dir: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder if it is missing, and takes it.
    pub fn take(dir: &Path) -> Result<Self, StoreError> {
        let failed =
            |what: &str, error: std::io::Error| StoreError::Unavailable(format!("{}: {what}: {error}", dir.display()));
        let made = !dir.exists();
        DirBuilder::new()
            .recursive(true)
            .mode(FOLDER_MODE)
            .create(dir)
            .map_err(|e| failed("making the folder", e))?;
        let lock = open(&dir.join("lock")).map_err(|e| failed("opening its lock file", e))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                StoreError::Unavailable(format!("{} is in use by another process", dir.display()))
            }
            TryLockError::Error(error) => failed("locking", error),
        })?;
        let folder = Folder {
            dir: dir.to_owned(),
            _lock: lock,
        };
        open(&folder.database()).map_err(|e| failed("making the database file", e))?;
        File::open(dir)
            .and_then(|dir| dir.sync_all())
            .map_err(|e| failed("syncing the folder", e))?;
        if made && let Some(parent) = dir.canonicalize().ok().as_deref().and_then(Path::parent) {
            File::open(parent)
                .and_then(|dir| dir.sync_all())
                .map_err(|e| failed("syncing its parent", e))?;
        }
        Ok(folder)
    }

    /// Makes the names of new files durable.
    pub fn sync(&self) -> std::io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }

    pub fn database(&self) -> PathBuf {
        self.dir.join(DATABASE)
    }

    /// Looks for damage that SQLite would take for a new file, or for the end of the log.
    pub fn check(&self) -> Result<Log, StoreError> {
        let path = self.database();
        let empty = path.metadata().is_ok_and(|file| file.len() == 0) && self.log_bytes() == 0;
        if empty && Reserve::beside(&path).is_there() {
            let text = format!("{}: the file is empty, and was not before", path.display());
            return Err(StoreError::Corrupt(text));
        }
        log::check(&self.dir.join(LOG))
    }

    /// Bytes of the write-ahead log beside the database.
    pub fn log_bytes(&self) -> u64 {
        self.dir.join(LOG).metadata().map_or(0, |file| file.len())
    }
}

/// A new, empty file that only its owner may read.
pub(super) fn create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE)
        .open(path)
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .open(path)
}
