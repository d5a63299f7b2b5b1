//! The folder of an embedded store: who may read it, and that one process at a time uses it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

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
/// SQLite's index of that log.
const SHARED: &str = "store.db-shm";

/// Why a store does not open that has no log. (Another program that reads the file after a crash may have moved the log
/// into it; nobody can tell.)
pub(super) const LOG_MISSING: &str = "the file is missing, though the store was not closed";

/// So often a lock that somebody has is tried again, with a pause before each: a predecessor that was killed has it for
/// a moment, until the system has ended it.
const LOCK_ATTEMPTS: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// What the lock file holds while a server uses the store, and after one that ended without closing it.
const OPEN: &[u8] = b"open\n";

/// A folder that is ours until this is dropped.
pub(super) struct Folder {
    dir: PathBuf,
    lock: File,
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
        take_lock(&lock).map_err(|error| match error {
            TryLockError::WouldBlock => {
                StoreError::Unavailable(format!("{} is in use by another process", dir.display()))
            }
            TryLockError::Error(error) => failed("locking", error),
        })?;
        let dir = dir.to_owned();
        let folder = Folder { dir, lock };
        folder.sync().map_err(|e| failed("syncing the folder", e))?;
        if made && let Some(parent) = folder.dir.canonicalize().ok().as_deref().and_then(Path::parent) {
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

    /// Makes an empty database file where there is none. After [`Folder::check`].
    pub fn make_database(&self) -> Result<(), StoreError> {
        if self.database().exists() {
            return Ok(());
        }
        let made = open(&self.database()).and_then(|_| self.sync());
        made.map_err(|error| {
            let dir = self.dir.display();
            StoreError::Unavailable(format!("{dir}: making the database file: {error}"))
        })
    }

    /// Whether a store is here, or what is left of one.
    pub fn holds_store(&self) -> bool {
        bytes_of(&self.database()) > 0 || self.log_bytes() > 0
    }

    /// Looks for damage that SQLite would take for a new file, or for the end of the log. Makes and changes nothing.
    pub fn check(&self) -> Result<Log, StoreError> {
        let path = self.database();
        let corrupt = |path: &Path, what: &str| Err(StoreError::Corrupt(format!("{}: {what}", path.display())));
        if bytes_of(&path) == 0 {
            let how = if path.exists() { "is empty" } else { "is missing" };
            if self.log_bytes() > 0 {
                return corrupt(&path, &format!("the file {how}, and its log beside it is not"));
            }
            if Reserve::beside(&path).is_there() {
                return corrupt(&path, &format!("the file {how}, and was not before"));
            }
        } else if self.lacks_log() {
            return corrupt(&self.log(), LOG_MISSING);
        }
        log::check(&self.log())
    }

    fn log(&self) -> PathBuf {
        self.dir.join(LOG)
    }

    /// Bytes of the write-ahead log beside the database.
    pub fn log_bytes(&self) -> u64 {
        bytes_of(&self.log())
    }

    /// Whether the last server ended without [`Folder::note_closed`], and its log is not there.
    pub fn lacks_log(&self) -> bool {
        let mut held = [0; OPEN.len()];
        let left_open = self.lock.read_exact_at(&mut held, 0).is_ok() && held == OPEN;
        left_open && !self.log().exists()
    }

    /// Notes that a server uses the store: from now on its log is there. (It is a help against lost files only, so that
    /// it may get lost itself when power fails.)
    pub fn note_open(&self) -> std::io::Result<()> {
        self.lock.write_all_at(OPEN, 0)
    }

    /// Notes that the database file has everything.
    pub fn note_closed(&self) -> std::io::Result<()> {
        self.lock.set_len(0)
    }

    /// Makes a folder in this one, for files that are set aside: `NAME-1`, or the next number that is free.
    pub fn make_aside(&self, name: &str) -> std::io::Result<PathBuf> {
        let mut number = 1;
        loop {
            let aside = self.dir.join(format!("{name}-{number}"));
            match DirBuilder::new().mode(FOLDER_MODE).create(&aside) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                made => return made.map(|()| aside),
            }
        }
    }

    /// Copies the store's files, as they are, into a folder in this one, from which they can be opened as a store.
    pub fn copy_aside(&self, name: &str) -> std::io::Result<PathBuf> {
        let aside = self.make_aside(name)?;
        for file in [DATABASE, LOG] {
            let from = self.dir.join(file);
            if from.exists() {
                std::io::copy(&mut File::open(from)?, &mut create(&aside.join(file))?)?;
                File::open(aside.join(file))?.sync_all()?;
            }
        }
        File::open(&aside)?.sync_all()?;
        self.sync()?;
        Ok(aside)
    }

    /// Moves the store's files into a folder in this one, from which they can be opened as a store.
    pub fn move_aside(&self, name: &str) -> std::io::Result<PathBuf> {
        let aside = self.make_aside(name)?;
        // The log first: the file without its log is noticed, and the log without its file too.
        for file in [LOG, DATABASE] {
            match fs::rename(self.dir.join(file), aside.join(file)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        File::open(&aside)?.sync_all()?;
        self.remove_log()?;
        Ok(aside)
    }

    /// Removes a log, and what SQLite keeps of it: they must not meet a file that is put beside them.
    pub fn remove_log(&self) -> std::io::Result<()> {
        for file in [LOG, SHARED] {
            match fs::remove_file(self.dir.join(file)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.note_closed()?;
        self.sync()
    }
}

/// Takes the lock, or waits a moment for it: a child process has what its parent holds until it runs its own program,
/// so that a folder which is given up may still seem to be in use.
fn take_lock(lock: &File) -> Result<(), TryLockError> {
    for _ in 0..LOCK_ATTEMPTS {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            done => return done,
        }
    }
    lock.try_lock()
}

/// Bytes of a file; none if it is missing.
fn bytes_of(path: &Path) -> u64 {
    path.metadata().map_or(0, |file| file.len())
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
