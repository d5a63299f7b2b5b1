//! Writers of lists, item by item, from what is ready in memory.

use std::sync::Arc;

use std::io::Write as _;

use keelson_machinery::object::MetaVersion;
use keelson_machinery::protobuf;
use keelson_machinery::status::StatusError;
use keelson_registry::cache::{Block, GZIP_HEAD, Joined, Shape};
use keelson_registry::{Endpoint, LIST_ITEMS};
use keelson_storage::Entry;

use super::list_body::Write;
use bytes::{Bytes, BytesMut};
use flate2::write::GzEncoder;

use super::renditions::version;
use super::rows::Rows;
use crate::compress;

const BEGIN: &[u8] = b"[";
const SEPARATOR: &[u8] = b",";

/// What an answer is made of.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Json,
    Protobuf,
    Metadata(MetaVersion),
    MetadataProtobuf(MetaVersion),
    Table(Rows),
}

impl Form {
    /// The renditions that an answer consists of; `None` for a Table.
    pub(super) fn shape(self) -> Option<Shape> {
        match self {
            Form::Json => Some(Shape::Json),
            Form::Protobuf => Some(Shape::Protobuf),
            Form::Metadata(version) => Some(Shape::Metadata(version)),
            Form::MetadataProtobuf(_) => Some(Shape::MetadataProtobuf),
            Form::Table(_) => None,
        }
    }

    pub(super) fn is_protobuf(self) -> bool {
        self.shape().is_some_and(Shape::is_protobuf)
    }

    /// Version and kind of a list.
    pub(super) fn list_type(self, endpoint: &Endpoint) -> (String, &str) {
        match self {
            Form::Metadata(version) | Form::MetadataProtobuf(version) => {
                (version.api_version().to_owned(), "PartialObjectMetadataList")
            }
            _ => (version(endpoint), &endpoint.kind.list_kind),
        }
    }
}

/// What follows the items. `none`: there are none.
fn tail(endpoint: &Endpoint, form: Form, none: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if form.is_protobuf() {
        protobuf::end_envelope(&mut out);
        return out;
    }
    let end = match (none, form) {
        (false, _) => "]",
        (true, Form::Table(_)) => endpoint.columns.no_rows(),
        // Alone among lists this one has null for no items.
        (true, Form::Metadata(_)) => "null",
        (true, _) => "[]",
    };
    out.extend_from_slice(end.as_bytes());
    out.extend_from_slice(b"}\n");
    out
}

/// Writes a list as it is.
pub(super) struct Plain {
    endpoint: Arc<Endpoint>,
    form: Form,
    /// Tag and length of an item; kept for its memory.
    tag: Vec<u8>,
}

impl Plain {
    pub(super) fn new(endpoint: &Arc<Endpoint>, form: Form) -> Plain {
        Plain {
            endpoint: endpoint.clone(),
            form,
            tag: Vec::new(),
        }
    }
}

impl Write for Plain {
    fn item(&mut self, entry: &Entry, first: bool, out: &mut BytesMut) -> Result<(), StatusError> {
        let Some(shape) = self.form.shape() else {
            out.extend_from_slice(if first { BEGIN } else { SEPARATOR });
            return match self.form {
                Form::Table(rows) => rows.row(&self.endpoint, entry, None, out),
                _ => Ok(()),
            };
        };
        let bytes = self.endpoint.plain(entry, shape, None)?;
        if shape.is_protobuf() {
            self.tag.clear();
            protobuf::write_tag_len(LIST_ITEMS, bytes.len(), &mut self.tag);
            out.extend_from_slice(&self.tag);
        } else {
            out.extend_from_slice(if first { BEGIN } else { SEPARATOR });
        }
        out.extend_from_slice(&bytes);
        Ok(())
    }

    fn end(&mut self, none: bool, out: &mut BytesMut) {
        out.extend_from_slice(&tail(&self.endpoint, self.form, none));
    }
}

/// Writes a list of objects as gzip, from blocks.
pub(super) struct Gzip {
    endpoint: Arc<Endpoint>,
    form: Form,
    separator: Block,
    joined: Joined,
}

impl Gzip {
    /// The begin of the stream, which holds `head`, and the writer of the rest.
    pub(super) fn begin(endpoint: &Arc<Endpoint>, form: Form, head: &[u8]) -> (Bytes, Gzip) {
        let mut joined = Joined::default();
        let head = Block::compress(head);
        joined.add(&head);
        let begin = [GZIP_HEAD, &head.bytes].concat();
        let gzip = Gzip {
            endpoint: endpoint.clone(),
            form,
            separator: Block::stored(SEPARATOR),
            joined,
        };
        (begin.into(), gzip)
    }

    fn push(&mut self, block: &Block, out: &mut BytesMut) {
        self.joined.add(block);
        out.extend_from_slice(&block.bytes);
    }
}

impl Write for Gzip {
    fn item(&mut self, entry: &Entry, first: bool, out: &mut BytesMut) -> Result<(), StatusError> {
        let shape = if self.form.is_protobuf() {
            Shape::Protobuf
        } else {
            Shape::Json
        };
        let block = self.endpoint.block(entry, shape)?;
        if !self.form.is_protobuf() {
            let separator = if first {
                Block::stored(BEGIN)
            } else {
                self.separator.clone()
            };
            self.push(&separator, out);
        }
        self.push(&block, out);
        Ok(())
    }

    fn end(&mut self, none: bool, out: &mut BytesMut) {
        let last = Block::compress(&tail(&self.endpoint, self.form, none));
        self.push(&last, out);
        out.extend_from_slice(&std::mem::take(&mut self.joined).end());
    }
}

/// Compresses a list for this answer alone, a little at a time: Tables, because the times in them change, and metadata,
/// because those of many objects together are a tenth of what they are one by one.
pub(super) struct Compressed<W> {
    write: W,
    encoder: GzEncoder<Vec<u8>>,
    /// An item; kept for its memory.
    item: BytesMut,
}

impl<W> Compressed<W> {
    pub(super) fn begin(head: &[u8], write: W) -> Compressed<W> {
        let mut begun = Compressed {
            write,
            encoder: compress::encoder(),
            item: BytesMut::from(head),
        };
        begun.compress();
        begun
    }

    fn compress(&mut self) {
        // Writing to memory does not fail.
        let _ = self.encoder.write_all(&self.item);
        self.item.clear();
    }

    fn take_compressed(&mut self, out: &mut BytesMut) {
        out.extend_from_slice(self.encoder.get_ref());
        self.encoder.get_mut().clear();
    }
}

impl<W: Write> Write for Compressed<W> {
    fn item(&mut self, entry: &Entry, first: bool, out: &mut BytesMut) -> Result<(), StatusError> {
        self.write.item(entry, first, &mut self.item)?;
        self.compress();
        self.take_compressed(out);
        Ok(())
    }

    fn end(&mut self, none: bool, out: &mut BytesMut) {
        self.write.end(none, &mut self.item);
        self.compress();
        let _ = self.encoder.try_finish();
        self.take_compressed(out);
    }
}
