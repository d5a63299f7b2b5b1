//! Answers made of what is ready in memory: the object itself as JSON or protobuf. Other forms are made in
//! [`super::output`].

use actix_web::HttpResponse;
use actix_web::http::header;
use bytes::{Bytes, BytesMut};
use keelson_machinery::meta::v1::ListMeta;
use keelson_machinery::object::api_version;
use keelson_machinery::status::StatusError;
use keelson_machinery::{json, protobuf};
use keelson_storage::Entry;

use super::Rest;
use super::request::Request;
use crate::cache::{Block, Body, GZIP_HEAD, Items, Joined, Shape, Write};
use crate::compress::THRESHOLD_BYTES;
use crate::negotiate::{Accepted, Format, Shape as Wanted};
use crate::registry::{Endpoint, LIST_ITEMS};
use crate::respond::{self, Rendering};

/// Number of the protobuf field that holds a list's metadata.
const LIST_METADATA: u32 = 1;
/// Entries whose size is added up before other requests have a turn.
const ENTRIES_PER_TURN: usize = 64;
const SEPARATOR: &[u8] = b",";

/// What an answer is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Protobuf,
}

impl Form {
    /// `None`: the answer is not made of renditions. What is recorded as JSON beside is made the other way.
    fn of(rendering: Rendering, accepted: Accepted) -> Option<Form> {
        if rendering.recording.objects() {
            return None;
        }
        match (accepted.shape, accepted.format) {
            (Wanted::Object, Format::Protobuf) => Some(Form::Protobuf),
            (Wanted::Object, Format::Json) if !rendering.pretty => Some(Form::Json),
            _ => None,
        }
    }

    fn shape(self) -> Shape {
        match self {
            Form::Json => Shape::Json,
            Form::Protobuf => Shape::Protobuf,
        }
    }
}

impl Rest {
    /// One object; `None`: not an answer of renditions.
    pub(super) fn ready_object(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        accepted: Accepted,
        entry: &Entry,
    ) -> Result<Option<HttpResponse>, StatusError> {
        let rendering = request.rendering(accepted.format);
        let Some(form) = Form::of(rendering, accepted) else {
            return Ok(None);
        };
        let bytes = endpoint.plain(entry, form.shape(), None)?;
        let body = match form {
            Form::Protobuf => protobuf::wrap(&version(endpoint), endpoint.kind.kind, &bytes),
            Form::Json => {
                let mut out = Vec::with_capacity(bytes.len() + 128);
                write_object(endpoint, &bytes, &mut out);
                out.push(b'\n');
                out
            }
        };
        Ok(Some(respond::bytes(rendering, 200, body)))
    }

    /// A list; `None`: not an answer of renditions.
    pub(super) async fn ready_list(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        accepted: Accepted,
        meta: &ListMeta,
        items: &Items,
    ) -> Result<Option<HttpResponse>, StatusError> {
        let rendering = request.rendering(accepted.format);
        let Some(form) = Form::of(rendering, accepted) else {
            return Ok(None);
        };
        let head = match form {
            Form::Json => json_head(endpoint, meta),
            Form::Protobuf => protobuf_head(endpoint, meta, items.clone()).await?,
        };
        let plain = Plain {
            endpoint: endpoint.clone(),
            form,
            tag: Vec::new(),
        };
        let mut body = Body::new(head.clone(), items.clone(), plain);
        let broken = |reason: String| StatusError::internal_error(reason);
        let begin = body.chunk().transpose().map_err(broken)?.unwrap_or_default();
        // Two chunks are more than what is never compressed; what fits into one goes out with its length.
        let Some(more) = body.chunk().transpose().map_err(broken)? else {
            return Ok(Some(respond::bytes(rendering, 200, begin.into())));
        };
        let mut builder = HttpResponse::Ok();
        builder.insert_header((header::CONTENT_TYPE, rendering.format.media_type()));
        if rendering.gzip && begin.len() + more.len() > THRESHOLD_BYTES {
            builder.insert_header((header::CONTENT_ENCODING, "gzip"));
            builder.insert_header((header::VARY, "Accept-Encoding"));
            let (begin, write) = Gzip::begin(endpoint, form, &head);
            return Ok(Some(builder.body(Body::new(begin, items.clone(), write))));
        }
        Ok(Some(builder.body(body.after([begin, more]))))
    }
}

fn version(endpoint: &Endpoint) -> String {
    api_version(endpoint.kind.group, endpoint.kind.version)
}

/// Appends an object as JSON, given what stands in a list for it.
pub(super) fn write_object(endpoint: &Endpoint, item: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(endpoint.kind.kind.as_bytes());
    out.extend_from_slice(b"\",\"apiVersion\":\"");
    out.extend_from_slice(version(endpoint).as_bytes());
    out.extend_from_slice(b"\",");
    // An object always has metadata, so its braces are never empty.
    out.extend_from_slice(item.get(1..).unwrap_or_default());
}

fn json_head(endpoint: &Endpoint, meta: &ListMeta) -> Bytes {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(endpoint.kind.list_kind.as_bytes());
    out.extend_from_slice(b"\",\"apiVersion\":\"");
    out.extend_from_slice(version(endpoint).as_bytes());
    out.extend_from_slice(b"\",\"metadata\":");
    json::write(meta, &mut out);
    out.extend_from_slice(b",\"items\":[");
    out.into()
}

/// The envelope says how long the list is, so all items are made before the first byte goes out.
async fn protobuf_head(endpoint: &Endpoint, meta: &ListMeta, mut items: Items) -> Result<Bytes, StatusError> {
    let mut metadata = Vec::new();
    protobuf::write_message(meta, &mut metadata);
    let mut length = protobuf::tagged_len(LIST_METADATA, metadata.len());
    loop {
        let batch = items.batch();
        if batch.is_empty() {
            break;
        }
        for (n, entry) in batch.iter().enumerate() {
            length += protobuf::tagged_len(LIST_ITEMS, endpoint.plain(entry, Shape::Protobuf, None)?.len());
            if n % ENTRIES_PER_TURN == 0 {
                tokio::task::yield_now().await;
            }
        }
    }
    let mut out = Vec::with_capacity(64 + metadata.len());
    protobuf::begin_envelope(&version(endpoint), endpoint.kind.list_kind, length, &mut out);
    protobuf::write_tag_bytes(LIST_METADATA, &metadata, &mut out);
    Ok(out.into())
}

fn tail(form: Form) -> Vec<u8> {
    match form {
        Form::Json => b"]}\n".to_vec(),
        Form::Protobuf => {
            let mut out = Vec::new();
            protobuf::end_envelope(&mut out);
            out
        }
    }
}

/// Writes a list as it is.
struct Plain {
    endpoint: Endpoint,
    form: Form,
    /// Tag and length of an item; kept for its memory.
    tag: Vec<u8>,
}

impl Write for Plain {
    fn item(&mut self, entry: &Entry, first: bool, out: &mut BytesMut) -> Result<(), String> {
        let made = self.endpoint.plain(entry, self.form.shape(), None);
        let bytes = made.map_err(|e| e.message)?;
        match self.form {
            Form::Json if !first => out.extend_from_slice(SEPARATOR),
            Form::Json => {}
            Form::Protobuf => {
                self.tag.clear();
                protobuf::write_tag_len(LIST_ITEMS, bytes.len(), &mut self.tag);
                out.extend_from_slice(&self.tag);
            }
        }
        out.extend_from_slice(&bytes);
        Ok(())
    }

    fn end(&mut self, out: &mut BytesMut) {
        out.extend_from_slice(&tail(self.form));
    }
}

/// Writes a list as gzip, from blocks.
struct Gzip {
    endpoint: Endpoint,
    form: Form,
    separator: Block,
    joined: Joined,
}

impl Gzip {
    /// The begin of the stream, which holds `head`, and the writer of the rest.
    fn begin(endpoint: &Endpoint, form: Form, head: &[u8]) -> (Bytes, Gzip) {
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
    fn item(&mut self, entry: &Entry, first: bool, out: &mut BytesMut) -> Result<(), String> {
        let format = match self.form {
            Form::Json => Format::Json,
            Form::Protobuf => Format::Protobuf,
        };
        let block = self.endpoint.block(entry, format).map_err(|e| e.message)?;
        if self.form == Form::Json && !first {
            let separator = self.separator.clone();
            self.push(&separator, out);
        }
        self.push(&block, out);
        Ok(())
    }

    fn end(&mut self, out: &mut BytesMut) {
        let last = Block::compress(&tail(self.form));
        self.push(&last, out);
        out.extend_from_slice(&std::mem::take(&mut self.joined).end());
    }
}
