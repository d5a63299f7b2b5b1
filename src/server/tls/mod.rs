//! Certificates and keys: making them ([`certs`]), keeping them in files ([`files`]), and serving with them.

pub mod certs;
mod error;
pub mod files;

pub use error::TlsError;
