//! gzip for large answers.

use std::io::Write;

use actix_web::http::header::{self, HeaderMap};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Answers up to this size are not compressed, as in kube-apiserver.
pub const THRESHOLD_BYTES: usize = 128 * 1024;

/// Whether the client takes gzip: the first header names it, without a weight. Any parameter, `q=1` too, hides it from
/// kube-apiserver, and so here: an answer may be compressed only where the client says so plainly.
pub fn accepted(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT_ENCODING)
        .and_then(|v| v.to_str().ok())
        .is_some_and(|v| v.split(',').any(|coding| coding.trim() == "gzip"))
}

/// Compresses what is written to it. The fastest level: the original's choice, and lists are bound by it.
pub fn encoder() -> GzEncoder<Vec<u8>> {
    GzEncoder::new(Vec::new(), Compression::fast())
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = encoder();
    encoder.get_mut().reserve(bytes.len() / 8);
    // Writing to a Vec does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn gzip_is_named_plainly() {
        for (sent, want) in [
            ("gzip", true),
            ("br, gzip ", true),
            ("gzip;q=1", false),
            ("gzip;q=0", false),
            ("GZIP", false),
            ("*", false),
            ("x-gzip", false),
        ] {
            let mut headers = HeaderMap::new();
            assert!(!accepted(&headers));
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(sent));
            assert_eq!(accepted(&headers), want, "{sent}");
        }
    }
}
