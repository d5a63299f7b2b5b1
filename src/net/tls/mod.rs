//! Certificates and keys: making them ([`certs`]), keeping them in files ([`files`]), and serving with them
//! ([`TlsState`]).

pub mod certs;
mod cipher_suites;
mod error;
pub mod files;
mod follow;
mod names;
mod signatures;
mod state;
mod unexpired;
mod verifier;

pub use cipher_suites::CipherSuite;
pub use error::TlsError;
pub use follow::follow;
pub use signatures::CLIENT_SIGNATURES;
pub use state::{MinVersion, ServingCertificates, TlsSettings, TlsState, certificates};
pub use unexpired::unexpired;

/// The ALPN name of HTTP/2.
pub(crate) const ALPN_HTTP2: &[u8] = b"h2";
/// The ALPN name of HTTP/1.1.
pub(crate) const ALPN_HTTP1: &[u8] = b"http/1.1";
