//! Documents that are built once and served often: OpenAPI and discovery. Kept compressed, and joined from pieces that
//! were compressed before, so that a change costs the pieces that it changes. The ETag is a hash of what a client sees
//! after unpacking, or of the hashes of its pieces.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::DeflateEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use keelson_registry::cache::{Block, GZIP_HEAD, Joined};
use sha2::{Digest, Sha512};

pub(crate) mod conditions;
mod date;
mod kept;

pub(crate) use date::{http_date, parse_http_date, unix_date};
pub(crate) use kept::{Kept, Newest};

/// A document's bytes, compressed, and what is sent with them.
pub(crate) struct Document {
    content_type: &'static str,
    /// Upper-case hexadecimal SHA-512.
    hash: String,
    gzip: Bytes,
    /// Bytes before compression.
    len: usize,
    /// The content as it was given, as long as an answer holds it: those that nobody reads have it together.
    unpacked: Mutex<Weak<Vec<u8>>>,
}

/// Compressed text that may stand anywhere in a document.
pub(crate) struct Piece {
    block: Block,
    /// SHA-512 of the text.
    hash: [u8; 64],
}

/// Takes a piece bit by bit, so that it is never there as a whole.
pub(crate) struct Writer {
    digest: Sha512,
    checksum: crc32fast::Hasher,
    deflate: DeflateEncoder<Vec<u8>>,
    len: usize,
}

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer {
            digest: Sha512::new(),
            checksum: crc32fast::Hasher::new(),
            deflate: DeflateEncoder::new(Vec::new(), Compression::default()),
            len: 0,
        }
    }

    /// The piece of all that was written.
    pub(crate) fn finish(mut self) -> io::Result<Piece> {
        // Up to a flush, not to the end of the stream: others follow.
        self.deflate.flush()?;
        let mut bytes = std::mem::take(self.deflate.get_mut());
        bytes.shrink_to_fit();
        Ok(Piece {
            block: Block::deflated(bytes, self.checksum.finalize(), self.len as u64),
            hash: self.digest.finalize().into(),
        })
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.digest.update(bytes);
        self.checksum.update(bytes);
        self.deflate.write_all(bytes)?;
        self.len += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Piece {
    /// Compresses `bytes`.
    pub(crate) fn new(bytes: &[u8]) -> io::Result<Piece> {
        let mut writer = Writer::new();
        writer.write_all(bytes)?;
        writer.finish()
    }

    /// Bytes before compression.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.block.length()).unwrap_or(usize::MAX)
    }

    /// The document that is this piece alone; its hash is that of the content.
    pub(crate) fn alone(&self, content_type: &'static str) -> Document {
        let mut joining = Joining::new();
        joining.piece(self);
        Document {
            hash: hex(&self.hash),
            ..joining.finish(content_type)
        }
    }
}

/// Joins pieces to a document.
pub(crate) struct Joining {
    gzip: Vec<u8>,
    joined: Joined,
    digest: Sha512,
    len: usize,
}

impl Joining {
    pub(crate) fn new() -> Joining {
        Joining {
            gzip: GZIP_HEAD.to_vec(),
            joined: Joined::default(),
            digest: Sha512::new(),
            len: 0,
        }
    }

    pub(crate) fn piece(&mut self, piece: &Piece) {
        self.digest.update(piece.hash);
        self.block(&piece.block);
    }

    /// A few bytes between pieces, as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.digest.update(bytes);
        bytes
            .chunks(MOST_STORED)
            .for_each(|bytes| self.block(&Block::stored(bytes)));
    }

    fn block(&mut self, block: &Block) {
        self.gzip.extend_from_slice(&block.bytes);
        self.joined.add(block);
        self.len += usize::try_from(block.length()).unwrap_or(usize::MAX);
    }

    pub(crate) fn finish(self, content_type: &'static str) -> Document {
        let mut gzip = self.gzip;
        gzip.extend(self.joined.end());
        gzip.shrink_to_fit();
        Document {
            content_type,
            hash: hex(&self.digest.finalize()),
            gzip: gzip.into(),
            len: self.len,
            unpacked: Mutex::default(),
        }
    }
}

/// Bytes of a block that is not compressed, at most.
const MOST_STORED: usize = 32 << 10;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect()
}

impl Document {
    /// Compresses `bytes`.
    #[cfg(test)]
    pub(crate) fn new(content_type: &'static str, bytes: &[u8]) -> io::Result<Document> {
        Ok(Piece::new(bytes)?.alone(content_type))
    }

    /// Another encoding of the document that has this hash.
    pub(crate) fn encoding_of(self, hash: &str) -> Document {
        Document {
            hash: hash.to_owned(),
            ..self
        }
    }

    /// Upper-case hexadecimal SHA-512 of the content in JSON, or of the hashes of its pieces.
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
        let mut held = self.unpacked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = held.upgrade() {
            return Ok(Bytes::from_owner(Shared(bytes)));
        }
        let mut bytes = Vec::with_capacity(self.len);
        GzDecoder::new(&self.gzip[..]).read_to_end(&mut bytes)?;
        let bytes = Arc::new(bytes);
        *held = Arc::downgrade(&bytes);
        Ok(Bytes::from_owner(Shared(bytes)))
    }
}

/// Bytes that several answers hold.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
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
        for part in [&b"{\"a\""[..], b":", b"1}"] {
            writer.write_all(part).unwrap();
        }
        let written = writer.finish().unwrap().alone("application/json");
        assert_eq!((whole.hash(), whole.len()), (written.hash(), written.len()));
        assert_eq!(written.unpacked().unwrap(), "{\"a\":1}");
        assert_eq!(whole.etag().len(), 130);
    }

    /// A client that asks for many and reads none must not have a copy of each.
    #[test]
    fn answers_hold_the_content_together() {
        let document = Document::new("text/plain", "a".repeat(2000).as_bytes()).unwrap();
        let (one, other) = (document.unpacked().unwrap(), document.unpacked().unwrap());
        assert_eq!(one.as_ptr(), other.as_ptr());
        drop((one, other));
        assert!(
            document.unpacked.lock().unwrap().upgrade().is_none(),
            "and nobody else does"
        );
    }

    #[test]
    fn joined_pieces_are_one_text_with_a_hash_of_its_own() {
        let join = |pieces: &[&[u8]], between: &[u8]| {
            let mut joining = Joining::new();
            for piece in pieces {
                joining.piece(&Piece::new(piece).unwrap());
                joining.bytes(between);
            }
            joining.finish("text/plain")
        };
        let long = b"0123456789".repeat(10_000);
        let document = join(&[b"a", &long, b"b"], b", ");
        let text = [b"a, ", &long[..], b", b, "].concat();
        assert_eq!(
            (document.len(), &document.unpacked().unwrap()[..]),
            (text.len(), &text[..])
        );
        assert_eq!(document.hash(), join(&[b"a", &long, b"b"], b", ").hash());
        assert_ne!(document.hash(), join(&[b"a", &long, b"c"], b", ").hash());
        assert_ne!(document.hash(), join(&[b"a", &long, b"b"], b"; ").hash());
        let stored = join(&[b"a"], &long);
        assert_eq!(stored.unpacked().unwrap()[1..], long[..]);
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
