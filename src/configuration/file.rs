//! Bytes of configuration files, as many as one may have.

use std::io::{self, Read};
use std::path::Path;

/// Bytes of a configuration file.
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// A file that can't be read. The text does not name it: whoever asked does.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("is no regular file")]
    Irregular,
    #[error("is larger than {MAX_FILE_BYTES} bytes")]
    TooLarge,
}

/// The bytes of a file, which may be a pipe or a descriptor of this process, too.
///
/// # Errors
/// It is not there, a folder, or larger than [`MAX_FILE_BYTES`].
pub fn read_file(path: &Path) -> Result<Vec<u8>, FileError> {
    let file = std::fs::File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(FileError::Irregular);
    }
    let mut text = Vec::new();
    match file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text)? as u64 > MAX_FILE_BYTES {
        true => Err(FileError::TooLarge),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_up_to_their_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert!(matches!(read_file(&path), Err(FileError::Io(_))));
        assert!(matches!(read_file(folder.path()), Err(FileError::Irregular)));
        std::fs::write(&path, "a").unwrap();
        assert_eq!(read_file(&path).unwrap(), b"a");
        let limit = usize::try_from(MAX_FILE_BYTES).unwrap();
        std::fs::write(&path, vec![b' '; limit]).unwrap();
        assert_eq!(read_file(&path).unwrap().len(), limit);
        std::fs::write(&path, vec![b' '; limit + 1]).unwrap();
        assert_eq!(
            read_file(&path).unwrap_err().to_string(),
            "is larger than 4194304 bytes"
        );
    }
}
