//! Errors of calls that came to nothing.

use std::error::Error;
use std::fmt::{self, Display};
use std::io::ErrorKind;

use http::Version;

/// What went wrong, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing to talk to: the name, the connection, or the way there.
    Dial(String),
    /// The handshake failed, or the certificate is not one to trust.
    Tls(String),
    /// The time was up.
    Deadline,
    /// The other side closed the connection before it had answered.
    Closed,
    /// The connection broke.
    Reset(String),
    /// The answer is larger than these bytes.
    TooLarge(usize),
    /// The other side wants another address to be called.
    Redirect(u16),
    /// The answer is no HTTP, or not what was asked for.
    Malformed(String),
    /// The call cannot be made at all: its address, its headers, or a file of its credentials.
    Unusable(String),
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Dial(text) | Fault::Tls(text) | Fault::Reset(text) | Fault::Unusable(text) => f.write_str(text),
            Fault::Deadline => f.write_str("context deadline exceeded"),
            Fault::Closed => f.write_str("EOF"),
            Fault::TooLarge(limit) => write!(f, "the answer is larger than the {limit} bytes that are read"),
            Fault::Redirect(code) => write!(f, "the answer is a redirect ({code}), which is not followed"),
            Fault::Malformed(text) => write!(f, "net/http: HTTP/1.x transport connection broken: {text}"),
        }
    }
}

impl Fault {
    /// Whether the connection broke, so that another one may hold: who may repeat a call tries again. A connection that
    /// was closed properly is none of these, as for Go's clients.
    pub fn is_connection(&self) -> bool {
        matches!(self, Fault::Reset(_))
    }
}

/// A call that failed before there was an answer: `Post "https://a/b": EOF`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{method} {url:?}: {fault}")]
pub struct CallError {
    /// `Get`, `Post`.
    pub method: String,
    /// As it was called, without a password.
    pub url: String,
    pub fault: Fault,
}

/// What a failed conversation in this version of HTTP means.
pub(super) fn conversation(error: &hyper::Error, version: Version) -> Fault {
    if let Some(why) = innermost::<rustls::Error>(error) {
        return Fault::Tls(super::tls::fault(why));
    }
    if let Some(io) = innermost::<std::io::Error>(error) {
        return match io.kind() {
            ErrorKind::ConnectionReset => Fault::Reset("read: connection reset by peer".to_owned()),
            ErrorKind::BrokenPipe => Fault::Reset("write: broken pipe".to_owned()),
            ErrorKind::UnexpectedEof => Fault::Closed,
            _ => Fault::Reset(io.to_string()),
        };
    }
    match error {
        e if e.is_incomplete_message() || e.is_canceled() || e.is_closed() => Fault::Closed,
        e if version == Version::HTTP_2 => {
            let why = e.source().map_or_else(|| e.to_string(), ToString::to_string);
            Fault::Reset(why)
        }
        e => Fault::Malformed(e.to_string()),
    }
}

/// The error of this type behind `error`, however deep.
pub(super) fn innermost<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut at = Some(error);
    while let Some(here) = at {
        if let Some(found) = here.downcast_ref::<T>() {
            return Some(found);
        }
        // An io::Error hides what it was made of from `source`.
        let within = here.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        at = match within {
            Some(within) => Some(within as &(dyn Error + 'static)),
            None => here.source(),
        };
    }
    None
}
