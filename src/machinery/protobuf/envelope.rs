//! The protobuf envelope: the four bytes `k8s\0` and a message with the type and the encoded object; and the frames of
//! a watch.

use std::borrow::Cow;

use super::read::Outcome;
use super::write::{tagged_len, write_delimited, write_message, write_tag_bytes};
use crate::decode::DecodeError;
use crate::reflect::Reflect;
use crate::reflect::object::Kind;
use crate::wire::{self, Reader, Wire};

/// What every Kubernetes protobuf document begins with.
const MAGIC: &[u8] = b"k8s\0";

const TYPE_META: u32 = 1;
const RAW: u32 = 2;
const CONTENT_ENCODING: u32 = 3;
const CONTENT_TYPE: u32 = 4;

/// An envelope, opened.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Unknown<'a> {
    /// Empty where none was said.
    pub api_version: Cow<'a, str>,
    /// Empty where none was said.
    pub kind: Cow<'a, str>,
    /// The object: the body of its message, unless `content_type` says otherwise.
    pub raw: &'a [u8],
    pub content_encoding: Cow<'a, str>,
    pub content_type: Cow<'a, str>,
}

/// Whether the bytes begin like an envelope.
pub fn has_envelope(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// An object in its envelope.
pub fn encode(object: &dyn Kind) -> Vec<u8> {
    let gvk = object.gvk();
    let mut out = Vec::with_capacity(2048);
    encode_as(object.as_reflect(), &gvk.api_version(), &gvk.kind, &mut out);
    out
}

/// Appends a message in an envelope that says this type.
pub fn encode_as(message: &dyn Reflect, api_version: &str, kind: &str, out: &mut Vec<u8>) {
    write_head(api_version, kind, out);
    write_delimited(RAW, out, |out| write_message(message, out));
    end_envelope(out);
}

/// Begins an envelope whose object of `raw_len` bytes the caller appends piece by piece, to end with [`end_envelope`].
///
/// So a list is put together from items that are encoded already: its message is field 1 with the list's metadata and
/// field 2 with each item, `raw_len` the sum of their [`tagged_len`]s, and [`write_tag_bytes`] appends them.
pub fn begin_envelope(api_version: &str, kind: &str, raw_len: usize, out: &mut Vec<u8>) {
    write_head(api_version, kind, out);
    wire::write_tag(RAW, wire::BYTES, out);
    wire::write_varint(raw_len as u64, out);
}

/// An envelope around a message that is encoded already.
pub fn wrap(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len() + 64);
    begin_envelope(api_version, kind, raw.len(), &mut out);
    out.extend_from_slice(raw);
    end_envelope(&mut out);
    out
}

/// Ends what [`begin_envelope`] began.
pub fn end_envelope(out: &mut Vec<u8>) {
    write_tag_bytes(CONTENT_ENCODING, b"", out);
    write_tag_bytes(CONTENT_TYPE, b"", out);
}

fn write_head(api_version: &str, kind: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(MAGIC);
    write_delimited(TYPE_META, out, |out| {
        write_tag_bytes(1, api_version.as_bytes(), out);
        write_tag_bytes(2, kind.as_bytes(), out);
    });
}

/// Opens an envelope. The object in it is not looked at.
pub fn decode_envelope(bytes: &[u8]) -> Result<Unknown<'_>, DecodeError> {
    let error = |text: &str| Err(DecodeError::Protobuf(text.to_owned()));
    if bytes.is_empty() {
        return error("empty data");
    }
    match bytes.strip_prefix(MAGIC) {
        None => error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        Some(b"") => error("empty body"),
        Some(body) => read_unknown(body).map_err(DecodeError::Protobuf),
    }
}

fn read_unknown(body: &[u8]) -> Outcome<Unknown<'_>> {
    let mut unknown = Unknown::default();
    let mut fields = Reader::new(body);
    while let Some(field) = fields.next()? {
        match field {
            (TYPE_META, Wire::Bytes(b)) => read_type_meta(b, &mut unknown)?,
            (RAW, Wire::Bytes(b)) => unknown.raw = b,
            (CONTENT_ENCODING, Wire::Bytes(b)) => unknown.content_encoding = crate::json_text::lossy(b),
            (CONTENT_TYPE, Wire::Bytes(b)) => unknown.content_type = crate::json_text::lossy(b),
            (TYPE_META..=CONTENT_TYPE, wire) => return Err(wire.mismatch("Unknown")),
            _ => {}
        }
    }
    Ok(unknown)
}

fn read_type_meta<'a>(body: &'a [u8], unknown: &mut Unknown<'a>) -> Outcome {
    let mut fields = Reader::new(body);
    while let Some(field) = fields.next()? {
        match field {
            (1, Wire::Bytes(b)) => unknown.api_version = crate::json_text::lossy(b),
            (2, Wire::Bytes(b)) => unknown.kind = crate::json_text::lossy(b),
            (1 | 2, wire) => return Err(wire.mismatch("TypeMeta")),
            _ => {}
        }
    }
    Ok(())
}

/// Appends one frame of a watch answered in protobuf (`application/vnd.kubernetes.protobuf;stream=watch`): four bytes
/// of length, the most significant first, then the bare body of a WatchEvent (no envelope of its own) that carries the
/// object in its envelope, as [`encode`] makes it. `event` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
pub fn write_watch_frame(event: &str, object: &[u8], out: &mut Vec<u8>) {
    let raw_extension = tagged_len(1, object.len());
    let len = tagged_len(1, event.len()) + tagged_len(2, raw_extension);
    out.reserve(len + 4);
    out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
    write_tag_bytes(1, event.as_bytes(), out);
    wire::write_tag(2, wire::BYTES, out);
    wire::write_varint(raw_extension as u64, out);
    write_tag_bytes(1, object, out);
}
