//! Patches over JSON text: JSON patch and JSON merge patch, with the behaviour and the limits of the Kubernetes API.
//!
//! A document is parsed only as deep as a patch reaches into it; what it does not touch is copied as text, so numbers
//! keep their spelling. Objects that were opened are written with sorted keys, as the API does it (a client sees that
//! where a message quotes the patched object).

pub mod json;
pub mod merge;
mod node;
mod scan;
pub mod strategic;
mod strict;

use crate::status::StatusError;

/// Deepest nesting of a patch or a document. The API allows 10 000; the bound here keeps recursion shallow.
pub const MAX_DEPTH: usize = 1_000;

fn decode_error(why: &str) -> StatusError {
    StatusError::bad_request(format!("error decoding patch: {why}"))
}
