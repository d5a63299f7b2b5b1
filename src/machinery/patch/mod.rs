//! Patches over JSON text: JSON patch, JSON merge patch and strategic merge patch, with the behaviour and the limits of
//! the Kubernetes API.
//!
//! A document is parsed only as deep as a patch reaches into it; what it does not touch is copied as text, so numbers
//! keep their spelling. Objects that were opened are written with sorted keys, as the API does it (a client sees that
//! where a message quotes the patched object).

pub mod json;
pub mod merge;
mod node;
mod reach;
pub mod strategic;
mod strict;
mod text;

pub use reach::Reach;

use crate::decode::DecodeError;
use crate::status::StatusError;

/// Checks that a body is one JSON value.
fn check(body: &[u8]) -> Result<(), DecodeError> {
    crate::json::validate(body)
}

fn decode_error(why: &str) -> StatusError {
    StatusError::bad_request(format!("error decoding patch: {why}"))
}
