//! The database file alone, as if it had no write-ahead log: what it says must not be newer than what the log adds to
//! it.
//!
//! SQLite replays any log that fits itself over the file beside it, also one of another store, or one that is older
//! than the file. Two numbers tell: the timeline of both is the same, and the log does not take revisions back.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::database::{Database, LAST_REVISION, TIMELINE, explain, read_meta};
use crate::StoreError;

/// What the file itself says.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct MainFile {
    timeline: Option<u64>,
    last_revision: Option<u64>,
}

impl MainFile {
    /// Reads the file without its log. What can't be read so is left out: a crash may have left the file in the middle
    /// of a checkpoint, and damage is found when the store is read whole.
    pub fn read(path: &Path) -> MainFile {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        let opened = uri(path).and_then(|uri| Connection::open_with_flags(uri, flags).ok());
        let read = |name| opened.as_ref().and_then(|file| read_meta(file, name).ok());
        MainFile {
            timeline: read(TIMELINE),
            last_revision: read(LAST_REVISION),
        }
    }

    /// Compares with the store as its log shows it.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the log belongs to another store or to an earlier time.
    pub fn check(self, database: &Database, path: &Path) -> Result<(), StoreError> {
        let failed = |error| explain(path, &error);
        let foreign = |what: String| {
            let log = path.with_extension("db-wal");
            Err(StoreError::Corrupt(format!("{}: {what}", log.display())))
        };
        if self.timeline.is_some() && database.timeline().map_err(failed)? != self.timeline {
            return foreign("the log is that of another store".to_owned());
        }
        let last = database.last_revision().map_err(failed)?;
        match self.last_revision {
            Some(known) if last < known => foreign(format!(
                "the log is older than the store: it ends at revision {last}, and the store had {known} already"
            )),
            _ => Ok(()),
        }
    }
}

/// The file as SQLite is told that nobody changes it, so that it looks for no log.
fn uri(path: &Path) -> Option<String> {
    let mut uri = "file:".to_owned();
    for byte in path.to_str()?.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    Some(uri + "?immutable=1")
}
