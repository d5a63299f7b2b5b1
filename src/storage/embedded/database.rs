//! The tables of an embedded store and the statements on them.
//!
//! `history` holds each change since the oldest revision that is kept, and what every key holds now. Three things let a
//! row that got lost be noticed: beyond the oldest revision no number may be missing, `meta` names the last one, and
//! `current` names the revision that each key had at a revision which is the oldest or later (`meta` says which).
//! Nothing reads the tables after the store is open.

use std::path::Path;

use ring::rand::{self, SystemRandom};
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, InterruptHandle, OpenFlags, TransactionBehavior, params};

use super::writing::Writing;
use crate::{LeaseId, StoreError};

/// Version of the tables.
const FORMAT: i64 = 3;

/// The row of `meta` that says what the oldest revision is that can be read.
pub(super) const COMPACT_REVISION: &str = "compact_revision";
/// The one that says as of which revision `current` is right.
pub(super) const INDEXED_REVISION: &str = "indexed_revision";
/// The one that says what the last revision is.
pub(super) const LAST_REVISION: &str = "last_revision";
/// The one that names the timeline; see [`Database::timeline`].
pub(super) const TIMELINE: &str = "timeline";

const SCHEMA: &str = "
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL,
    checksum INTEGER NOT NULL -- see checksum_of() in embedded/database.rs, as that of leases
) STRICT, WITHOUT ROWID;
CREATE TABLE history (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    value BLOB, -- null: the key was deleted
    create_revision INTEGER NOT NULL,
    version INTEGER NOT NULL,
    lease INTEGER,
    checksum INTEGER NOT NULL -- see Row::checksum()
) STRICT;
CREATE TABLE current (key TEXT PRIMARY KEY, revision INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE leases (id INTEGER PRIMARY KEY, ttl_ms INTEGER NOT NULL, checksum INTEGER NOT NULL) STRICT;
";

/// Every connection: fsync at each commit, a small page cache (reads come from memory), no checkpoint in the way of a
/// commit, no more than 64 MiB of log left lying about.
const SETTINGS: &str = "
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA cache_size = -2048;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = 67108864;
PRAGMA temp_store = MEMORY;
";

/// Unused pages can be given back. A file remembers it; told again, SQLite would write at each start, before anybody
/// has looked at what a crash left.
const SETTINGS_OF_NEW_FILES: &str = "PRAGMA auto_vacuum = INCREMENTAL;";

/// A row of `history`.
pub(super) struct Row<'a> {
    pub revision: u64,
    pub key: &'a str,
    pub value: Option<&'a [u8]>,
    pub created: u64,
    pub version: u64,
    pub lease: Option<i64>,
}

impl Row<'_> {
    /// CRC-32 (IEEE) of the numbers as little-endian 64-bit integers (revision, create revision, version, lease or 0,
    /// length of the key), the key, one byte that is 1 if there is a value, and the value.
    pub fn checksum(&self) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        for number in [
            self.revision,
            self.created,
            self.version,
            self.lease.unwrap_or(0) as u64,
            self.key.len() as u64,
        ] {
            crc.update(&number.to_le_bytes());
        }
        crc.update(self.key.as_bytes());
        crc.update(&[u8::from(self.value.is_some())]);
        crc.update(self.value.unwrap_or_default());
        crc.finalize()
    }
}

/// CRC-32 (IEEE) of a name or number and a number, both as little-endian 64-bit integers if they are numbers.
pub(super) fn checksum_of(name: &[u8], value: i64) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(name);
    crc.update(&value.to_le_bytes());
    crc.finalize()
}

/// What a row is that is not as it was written; [`explain`] makes it [`StoreError::Corrupt`].
fn damaged(row: String) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(format!("{row}: its checksum is wrong").into())
}

/// A number of `meta`.
pub(super) fn read_meta(connection: &Connection, name: &str) -> rusqlite::Result<u64> {
    let select = "SELECT value, checksum FROM meta WHERE name = ?";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (value, checksum): (i64, i64) = connection.query_row(select, [name], read)?;
    match i64::from(checksum_of(name.as_bytes(), value)) == checksum {
        true => Ok(value as u64),
        false => Err(damaged(format!("row {name} of table meta"))),
    }
}

/// A connection to the database file.
pub(super) struct Database {
    connection: Connection,
    /// What becomes of the next transaction.
    #[cfg(test)]
    pub fault: Option<CommitFault>,
}

/// A commit that fails, or seems to.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CommitFault {
    /// Nothing of it stays.
    Undone,
    /// It is durable, and reported as failed.
    Durable,
}

impl Database {
    /// Opens the file and makes the tables if it is empty.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let mut database = Database::connect(path).map_err(|error| explain(path, &error))?;
        match database.format().map_err(|error| explain(path, &error))? {
            None => {
                let created = database.create().and_then(|()| database.empty_log());
                created.map_err(|error| explain(path, &error))?;
            }
            Some(FORMAT) => {}
            Some(format) => return Err(other_format(path, format)),
        }
        Ok(database)
    }

    /// Opens a file that has the tables.
    pub fn open_existing(path: &Path) -> Result<Self, StoreError> {
        let database = Database::connect(path).map_err(|error| explain(path, &error))?;
        match database.format().map_err(|error| explain(path, &error))? {
            Some(FORMAT) => Ok(database),
            Some(format) => Err(other_format(path, format)),
            None => Err(StoreError::Unavailable(format!("{} is not a store", path.display()))),
        }
    }

    /// Opens a snapshot, which stays as it is.
    pub fn open_snapshot(file: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(file, flags).map(Database::of);
        let database = opened.map_err(|error| explain(file, &error))?;
        match database.format().map_err(|error| explain(file, &error))? {
            Some(FORMAT) => Ok(database),
            Some(format) => Err(other_format(file, format)),
            None => Err(StoreError::Unavailable(format!("{} is not a store", file.display()))),
        }
    }

    /// A further connection to tables that are there.
    pub fn connect(path: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let is_new = path.metadata().is_ok_and(|file| file.len() == 0);
        let connection = Connection::open_with_flags(path, flags)?;
        if is_new {
            connection.execute_batch(SETTINGS_OF_NEW_FILES)?;
        }
        connection.execute_batch(SETTINGS)?;
        // What reads a store, or refuses it, leaves its files as they are. Who closes it empties the log itself.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(Database::of(connection))
    }

    fn of(connection: Connection) -> Database {
        Database {
            connection,
            #[cfg(test)]
            fault: None,
        }
    }

    fn format(&self) -> rusqlite::Result<Option<i64>> {
        let tables: i64 = self
            .connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if tables == 0 { Ok(None) } else { self.meta("format") }
    }

    fn create(&mut self) -> rusqlite::Result<()> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(SCHEMA)?;
        let insert = "INSERT INTO meta (name, value, checksum) VALUES (?, ?, ?)";
        let revisions = [COMPACT_REVISION, INDEXED_REVISION, LAST_REVISION].map(|name| (name, 0));
        for (name, value) in std::iter::once(("format", FORMAT)).chain(revisions) {
            transaction.execute(insert, params![name, value, checksum_of(name.as_bytes(), value)])?;
        }
        let writing = Writing::new(transaction);
        writing.set_timeline(new_timeline()?)?;
        writing.commit()
    }

    fn meta(&self, name: &str) -> rusqlite::Result<Option<i64>> {
        let mut statement = self.connection.prepare("SELECT value FROM meta WHERE name = ?")?;
        let mut rows = statement.query([name])?;
        rows.next()?.map(|row| row.get(0)).transpose()
    }

    fn checked_meta(&self, name: &str) -> rusqlite::Result<u64> {
        read_meta(&self.connection, name)
    }

    /// The oldest revision that can be read.
    pub fn compact_revision(&self) -> rusqlite::Result<u64> {
        self.checked_meta(COMPACT_REVISION)
    }

    /// The revision as of which [`Database::current`] is right.
    pub fn indexed_revision(&self) -> rusqlite::Result<u64> {
        self.checked_meta(INDEXED_REVISION)
    }

    /// The last revision.
    pub fn last_revision(&self) -> rusqlite::Result<u64> {
        self.checked_meta(LAST_REVISION)
    }

    /// A random number that stays with the store wherever it is copied to, until its past is replaced: what clients
    /// know of a store with another one says nothing of this one. `None`: an older version made the store.
    pub fn timeline(&self) -> rusqlite::Result<Option<u64>> {
        match self.checked_meta(TIMELINE) {
            Ok(timeline) => Ok(Some(timeline)),
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Names a new timeline, and returns it. The file and its log never have different ones, whenever this is cut
    /// short: the log is left out. No other connection may be open.
    pub fn begin_timeline(&mut self) -> rusqlite::Result<u64> {
        let timeline = new_timeline()?;
        self.connection.execute_batch("PRAGMA journal_mode = DELETE")?;
        let writing = self.begin()?;
        writing.set_timeline(timeline)?;
        writing.commit()?;
        self.connection.execute_batch("PRAGMA journal_mode = WAL")?;
        Ok(timeline)
    }

    /// Calls `each` with the rows after `after`, in order, and their checksums.
    pub fn rows(
        &self,
        after: u64,
        mut each: impl FnMut(Row<'_>, u32) -> Result<(), StoreError>,
    ) -> rusqlite::Result<Result<(), StoreError>> {
        let mut statement = self.connection.prepare(
            "SELECT revision, key, value, create_revision, version, lease, checksum FROM history
             WHERE revision > ? ORDER BY revision",
        )?;
        let mut rows = statement.query([after as i64])?;
        while let Some(row) = rows.next()? {
            let read = Row {
                revision: row.get::<_, i64>(0)? as u64,
                key: row.get_ref(1)?.as_str()?,
                value: row.get_ref(2)?.as_blob_or_null()?,
                created: row.get::<_, i64>(3)? as u64,
                version: row.get::<_, i64>(4)? as u64,
                lease: row.get(5)?,
            };
            if let Err(error) = each(read, row.get::<_, i64>(6)? as u32) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    /// Keys and their revisions, as of [`Database::indexed_revision`].
    pub fn current(&self, mut each: impl FnMut(&str, u64)) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare("SELECT key, revision FROM current")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            each(row.get_ref(0)?.as_str()?, row.get::<_, i64>(1)? as u64);
        }
        Ok(())
    }

    /// Leases and their times in milliseconds.
    pub fn leases(&self) -> rusqlite::Result<Vec<(LeaseId, u64)>> {
        let mut statement = self.connection.prepare("SELECT id, ttl_ms, checksum FROM leases")?;
        let rows = statement.query_map([], |row| {
            let (id, ttl_ms, checksum): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            match i64::from(checksum_of(&id.to_le_bytes(), ttl_ms)) == checksum {
                true => Ok((LeaseId(id), ttl_ms as u64)),
                false => Err(damaged(format!("lease {id}"))),
            }
        })?;
        rows.collect()
    }

    /// Begins a write; nothing of it stays unless it is committed.
    pub fn begin(&mut self) -> rusqlite::Result<Writing<'_>> {
        #[cfg(test)]
        let fault = self.fault.take();
        let begun = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate);
        let writing = begun.map(Writing::new);
        #[cfg(test)]
        let writing = writing.map(|writing| writing.failing(fault));
        writing
    }

    /// Has `each` told after every commit how many pages the log holds.
    pub fn on_commit(&mut self, each: impl Fn(u64) + Send + 'static) -> rusqlite::Result<()> {
        self.connection.wal_hook(Some(move |_: &mut Wal, pages| {
            each(u64::try_from(pages).unwrap_or(0));
            Ok(())
        }))
    }

    /// Moves the log into the database file as far as that holds up no one; how many of its pages are there now.
    pub fn checkpoint(&self) -> rusqlite::Result<u64> {
        self.connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(2))
            .map(|pages| u64::try_from(pages).unwrap_or(0))
    }

    /// Moves the whole log into the database file and empties it.
    pub fn empty_log(&self) -> rusqlite::Result<()> {
        let busy: bool = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        match busy {
            false => Ok(()),
            true => {
                let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                Err(rusqlite::Error::SqliteFailure(code, None))
            }
        }
    }

    /// SQLite's own look at its pages; the inner error names what is wrong.
    pub fn check_pages(&self) -> rusqlite::Result<Result<(), StoreError>> {
        let found: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        Ok(match found.as_str() {
            "ok" => Ok(()),
            _ => {
                let path = self.connection.path().unwrap_or_default();
                Err(StoreError::Corrupt(format!("{path}: {found}")))
            }
        })
    }

    /// Writes the file anew, without unused pages.
    pub fn rebuild(&self) -> rusqlite::Result<()> {
        self.connection.execute_batch("VACUUM")?;
        self.empty_log()
    }

    /// Ends what this connection is doing, from another thread.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.connection.get_interrupt_handle()
    }

    /// Copies what is committed into an empty file.
    pub fn copy_into(&self, file: &Path) -> rusqlite::Result<()> {
        let file = file
            .to_str()
            .ok_or_else(|| rusqlite::Error::InvalidPath(file.to_owned()))?;
        self.connection.execute("VACUUM INTO ?", [file]).map(drop)
    }

    /// Bytes of pages that hold nothing.
    pub fn unused_bytes(&self) -> rusqlite::Result<u64> {
        let count = |name| {
            self.connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
        };
        let bytes = count("freelist_count")? * count("page_size")?;
        Ok(u64::try_from(bytes).unwrap_or_default())
    }

    /// Gives up to `pages` unused pages back if more than half of the file is unused, or if `any` are; true: so it was.
    pub fn shrink(&self, pages: u32, any: bool) -> rusqlite::Result<bool> {
        let count = |name| {
            self.connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
        };
        let bound = if any { 0 } else { count("page_count")? / 2 };
        let much = count("freelist_count")? > bound;
        if much {
            // Each step gives one page back.
            let mut vacuum = self
                .connection
                .prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
            let mut steps = vacuum.query([])?;
            while steps.next()?.is_some() {}
        }
        Ok(much)
    }

    /// Runs a statement; how many rows it changed.
    #[cfg(test)]
    pub fn execute(&self, statement: &str) -> rusqlite::Result<usize> {
        self.connection.execute(statement, [])
    }

    /// Makes the disk full, for SQLite, at so many pages.
    #[cfg(test)]
    pub fn limit_pages(&self, pages: i64) {
        self.connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .unwrap();
    }
}

/// Positive, so that it is the same number wherever it is written.
fn new_timeline() -> rusqlite::Result<u64> {
    let failed = |_| rusqlite::Error::ToSqlConversionFailure("the system gives no random numbers".into());
    let bytes: [u8; 8] = rand::generate(&SystemRandom::new()).map_err(failed)?.expose();
    Ok(u64::from_le_bytes(bytes) >> 1)
}

fn other_format(path: &Path, format: i64) -> StoreError {
    let path = path.display();
    StoreError::Unavailable(format!(
        "{path} has format {format}, and this version reads format {FORMAT} only"
    ))
}

/// Whether the disk has no room for a write.
pub(super) fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
}

/// What an error of SQLite means for the store.
pub(super) fn explain(path: &Path, error: &rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    let text = format!("{}: {error}", path.display());
    match error.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => StoreError::Corrupt(text),
        // a column holds what this program never writes
        None => StoreError::Corrupt(text),
        Some(_) => StoreError::Unavailable(text),
    }
}
