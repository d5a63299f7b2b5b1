//! Documents that are built once and served often: OpenAPI and discovery. Kept compressed; the ETag is a hash of the
//! bytes that a client sees after unpacking.

use std::io::{self, Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use sha2::{Digest, Sha512};

pub(crate) mod conditions;
mod date;

pub(crate) use date::{http_date, parse_http_date};

/// A document's bytes, compressed, and what is sent with them.
pub(crate) struct Document {
    content_type: &'static str,
    /// Upper-case hexadecimal SHA-512 of the uncompressed bytes.
    hash: String,
    gzip: Bytes,
    /// Bytes before compression.
    len: usize,
}

/// Takes a document piece by piece, so that it is never there as a whole.
pub(crate) struct Writer {
    digest: Sha512,
    gzip: GzEncoder<Vec<u8>>,
    len: usize,
}

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer {
            digest: Sha512::new(),
            gzip: GzEncoder::new(Vec::new(), Compression::default()),
            len: 0,
        }
    }

    /// The document of all that was written.
    pub(crate) fn finish(self, content_type: &'static str) -> io::Result<Document> {
        let mut gzip = self.gzip.finish()?;
        gzip.shrink_to_fit();
        Ok(Document {
            content_type,
            hash: self.digest.finalize().iter().map(|b| format!("{b:02X}")).collect(),
            gzip: gzip.into(),
            len: self.len,
        })
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.digest.update(bytes);
        self.gzip.write_all(bytes)?;
        self.len += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Document {
    /// Compresses `bytes`.
    pub(crate) fn new(content_type: &'static str, bytes: &[u8]) -> io::Result<Document> {
        let mut writer = Writer::new();
        writer.write_all(bytes)?;
        writer.finish(content_type)
    }

    /// Another encoding of the document that has this hash.
    pub(crate) fn encoding_of(self, hash: &str) -> Document {
        Document {
            hash: hash.to_owned(),
            ..self
        }
    }

    /// Upper-case hexadecimal SHA-512 of the content, in JSON.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// The hash in quotes.
    pub(crate) fn etag(&self) -> String {
        format!("\"{}\"", self.hash)
    }

    pub(crate) fn content_type(&self) -> &'static str {
        self.content_type
    }

    /// Bytes before compression.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The whole document, compressed if `gzip`.
    pub(crate) fn whole(&self, gzip: bool) -> Response<Bytes> {
        if gzip {
            let mut response = with_body(StatusCode::OK, self.content_type, self.gzip.clone());
            let coding = HeaderValue::from_static("gzip");
            response.headers_mut().insert(CONTENT_ENCODING, coding);
            return response;
        }
        match self.unpacked() {
            Ok(body) => with_body(StatusCode::OK, self.content_type, body),
            // The bytes were compressed by this process; damage to them is damage to its memory.
            Err(_) => empty(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    /// The content as it was given.
    pub(crate) fn unpacked(&self) -> io::Result<Bytes> {
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

/// An answer with a body and its length.
pub(crate) fn with_body(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Bytes> {
    let body = body.into();
    let len = body.len();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(len));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_the_same_document_as_the_whole() {
        let whole = Document::new("application/json", b"{\"a\":1}").unwrap();
        let mut writer = Writer::new();
        for piece in [&b"{\"a\""[..], b":", b"1}"] {
            writer.write_all(piece).unwrap();
        }
        let pieces = writer.finish("application/json").unwrap();
        assert_eq!((whole.hash(), whole.len()), (pieces.hash(), pieces.len()));
        assert_eq!(pieces.unpacked().unwrap(), "{\"a\":1}");
        assert_eq!(whole.etag().len(), 130);
    }

    #[test]
    fn compressed_if_asked() {
        let text = "a".repeat(2000);
        let document = Document::new("text/plain", text.as_bytes()).unwrap();
        let packed = document.whole(true);
        assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
        assert_eq!(packed.headers()[CONTENT_LENGTH], packed.body().len().to_string());
        assert_eq!(document.whole(false).body(), text.as_bytes());
    }
}
