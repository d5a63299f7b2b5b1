//! Credentials that the server shows to those that it calls.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use tokio::time::Instant;

/// How long the token of a file counts before the file is read again, as with Go's clients.
const REREAD: Duration = Duration::from_secs(60);
/// Bytes of a file with a token.
const MAX_TOKEN_BYTES: u64 = 64 * 1024;

/// A text that shows nowhere: `***`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text. It goes to the one who must know it, and into no message.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// How a client says who it is, beside its certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Credentials {
    #[default]
    None,
    Bearer(Secret),
    /// The file holds the token, and may be written anew.
    BearerFile(PathBuf),
    Basic(String, Secret),
}

/// Credentials as a header, which is made again when its file is due.
pub(super) struct Header {
    credentials: Credentials,
    read: Mutex<Option<(Instant, HeaderValue)>>,
}

impl Header {
    pub fn new(credentials: Credentials) -> Header {
        Header {
            credentials,
            read: Mutex::default(),
        }
    }

    /// The `Authorization` header.
    pub fn value(&self) -> Result<Option<HeaderValue>, CredentialsError> {
        match &self.credentials {
            Credentials::None => Ok(None),
            Credentials::Bearer(token) => header(&format!("Bearer {}", token.reveal())).map(Some),
            Credentials::Basic(name, password) => {
                let pair = STANDARD.encode(format!("{name}:{}", password.reveal()));
                header(&format!("Basic {pair}")).map(Some)
            }
            Credentials::BearerFile(path) => {
                let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((_, value)) = read.as_ref().filter(|(at, _)| at.elapsed() < REREAD) {
                    return Ok(Some(value.clone()));
                }
                let value = token(path)?;
                *read = Some((Instant::now(), value.clone()));
                Ok(Some(value))
            }
        }
    }
}

/// Credentials that can't be shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum CredentialsError {
    /// The file of a token can't be read.
    #[error("{}: {error}", .path.display())]
    File { path: PathBuf, error: io::Error },
    /// It holds none.
    #[error("{}: read empty token from file", .path.display())]
    Empty { path: PathBuf },
    /// No header can hold them.
    #[error("credentials that no header can hold")]
    Header,
    #[error("{}: credentials that no header can hold", .path.display())]
    FileHeader { path: PathBuf },
}

fn token(path: &Path) -> Result<HeaderValue, CredentialsError> {
    let owned = || path.to_owned();
    let failed = |error| CredentialsError::File { path: owned(), error };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut text = String::new();
    file.take(MAX_TOKEN_BYTES).read_to_string(&mut text).map_err(failed)?;
    match text.trim() {
        "" => Err(CredentialsError::Empty { path: owned() }),
        token => header(&format!("Bearer {token}")).map_err(|_| CredentialsError::FileHeader { path: owned() }),
    }
}

fn header(text: &str) -> Result<HeaderValue, CredentialsError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| CredentialsError::Header)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_show() {
        let shown = format!(
            "{:?} {:?}",
            Credentials::Bearer(Secret::new("canary")),
            Header::new(Credentials::Bearer(Secret::new("canary"))).value()
        );
        assert!(shown.contains("***") && !shown.contains("canary"), "{shown}");
    }

    #[test]
    fn credentials_become_a_header() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::fs::write(&path, "abc\n").unwrap();
        let empty = dir.path().join("empty");
        std::fs::write(&empty, "\n").unwrap();
        let value = |credentials| {
            let value = Header::new(credentials).value().map_err(|error| error.to_string())?;
            Ok(value.map(|value| value.to_str().unwrap().to_owned()))
        };
        let basic = Credentials::Basic("a".to_owned(), Secret::new("b"));
        assert_eq!(value(Credentials::None), Ok(None));
        assert_eq!(value(basic), Ok(Some("Basic YTpi".to_owned())));
        assert_eq!(value(Credentials::BearerFile(path)), Ok(Some("Bearer abc".to_owned())));
        let error: String = value(Credentials::BearerFile(empty)).unwrap_err();
        assert!(error.ends_with("empty: read empty token from file"), "{error}");
        assert!(value(Credentials::Bearer(Secret::new("a\nb"))).is_err());
    }
}
