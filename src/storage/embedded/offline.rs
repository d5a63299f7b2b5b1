//! Offline commands of an embedded store: checking, compacting, copying out and back in.
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
use super::main_file::MainFile;
use super::reserve::Reserve;
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
    /// Of these, what is unused and will be used again, or be given back when it is more than half of the file.
    pub unused_bytes: u64,
    /// Bytes beside them that are set aside for a disk that is full.
    pub reserve_bytes: u64,
}

/// Reads everything and compares it with its checksums and with the proofs that nothing is missing.
///
/// # Errors
/// [`StoreError::Corrupt`] names the file, and the key where there is one; [`StoreError::Unavailable`] says why the
/// store can't be read.
pub fn check(dir: &Path) -> Result<Report, StoreError> {
    let (folder, database) = open(dir)?;
    check_whole(&database, &folder.database())?;
    report(&folder, &database)
}

/// As [`check`], of a snapshot.
pub fn check_snapshot(file: &Path) -> Result<Report, StoreError> {
    let database = Database::open_snapshot(file)?;
    check_whole(&database, file)?;
    report_of(&database, file)
}

fn check_whole(database: &Database, path: &Path) -> Result<(), StoreError> {
    database.check_pages().map_err(|error| explain(path, &error))??;
    let findings = load::examine(database, path, Duration::ZERO)?.findings;
    let corrupt = |what: String| Err(StoreError::Corrupt(format!("{}: {what}", path.display())));
    match (findings.damage(), findings.staleness()) {
        (Some(damage), _) => corrupt(damage),
        (None, stale) if stale.is_empty() => Ok(()),
        (None, stale) => corrupt(format!(
            "{}. Nothing is lost: the next start mends it, and so does the repair of the store",
            stale.join("; ")
        )),
    }
}

/// Forgets all history and gives unused space back to the file system. The report is that of the store before.
pub fn compact(dir: &Path) -> Result<(Report, Report), StoreError> {
    let (folder, mut database) = open(dir)?;
    let path = folder.database();
    let Loaded {
        mvcc,
        mut garbage,
        index,
        ..
    } = load::load(&mut database, &path, Duration::ZERO)?;
    let before = report(&folder, &database)?;
    garbage.extend(mvcc.compact(before.revision));
    let mut compacted = || {
        let writing = database.begin()?;
        // Nothing else writes: what waited for the table is not needed any more.
        let _indexed = index.write(&writing, &[], before.revision.0)?;
        writing.set_compact_revision(before.revision.0)?;
        writing.forget(garbage.iter())?;
        writing.commit()?;
        database.rebuild()
    };
    compacted().map_err(|error| explain(&path, &error))?;
    let after = report(&folder, &database)?;
    Ok((before, after))
}

/// All entries of a store at rest.
///
/// # Errors
/// There is none, or it is damaged.
pub fn entries(dir: &Path) -> Result<Snapshot, StoreError> {
    Ok(read(dir)?.snapshot)
}

/// What a store at rest holds.
pub(crate) fn read(dir: &Path) -> Result<Contents, StoreError> {
    let (folder, mut database) = open(dir)?;
    let path = folder.database();
    let view = load::load(&mut database, &path, Duration::ZERO)?.mvcc.view()?;
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
    let (folder, mut database) = open(dir)?;
    load::load(&mut database, &folder.database(), Duration::ZERO)?;
    let report = report(&folder, &database)?;
    copy_out(&database, &folder.database(), file)?;
    Ok(report)
}

/// Puts a snapshot into a folder, after checking it. `replace`: the folder may hold a store, also a damaged one; its
/// files are kept in a folder beside the new one, which is returned too.
///
/// # Errors
/// [`StoreError::Corrupt`] says what is wrong with the snapshot; [`StoreError::Unavailable`] that a store is there, or
/// what the file system refuses.
pub fn restore(file: &Path, dir: &Path, replace: bool) -> Result<(Report, Option<PathBuf>), StoreError> {
    let failed = |what: &Path, error: io::Error| StoreError::Unavailable(format!("{}: {error}", what.display()));
    if !file.is_file() {
        let error = io::Error::new(io::ErrorKind::NotFound, "there is no such file");
        return Err(failed(file, error));
    }
    let folder = Folder::take(dir)?;
    let path = folder.database();
    let replaces = folder.holds_store();
    if replaces && !replace {
        let dir = dir.display();
        let refused = format!("{dir} holds a store already; --overwrite replaces it and keeps its files");
        return Err(StoreError::Unavailable(refused));
    }
    let part = part(&path);
    let made = copy_checked(file, &part).and_then(|()| {
        let aside = match replaces {
            true => folder.move_aside("replaced").map(Some),
            false => folder.remove_log().map(|()| None),
        };
        let moved = aside.and_then(|aside| fs::rename(&part, &path).map(|()| aside));
        moved.map_err(|error| failed(&path, error))
    });
    remove_all(&part);
    let aside = made?;
    folder.sync().map_err(|error| failed(dir, error))?;
    let database = Database::open_existing(&path)?;
    Ok((report(&folder, &database)?, aside))
}

/// Copies a snapshot into a file that is to become a store, as the beginning of a new timeline.
fn copy_checked(file: &Path, part: &Path) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::Unavailable(format!("{}: {error}", file.display()));
    let explained = |error| explain(file, &error);
    remove_all(part);
    let copied = folder::create(part).and_then(|mut to| io::copy(&mut File::open(file)?, &mut to).map(|_| to));
    copied.and_then(|to| to.sync_all()).map_err(failed)?;
    let mut database = Database::open_existing(part)?;
    load::load(&mut database, file, Duration::ZERO)?;
    database.begin_timeline().map_err(explained)?;
    database.empty_log().map_err(explained)
}

/// The copy of a store that serves, while it is made.
pub(super) fn unseen_copy(path: &Path) -> PathBuf {
    path.with_extension("copy")
}

/// Copies a store that serves into a file beside it, which has no name any more when this returns. `copying` is shown
/// the connection.
pub(super) fn copy_unseen(path: &Path, copying: &dyn Fn(&Database)) -> Result<File, StoreError> {
    let name = unseen_copy(path);
    let failed = |error: io::Error| StoreError::Unavailable(format!("{}: {error}", name.display()));
    // What an earlier process left when it was killed.
    remove_all(&name);
    folder::create(&name).map_err(failed)?;
    let copied = Database::connect(path).and_then(|database| {
        copying(&database);
        database.copy_into(&name)
    });
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
    pub(super) fn copy_to(path: &Path, file: &Path, copying: &dyn Fn(&Database)) -> Result<(), StoreError> {
        let database = Database::connect(path).map_err(|error| explain(path, &error))?;
        copying(&database);
        copy_out(&database, path, file)
    }
}

/// A store at rest; nothing is made where there is none.
pub(super) fn open(dir: &Path) -> Result<(Folder, Database), StoreError> {
    let none = || StoreError::Unavailable(format!("{} holds no store", dir.display()));
    if !dir.is_dir() {
        return Err(none());
    }
    let folder = Folder::take(dir)?;
    folder.check()?;
    let path = folder.database();
    if !path.is_file() {
        return Err(none());
    }
    let file = MainFile::read(&path);
    let database = Database::open_existing(&path)?;
    file.check(&database, &path)?;
    Ok((folder, database))
}

pub(super) fn report(folder: &Folder, database: &Database) -> Result<Report, StoreError> {
    let report = report_of(database, &folder.database())?;
    Ok(Report {
        file_bytes: report.file_bytes + folder.log_bytes(),
        reserve_bytes: Reserve::beside(&folder.database()).bytes(),
        ..report
    })
}

fn report_of(database: &Database, path: &Path) -> Result<Report, StoreError> {
    let view = load::examine(database, path, Duration::ZERO)?.mvcc.view()?;
    Ok(Report {
        keys: view.iter().count(),
        value_bytes: view.iter().map(|(_, held)| held.value.len() as u64).sum(),
        revision: Revision(view.revision()),
        oldest: Revision(view.oldest()),
        file_bytes: path.metadata().map_or(0, |file| file.len()),
        unused_bytes: database.unused_bytes().map_err(|error| explain(path, &error))?,
        reserve_bytes: 0,
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
