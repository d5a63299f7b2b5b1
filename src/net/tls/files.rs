//! Writing certificates and keys: whole or not at all, and keys readable by their owner only.
//!
//! A file is written beside its place under a temporary name, synced, and renamed over the old one, so a reader or a
//! crash never sees half a file.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::TlsError;

/// Mode of keys and of everything else that holds a secret (kubeconfigs with client keys, token files).
const PRIVATE_FILE: u32 = 0o600;
/// Mode of certificates; the process' umask may narrow it.
const PUBLIC_FILE: u32 = 0o644;
/// Mode of the folders made here.
const PRIVATE_FOLDER: u32 = 0o700;

/// Makes `path` and its missing parents, each readable by the owner only. A folder that is there already stays as it
/// is.
///
/// # Errors
/// [`TlsError::File`] when a folder cannot be made, or `path` is something else than a folder.
pub fn create_private_folder(path: &Path) -> Result<(), TlsError> {
    DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_FOLDER)
        .create(path)
        .map_err(|source| at(path, source))
}

/// Writes a secret (mode 0600), replacing what is there in one step.
///
/// # Errors
/// [`TlsError::File`]; the old file, if any, is then untouched.
pub fn write_private(path: &Path, content: &[u8]) -> Result<(), TlsError> {
    write(path, content, PRIVATE_FILE)
}

/// Writes a file anyone may read (mode 0644 less the umask), replacing what is there in one step.
///
/// # Errors
/// [`TlsError::File`]; the old file, if any, is then untouched.
pub fn write_public(path: &Path, content: &[u8]) -> Result<(), TlsError> {
    write(path, content, PUBLIC_FILE)
}

/// Writes a secret as [`write_private`] does, then a file as [`write_public`] does. Their folders are synced once, at
/// the end: each is slow, and there are several pairs at the first start.
///
/// # Errors
/// [`TlsError::File`]; the file that it names is untouched then.
pub fn write_pair((private, secret): (&Path, &[u8]), (public, content): (&Path, &[u8])) -> Result<(), TlsError> {
    replace(private, secret, PRIVATE_FILE)?;
    if private.parent() != public.parent() {
        sync_folder_of(private)?;
    }
    write(public, content, PUBLIC_FILE)
}

/// Reads a PEM file as text.
///
/// # Errors
/// [`TlsError::File`] when it cannot be read or is not UTF-8.
pub fn read_pem(path: &Path) -> Result<String, TlsError> {
    fs::read_to_string(path).map_err(|source| at(path, source))
}

fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), TlsError> {
    replace(path, content, mode)?;
    sync_folder_of(path)
}

/// The folder is not synced.
fn replace(path: &Path, content: &[u8], mode: u32) -> Result<(), TlsError> {
    let temporary = temporary_beside(path);
    let written = write_new(&temporary, content, mode).and_then(|()| fs::rename(&temporary, path));
    if let Err(source) = written {
        // Best effort: the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
        return Err(at(path, source));
    }
    Ok(())
}

/// A name in the same folder (a rename must not cross file systems), different for each process.
fn temporary_beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> std::io::Result<()> {
    // A file left by an earlier process of the same id could have another mode.
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

fn sync_folder_of(path: &Path) -> Result<(), TlsError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|source| at(path, source))
}

fn at(path: &Path, source: std::io::Error) -> TlsError {
    TlsError::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_key_and_its_folder_are_readable_by_the_owner_only() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("a/b");
        create_private_folder(&folder).unwrap();
        let key = folder.join("x.key");
        write_private(&key, b"secret").unwrap();
        assert_eq!((mode(&folder), mode(&key)), (0o700, 0o600));
        assert_eq!(fs::read(&key).unwrap(), b"secret");
    }

    #[test]
    fn a_rewrite_replaces_the_file_and_leaves_nothing_beside_it() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x.crt");
        write_public(&path, b"one").unwrap();
        write_public(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_names_the_file() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("missing/x.crt");
        let message = write_public(&path, b"one").unwrap_err().to_string();
        assert!(message.contains("missing/x.crt"), "{message}");
    }
}
