//! The comparison of two states of definitions, for those who want to know before a build: what objects stored by the
//! one would not survive with the other.

use std::path::Path;

use crate::builder::checked;
use crate::lock;
use crate::parse::from_workspace;
use crate::problem::{Error, Problem};

/// Writes the records below a folder as a build does. What comes back are notes, as of [`compare`].
///
/// # Errors
/// As [`compare`]; a file that can't be written.
pub fn record(root: &Path) -> Result<Vec<Problem>, Error> {
    let shown = from_workspace(root);
    let shown = shown.trim_end_matches('/');
    let (model, _) = checked(Some(root))?;
    let findings = lock::compare(&model, &lock::read(root, shown)?, shown);
    match findings.problems.is_empty() {
        true => lock::write(root, &findings.records).map(|()| findings.notes),
        false => Err(Error::Definitions(findings.problems)),
    }
}

/// Whether the records below a folder say what its definitions do, so that a build would write nothing.
///
/// # Errors
/// As [`compare`].
pub fn is_recorded(root: &Path) -> Result<bool, Error> {
    let shown = from_workspace(root);
    let shown = shown.trim_end_matches('/');
    let (model, _) = checked(Some(root))?;
    let recorded = lock::read(root, shown)?;
    let findings = lock::compare(&model, &recorded, shown);
    Ok(findings.problems.is_empty() && findings.records == recorded)
}

/// Compares the definitions below `old` (and what is recorded there) with those below `new`. What comes back are notes:
/// what changes for stored objects that can be read.
///
/// # Errors
/// Changes that stored objects would not survive, mistakes in the definitions, files that can't be read.
pub fn compare(old: &Path, new: &Path) -> Result<Vec<Problem>, Error> {
    let shown = |root: &Path| from_workspace(root).trim_end_matches('/').to_owned();
    let (before, _) = checked(Some(old))?;
    let recorded = lock::compare(&before, &lock::read(old, &shown(old))?, &shown(old)).records;
    let (after, _) = checked(Some(new))?;
    let findings = lock::compare(&after, &recorded, &shown(new));
    match findings.problems.is_empty() {
        true => Ok(findings.notes),
        false => Err(Error::Definitions(findings.problems)),
    }
}
