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

use crate::status::StatusError;

/// Checks that a body is one JSON value; the error is a text for the caller.
fn check(body: &[u8]) -> Result<(), String> {
    crate::json::validate(body).map_err(|e| e.to_string())
}

fn decode_error(why: &str) -> StatusError {
    StatusError::bad_request(format!("error decoding patch: {why}"))
}
