//! What can be done with an embedded store beside serving it: checking, compacting, copying out and back in.
//!
//! All of these take the folder as a server does, so none runs beside one; a running server copies itself out with
//! [`EmbeddedStore::snapshot_to`].

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::EmbeddedStore;
use super::database::{Database, explain};
use super::folder::{self, Folder};
use super::load::{self, Loaded};
use crate::{LeaseId, Revision, Snapshot, StoreError};

/// What a store holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Keys that hold something now.
    pub keys: usize,
    /// Bytes of what they hold.
    pub value_bytes: u64,
    /// The newest revision.
    pub revision: Revision,
    /// The oldest revision that can be read.
    pub oldest: Revision,
    /// Size of the database file and its log.
    pub file_bytes: u64,
}

/// Reads everything and compares it with its checksums.
///
/// # Errors
/// [`StoreError::Corrupt`] names the file, and the key where there is one; [`StoreError::Unavailable`] says why the store
/// can't be read.
pub fn check(dir: &Path) -> Result<Report, StoreError> {
    let (folder, database) = open(dir)?;
    database
        .check_pages()
        .map_err(|error| explain(&folder.database(), &error))??;
    report(&folder, &database)
}

/// As [`check`], of a snapshot.
pub fn check_snapshot(file: &Path) -> Result<Report, StoreError> {
    let database = Database::open_snapshot(file)?;
    database.check_pages().map_err(|error| explain(file, &error))??;
    report_of(&database, file)
}

/// Forgets all history and gives unused space back to the file system. The report is that of the store before.
pub fn compact(dir: &Path) -> Result<(Report, Report), StoreError> {
    let (folder, mut database) = open(dir)?;
    let path = folder.database();
    let before = report(&folder, &database)?;
    let Loaded {
        mvcc,
        mut garbage,
        index,
    } = load::load(&database, &path, Duration::ZERO)?;
    garbage.extend(mvcc.compact(before.revision));
    let mut compacted = || {
        let writing = database.begin()?;
        index.write(&writing, &[], before.revision.0)?;
        writing.set_compact_revision(before.revision.0)?;
        writing.forget(garbage.iter())?;
        writing.commit()?;
        database.rebuild()
    };
    compacted().map_err(|error| explain(&path, &error))?;
    let after = report(&folder, &database)?;
    Ok((before, after))
}

/// What a store at rest holds.
pub(crate) fn read(dir: &Path) -> Result<Contents, StoreError> {
    let (folder, database) = open(dir)?;
    let path = folder.database();
    let view = load::load(&database, &path, Duration::ZERO)?.mvcc.view()?;
    let leases = database.leases().map_err(|error| explain(&path, &error))?;
    let lasting = |(id, ms)| (id, Duration::from_millis(ms));
    Ok(Contents {
        snapshot: Snapshot::new(view),
        leases: leases.into_iter().map(lasting).collect(),
    })
}

/// All keys of a store at rest, and how long its leases last.
pub(crate) struct Contents {
    pub snapshot: Snapshot,
    pub leases: Vec<(LeaseId, Duration)>,
}

/// Copies the store of a folder into a new file, which only its owner may read.
pub fn snapshot(dir: &Path, file: &Path) -> Result<Report, StoreError> {
    let (folder, database) = open(dir)?;
    let report = report(&folder, &database)?;
    copy_out(&database, &folder.database(), file)?;
    Ok(report)
}

/// Puts a snapshot into a folder that has no store yet, after checking it.
pub fn restore(file: &Path, dir: &Path) -> Result<Report, StoreError> {
    let failed = |what: &Path, error: io::Error| StoreError::Unavailable(format!("{}: {error}", what.display()));
    if !file.is_file() {
        let error = io::Error::new(io::ErrorKind::NotFound, "there is no such file");
        return Err(failed(file, error));
    }
    let folder = Folder::take(dir)?;
    let path = folder.database();
    if path.metadata().is_ok_and(|store| store.len() > 0) {
        return Err(StoreError::Unavailable(format!(
            "{} holds a store already",
            dir.display()
        )));
    }
    let part = part(&path);
    let copied = folder::create(&part).and_then(|mut to| io::copy(&mut File::open(file)?, &mut to).map(|_| to));
    let checked = copied.and_then(|to| to.sync_all()).map_err(|error| failed(file, error));
    let checked = checked.and_then(|()| {
        let database = Database::open_existing(&part)?;
        load::load(&database, file, Duration::ZERO)?;
        database.empty_log().map_err(|error| explain(file, &error))
    });
    let moved = checked.and_then(|()| fs::rename(&part, &path).map_err(|error| failed(&path, error)));
    remove_all(&part);
    moved?;
    folder.sync().map_err(|error| failed(dir, error))?;
    let database = Database::open(&path)?;
    report(&folder, &database)
}

/// Copies a store that serves into a file beside it, which has no name any more when this returns.
pub(super) fn copy_unseen(path: &Path) -> Result<File, StoreError> {
    let name = path.with_extension("copy");
    let failed = |error: io::Error| StoreError::Unavailable(format!("{}: {error}", name.display()));
    // What an earlier process left when it was killed.
    remove_all(&name);
    folder::create(&name).map_err(failed)?;
    let copied = Database::connect(path).and_then(|database| database.copy_into(&name));
    let opened = copied.map_err(|error| explain(path, &error));
    let opened = opened.and_then(|()| File::open(&name).map_err(failed));
    remove_all(&name);
    opened
}

impl EmbeddedStore {
    /// Copies the store as it is now into a new file, while it serves.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the file exists or can't be written.
    pub(super) fn copy_to(path: &Path, file: &Path) -> Result<(), StoreError> {
        let database = Database::connect(path).map_err(|error| explain(path, &error))?;
        copy_out(&database, path, file)
    }
}

fn open(dir: &Path) -> Result<(Folder, Database), StoreError> {
    if !dir.join(folder::DATABASE).is_file() {
        return Err(StoreError::Unavailable(format!("{} holds no store", dir.display())));
    }
    let folder = Folder::take(dir)?;
    folder.check()?;
    let database = Database::open_existing(&folder.database())?;
    Ok((folder, database))
}

pub(super) fn report(folder: &Folder, database: &Database) -> Result<Report, StoreError> {
    let report = report_of(database, &folder.database())?;
    Ok(Report {
        file_bytes: report.file_bytes + folder.log_bytes(),
        ..report
    })
}

fn report_of(database: &Database, path: &Path) -> Result<Report, StoreError> {
    let view = load::load(database, path, Duration::ZERO)?.mvcc.view()?;
    Ok(Report {
        keys: view.iter().count(),
        value_bytes: view.iter().map(|(_, held)| held.value.len() as u64).sum(),
        revision: Revision(view.revision()),
        oldest: Revision(view.oldest()),
        file_bytes: path.metadata().map_or(0, |file| file.len()),
    })
}

/// A file that is whole or absent: written beside its place, synced, then moved there.
fn copy_out(database: &Database, path: &Path, file: &Path) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::Unavailable(format!("{}: {error}", file.display()));
    if file.exists() {
        return Err(failed(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the file exists already",
        )));
    }
    let part = part(file);
    folder::create(&part).map_err(failed)?;
    let copied = database.copy_into(&part).map_err(|error| explain(path, &error));
    let moved = copied.and_then(|()| {
        File::open(&part).and_then(|copy| copy.sync_all()).map_err(failed)?;
        fs::rename(&part, file).map_err(failed)?;
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))
            .and_then(|parent| parent.sync_all())
            .map_err(failed)
    });
    if moved.is_err() {
        remove_all(&part);
    }
    moved
}

pub(super) fn part(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// A copy that did not come to be, and what SQLite puts beside it. What is not there need not go.
pub(super) fn remove_all(part: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = part.as_os_str().to_owned();
        name.push(suffix);
        let _ = fs::remove_file(PathBuf::from(name));
    }
}
