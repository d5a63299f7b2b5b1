//! Repair of a store at rest: proofs that are behind are written anew; rows that are lost are given up if asked.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::database::explain;
use super::folder::{Folder, LOG_MISSING};
use super::offline::{Report, open, report};
use super::{load, proof};
use crate::StoreError;

/// What a repair did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repaired {
    /// A line for each thing that was wrong; none: the store is as it was.
    pub mended: Vec<String>,
    /// The folder that has the files as they were.
    pub kept: Option<PathBuf>,
    /// What the store holds now.
    pub report: Report,
}

/// Mends what is wrong with the proofs of a store whose rows are all there, or, with `accept_loss`, are not.
///
/// # Errors
/// [`StoreError::Corrupt`] names what is lost and was not to be given up, or a row that can't be read, which no repair
/// makes whole; [`StoreError::Unavailable`] says what the file system refuses.
pub fn repair(dir: &Path, accept_loss: bool) -> Result<Repaired, StoreError> {
    let no_log = accept_loss && give_up_log(dir)?;
    let (folder, mut database) = open(dir)?;
    let path = folder.database();
    let loaded = load::examine(&database, &path, Duration::ZERO)?;
    let mut findings = loaded.findings;
    if no_log {
        findings.number = Some(format!("store.db-wal: {LOG_MISSING}; what it had is lost"));
    }
    if findings.are_none() {
        return Ok(Repaired {
            mended: Vec::new(),
            kept: None,
            report: report(&folder, &database)?,
        });
    }
    if let Some(damage) = findings.damage()
        && !accept_loss
    {
        return Err(StoreError::Corrupt(format!("{}: {damage}", path.display())));
    }
    let kept = folder.copy_aside("before-repair").map_err(|error| {
        let dir = dir.display();
        StoreError::Unavailable(format!("{dir}: keeping a copy: {error}"))
    })?;
    proof::renew(&mut database, &path, &loaded.mvcc.view()?)?;
    if no_log || findings.damage().is_some() {
        // Clients know of what is lost.
        database.begin_timeline().map_err(|error| explain(&path, &error))?;
    }
    Ok(Repaired {
        mended: findings.staleness().into_iter().chain(findings.losses()).collect(),
        kept: Some(kept),
        report: report(&folder, &database)?,
    })
}

/// True: the log is missing, which is no longer minded.
fn give_up_log(dir: &Path) -> Result<bool, StoreError> {
    if !dir.is_dir() {
        return Ok(false);
    }
    let folder = Folder::take(dir)?;
    let missing = folder.lacks_log();
    let noted = if missing { folder.note_closed() } else { Ok(()) };
    noted.map_err(|error| StoreError::Unavailable(format!("{}: {error}", dir.display())))?;
    Ok(missing)
}
