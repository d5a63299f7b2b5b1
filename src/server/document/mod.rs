//! Documents that are built once and served often: OpenAPI and discovery. Kept compressed; the ETag is a hash of the
//! bytes that a client sees after unpacking.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use sha2::{Digest, Sha512};

pub(crate) mod accept;

/// Smaller bodies are not compressed for the wire.
const MIN_GZIP_BYTES: usize = 1400;

/// A document's bytes, compressed, and what is sent with them.
pub(crate) struct Document {
    content_type: &'static str,
    /// Upper-case hexadecimal SHA-512 of the uncompressed bytes.
    hash: String,
    gzip: Bytes,
    /// Uncompressed.
    len: usize,
}

impl Document {
    /// Compresses `bytes`.
    pub(crate) fn new(content_type: &'static str, bytes: &[u8]) -> std::io::Result<Document> {
        let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::default());
        encoder.write_all(bytes)?;
        let gzip = Bytes::from(encoder.finish()?);
        Ok(Document {
            content_type,
            hash: sha512(bytes),
            gzip,
            len: bytes.len(),
        })
    }

    /// Upper-case hexadecimal SHA-512 of the content.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// The answer to a GET with these request headers: 200, or 304 if the client has this very content. `vary` is
    /// sent as Vary.
    pub(crate) fn answer(&self, headers: &HeaderMap, vary: &'static str) -> Response<Bytes> {
        let etag = format!("\"{}\"", self.hash);
        let known = matches_etag(headers, &etag);
        let mut response = if known {
            empty(StatusCode::NOT_MODIFIED)
        } else {
            self.body(headers)
        };
        let out = response.headers_mut();
        out.insert(VARY, HeaderValue::from_static(vary));
        if let Ok(etag) = HeaderValue::try_from(etag) {
            out.insert(ETAG, etag);
        }
        response
    }

    fn body(&self, headers: &HeaderMap) -> Response<Bytes> {
        let (body, encoded) = if self.len >= MIN_GZIP_BYTES && accepts_gzip(headers) {
            (self.gzip.clone(), true)
        } else {
            match self.unpacked() {
                Ok(body) => (body, false),
                // The bytes were compressed by this process; damage to them is damage to its memory.
                Err(_) => return empty(StatusCode::INTERNAL_SERVER_ERROR),
            }
        };
        let len = body.len();
        let mut response = Response::new(body);
        let out = response.headers_mut();
        out.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        out.insert(CONTENT_LENGTH, HeaderValue::from(len));
        if encoded {
            out.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }

    /// The content as it was given.
    pub(crate) fn unpacked(&self) -> std::io::Result<Bytes> {
        let mut bytes = Vec::with_capacity(self.len);
        GzDecoder::new(&self.gzip[..]).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

fn sha512(bytes: &[u8]) -> String {
    Sha512::digest(bytes).iter().map(|b| format!("{b:02X}")).collect()
}

/// Weak comparison, as RFC 9110 wants it for If-None-Match.
fn matches_etag(headers: &HeaderMap, etag: &str) -> bool {
    let sent = headers.get_all(IF_NONE_MATCH).iter().filter_map(|v| v.to_str().ok());
    sent.flat_map(|v| v.split(','))
        .map(str::trim)
        .any(|v| v == "*" || v.strip_prefix("W/").unwrap_or(v) == etag)
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let sent = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|v| v.to_str().ok());
    sent.flat_map(|v| v.split(',')).any(|part| {
        let mut pieces = part.split(';').map(str::trim);
        let named = pieces
            .next()
            .is_some_and(|coding| coding.eq_ignore_ascii_case("gzip") || coding == "*");
        named && !pieces.any(|p| p.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0_f32)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(http::HeaderName, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn compressed_only_for_those_who_take_it() {
        let text = "a".repeat(MIN_GZIP_BYTES);
        let document = Document::new("application/json", text.as_bytes()).unwrap();
        for (sent, encoded) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("*", true),
            ("gzip;q=0", false),
            ("br", false),
        ] {
            let response = document.answer(&headers(&[(ACCEPT_ENCODING, sent)]), "Accept-Encoding");
            assert_eq!(response.headers().contains_key(CONTENT_ENCODING), encoded, "{sent}");
            assert_eq!(response.body().len() == text.len(), !encoded);
        }
        assert_eq!(document.answer(&HeaderMap::new(), "Accept").body(), text.as_bytes());
    }

    #[test]
    fn known_content_is_not_sent_again() {
        let document = Document::new("application/json", b"{}").unwrap();
        let etag = document.answer(&HeaderMap::new(), "Accept").headers()[ETAG]
            .to_str()
            .unwrap()
            .to_owned();
        assert_eq!(etag.len(), 130);
        for (sent, status) in [
            (etag.clone(), 304),
            (format!("\"x\", W/{etag}"), 304),
            ("\"x\"".to_owned(), 200),
        ] {
            let mut request = HeaderMap::new();
            request.insert(IF_NONE_MATCH, HeaderValue::try_from(&sent).unwrap());
            let response = document.answer(&request, "Accept");
            assert_eq!(response.status(), status, "{sent}");
            assert_eq!(response.body().is_empty(), status == 304);
        }
    }
}
