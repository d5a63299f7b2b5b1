//! The lock of stored fields: a record of what objects that may be stored are made of, beside the definitions.
//!
//! Objects are stored as protobuf: a number that gets another meaning would make them unreadable, or show one field's
//! value as another's. The build compares the definitions with the record, refuses what stored objects would not
//! survive, and writes what is new. A record is a file `stored.lock` in the folder of a version; it is committed with
//! the definitions.

mod compare;
mod from_model;
mod text;
mod types;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use compare::{Findings, compare};
pub use types::Record;

use crate::problem::{Error, Place, Problem};

/// Name of the file in the folder of a version.
pub const FILE: &str = "stored.lock";

/// The records of all versions, by folder (`example.com/v1`).
pub type Records = BTreeMap<String, Record>;

/// The records that lie below a folder of definitions.
///
/// # Errors
/// A file that can't be read, or is no record.
pub fn read(root: &Path, shown_root: &str) -> Result<Records, Error> {
    let mut records = Records::new();
    let mut problems = Vec::new();
    for folder in folders(root)? {
        let path = root.join(&folder).join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::io(&path, error)),
        };
        let file = format!("{shown_root}/{folder}/{FILE}");
        match text::parse(&text) {
            Ok(record) => drop(records.insert(folder, record)),
            Err((line, why)) => problems.push(Problem::new(&Place { file, line }, "", why)),
        }
    }
    match problems.is_empty() {
        true => Ok(records),
        false => Err(Error::Definitions(problems)),
    }
}

/// Writes the records that say something else than their files.
///
/// # Errors
/// A file that can't be written.
pub fn write(root: &Path, records: &Records) -> Result<(), Error> {
    for (folder, record) in records.iter().filter(|(_, record)| !record.is_empty()) {
        let path: PathBuf = root.join(folder).join(FILE);
        let text = text::write(record);
        if std::fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
            continue;
        }
        std::fs::write(&path, text).map_err(|error| Error::io(&path, error))?;
    }
    Ok(())
}

/// Folders two deep: groups and their versions.
fn folders(root: &Path) -> Result<Vec<String>, Error> {
    let mut all = Vec::new();
    for group in inside(root)? {
        for version in inside(&root.join(&group))? {
            all.push(format!("{group}/{version}"));
        }
    }
    all.sort();
    Ok(all)
}

fn inside(folder: &Path) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))? {
        let entry = entry.map_err(|e| Error::io(folder, e))?;
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}
