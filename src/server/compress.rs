//! gzip for large answers.

use std::io::Write;

use actix_web::http::header::{self, HeaderMap};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Answers up to this size are not compressed, as in kube-apiserver.
pub const THRESHOLD_BYTES: usize = 128 * 1024;

/// Whether the client takes gzip.
pub fn accepted(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT_ENCODING)
        .filter_map(|v| v.to_str().ok())
        .any(|v| {
            v.split(',').any(|coding| {
                let (name, params) = coding.split_once(';').unwrap_or((coding, ""));
                matches!(name.trim(), "gzip") && params.trim().replace(' ', "") != "q=0"
            })
        })
}

/// The fastest level: the original's choice, and lists are bound by it.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    // Writing to a Vec does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}
