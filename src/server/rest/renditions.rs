//! Answers made of what is ready in memory: objects or their metadata alone as JSON or protobuf, Tables. What is asked
//! for rarely (YAML, indented JSON, what is recorded as well) is made in [`super::output`].

use std::sync::Arc;

use keelson_base::cooperative::Slices;
use keelson_machinery::meta::v1::ListMeta;
use keelson_machinery::object::api_version;
use keelson_machinery::status::StatusError;
use keelson_machinery::{json, protobuf};
use keelson_registry::cache::{Items, Shape};
use keelson_registry::{Endpoint, LIST_ITEMS};
use keelson_storage::Entry;

use super::list_body::{Body, ItemError};
use actix_web::HttpResponse;
use actix_web::http::header;
use bytes::{BufMut, Bytes};

use super::Rest;
use super::events::PARTIAL_METADATA;
use super::output::{include_object, metadata_json};
use super::rows::Rows;
use super::writers::{Compressed, Form, Gzip, Plain};
use crate::compress::THRESHOLD_BYTES;
use crate::negotiate::{Accepted, Format, Shape as Wanted};
use crate::request::Request;
use crate::respond::{self, Rendering};

/// Number of the protobuf field that holds a list's metadata.
const LIST_METADATA: u32 = 1;
impl Rest {
    /// `None`: the answer is not made of renditions. What is recorded as JSON beside is made the other way.
    fn form(
        &self,
        request: &Request,
        rendering: Rendering,
        accepted: Accepted,
        list: bool,
    ) -> Result<Option<Form>, StatusError> {
        let json = match accepted.format {
            _ if rendering.recording.objects() => return Ok(None),
            Format::Protobuf => false,
            Format::Json if !rendering.pretty => true,
            _ => return Ok(None),
        };
        Ok(match (accepted.shape, json) {
            (Wanted::Object, true) => Some(Form::Json),
            (Wanted::Object, false) => Some(Form::Protobuf),
            (Wanted::PartialMetadataList(version), true) if list => Some(Form::Metadata(version)),
            (Wanted::PartialMetadataList(version), false) if list => Some(Form::MetadataProtobuf(version)),
            (Wanted::PartialMetadata(version), true) if !list => Some(Form::Metadata(version)),
            (Wanted::PartialMetadata(version), false) if !list => Some(Form::MetadataProtobuf(version)),
            (Wanted::Table(version), true) => {
                let include = include_object(request, accepted)?;
                Some(Form::Table(Rows::new(version, include, &*self.backend.clock)))
            }
            _ => None,
        })
    }

    /// One object; `None`: not an answer of renditions.
    pub(super) fn ready_object(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        accepted: Accepted,
        entry: &Entry,
    ) -> Result<Option<HttpResponse>, StatusError> {
        let rendering = request.rendering(accepted.format);
        let Some(form) = self.form(request, rendering, accepted, false)? else {
            return Ok(None);
        };
        let bytes = match form.shape() {
            Some(shape) => endpoint.plain(entry, shape, None)?,
            None => Bytes::new(),
        };
        let mut out = Vec::with_capacity(bytes.len() + 128);
        match form {
            Form::Protobuf => out = protobuf::wrap(&version(endpoint), &endpoint.kind.kind, &bytes),
            Form::MetadataProtobuf(version) => out = protobuf::wrap(version.api_version(), PARTIAL_METADATA, &bytes),
            Form::Json => write_object(endpoint, &bytes, &mut out),
            Form::Metadata(_) => out.extend_from_slice(&bytes),
            Form::Table(rows) => rows.single(endpoint, entry, None, true, &mut out)?,
        }
        if !form.is_protobuf() {
            out.push(b'\n');
        }
        Ok(Some(respond::bytes(rendering, 200, out)))
    }

    /// A list; `None`: not an answer of renditions.
    pub(super) async fn ready_list(
        &self,
        request: &Request,
        endpoint: &Arc<Endpoint>,
        accepted: Accepted,
        meta: &ListMeta,
        items: &Items,
    ) -> Result<Option<HttpResponse>, StatusError> {
        let rendering = request.rendering(accepted.format);
        let Some(form) = self.form(request, rendering, accepted, true)? else {
            return Ok(None);
        };
        let head = head(endpoint, form, meta, items).await?;
        let mut body = Body::new(head.clone(), items.clone(), Plain::new(endpoint, form));
        let broken = |error: ItemError| StatusError::internal_error(error);
        let begin = body.chunk().await.transpose().map_err(broken)?.unwrap_or_default();
        // Two chunks are more than what is never compressed; what fits into one goes out with its length.
        let Some(more) = body.chunk().await.transpose().map_err(broken)? else {
            return Ok(Some(respond::bytes(rendering, 200, begin.into())));
        };
        let mut builder = HttpResponse::Ok();
        builder.insert_header((header::CONTENT_TYPE, rendering.format.media_type()));
        if !rendering.gzip || begin.len() + more.len() <= THRESHOLD_BYTES {
            return Ok(Some(builder.body(body.after([begin, more]))));
        }
        builder.insert_header((header::CONTENT_ENCODING, "gzip"));
        builder.insert_header((header::VARY, "Accept-Encoding"));
        Ok(Some(match form {
            Form::Json | Form::Protobuf => {
                let (begin, write) = Gzip::begin(endpoint, form, &head);
                builder.body(Body::new(begin, items.clone(), write))
            }
            _ => {
                let write = Compressed::begin(&head, Plain::new(endpoint, form));
                builder.body(Body::new(Bytes::new(), items.clone(), write))
            }
        }))
    }
}

pub(super) fn version(endpoint: &Endpoint) -> String {
    api_version(&endpoint.kind.group, &endpoint.kind.version)
}

/// Appends an object as JSON, given what stands in a list for it.
pub(super) fn write_object(endpoint: &Endpoint, item: &[u8], out: &mut impl BufMut) {
    if endpoint.kind.message.is_dynamic() {
        // It has them, among its other members.
        return out.put_slice(item);
    }
    out.put_slice(b"{\"kind\":\"");
    out.put_slice(endpoint.kind.kind.as_bytes());
    out.put_slice(b"\",\"apiVersion\":\"");
    out.put_slice(version(endpoint).as_bytes());
    out.put_slice(b"\",");
    // An object always has metadata, so its braces are never empty.
    out.put_slice(item.get(1..).unwrap_or_default());
}

/// What stands before the items.
async fn head(endpoint: &Endpoint, form: Form, meta: &ListMeta, items: &Items) -> Result<Bytes, StatusError> {
    let mut out = Vec::with_capacity(256);
    match (form, form.shape()) {
        (Form::Table(rows), _) => rows.head(endpoint, meta, true, &mut out),
        (_, Some(shape)) if shape.is_protobuf() => {
            return protobuf_head(endpoint, form, shape, meta, items.clone()).await;
        }
        _ => {
            let (version, kind) = form.list_type(endpoint);
            out.extend_from_slice(b"{\"kind\":\"");
            out.extend_from_slice(kind.as_bytes());
            out.extend_from_slice(b"\",\"apiVersion\":\"");
            out.extend_from_slice(version.as_bytes());
            out.extend_from_slice(b"\",\"metadata\":");
            match form {
                Form::Json => out.extend(metadata_json(endpoint, meta)),
                _ => json::write(meta, &mut out),
            }
            out.extend_from_slice(b",\"items\":");
        }
    }
    Ok(out.into())
}

/// The envelope says how long the list is, so all items are made before the first byte goes out.
async fn protobuf_head(
    endpoint: &Endpoint,
    form: Form,
    shape: Shape,
    meta: &ListMeta,
    items: Items,
) -> Result<Bytes, StatusError> {
    let mut metadata = Vec::new();
    protobuf::write_message(meta, &mut metadata);
    let mut length = protobuf::tagged_len(LIST_METADATA, metadata.len());
    let mut slices = Slices::begin();
    for entry in items.entries() {
        length += protobuf::tagged_len(LIST_ITEMS, endpoint.plain(&entry, shape, None)?.len());
        slices.between().await;
    }
    let mut out = Vec::with_capacity(64 + metadata.len());
    let (version, kind) = form.list_type(endpoint);
    protobuf::begin_envelope(&version, kind, length, &mut out);
    protobuf::write_tag_bytes(LIST_METADATA, &metadata, &mut out);
    Ok(out.into())
}
