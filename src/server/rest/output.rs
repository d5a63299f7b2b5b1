//! Objects and lists on their way out: converted, shaped, written.

use actix_web::HttpResponse;
use keelson_base::cooperative::Slices;
use keelson_machinery::json;
use keelson_machinery::meta::v1::{ListMeta, ObjectMeta};
use keelson_machinery::object::MetaVersion;
use keelson_machinery::object::{Kind, Object, api_version};
use keelson_machinery::protobuf;
use keelson_machinery::reflect::Value;
use keelson_machinery::status::{StatusError, reason};
use keelson_machinery::table::{
    IncludeObject, Row, TableColumns, TableWriter, write_partial_metadata, write_partial_protobuf,
};
use keelson_registry::Endpoint;
use keelson_registry::presentation::Presented;

use super::Rest;
use crate::negotiate::{Accepted, Format, Shape};
use crate::request::Request;
use crate::respond;

/// Numbers of protobuf fields in every list kind, and in PartialObjectMetadata.
const LIST_METADATA: u32 = 1;
const LIST_ITEMS: u32 = 2;

/// `?includeObject=` of a request for a Table; others don't look at it.
pub(super) fn include_object(request: &Request, accepted: Accepted) -> Result<IncludeObject, StatusError> {
    if !matches!(accepted.shape, Shape::Table(_)) {
        return Ok(IncludeObject::default());
    }
    let text = request.query.get("includeObject").unwrap_or_default();
    IncludeObject::parse(text).ok_or_else(|| {
        let why = format!("Invalid value: {text:?}: must be 'Metadata', 'Object', 'None', or empty");
        StatusError::bad_request(format!("Unable to convert to Table as requested: includeObject: {why}"))
    })
}

/// Whether rows need the version of the path.
pub(super) fn needs_version(columns: &TableColumns, include: IncludeObject) -> bool {
    include == IncludeObject::Object || columns.read_paths()
}

impl Rest {
    /// One object of the hub version, as the request wants it.
    pub(super) fn object_response(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        accepted: Accepted,
        code: u16,
        object: Box<dyn Object>,
    ) -> Result<HttpResponse, StatusError> {
        match accepted.shape {
            Shape::Object => {
                let object = endpoint.resource.from_hub(&endpoint.kind, object)?;
                Ok(respond::kind(request.rendering(accepted.format), code, &*object))
            }
            Shape::Table(version) => {
                let list_meta = single(object.meta());
                let writer = self.table_writer(request, &endpoint.columns, accepted, version)?;
                let versioned = needs_version(writer.columns, writer.include);
                let mut out = Vec::with_capacity(4096);
                writer.begin(&list_meta, &mut out);
                writer.row(&Presented::new(endpoint, object, versioned)?.row(), &mut out);
                writer.end(&mut out);
                Ok(respond::json_bytes(request.rendering(accepted.format), code, out))
            }
            Shape::PartialMetadata(version) => {
                let shown = Presented::new(endpoint, object, false)?;
                Ok(metadata_response(
                    request,
                    accepted.format,
                    version,
                    code,
                    shown.metadata(),
                ))
            }
            // What is known as a tree alone might be a list as well, until its items are asked for.
            Shape::PartialMetadataList(_) if endpoint.resource.is_custom() => {
                Err(StatusError::unknown("content is not a list"))
            }
            Shape::PartialMetadataList(_) => Err(no_list(&endpoint.kind.group, &endpoint.kind.kind)),
        }
    }

    /// A kind that is no resource, such as Scale, as the request wants it.
    pub(super) fn kind_response(
        &self,
        request: &Request,
        accepted: Accepted,
        code: u16,
        object: &dyn Kind,
    ) -> Result<HttpResponse, StatusError> {
        let gvk = object.gvk();
        let (metadata, version) = match (accepted.shape, metadata_of(object)) {
            (Shape::PartialMetadataList(_), _) => return Err(no_list(&gvk.group, &gvk.kind)),
            (Shape::Table(version) | Shape::PartialMetadata(version), Some(metadata)) => (metadata, version),
            _ => return Ok(respond::kind(request.rendering(accepted.format), code, object)),
        };
        let Some(columns) = self
            .registry
            .type_columns(gvk)
            .filter(|_| accepted.shape == Shape::Table(version))
        else {
            return Ok(metadata_response(request, accepted.format, version, code, metadata));
        };
        let row = Row {
            metadata,
            hub: None,
            versioned: object,
        };
        let mut out = Vec::with_capacity(1024);
        self.table_writer(request, columns, accepted, version)?
            .write(&single(metadata), [row], &mut out);
        Ok(respond::json_bytes(request.rendering(accepted.format), code, out))
    }

    /// A list of hub objects, as the request wants it.
    pub(super) async fn list_response(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        accepted: Accepted,
        meta: &ListMeta,
        objects: Found<'_, Box<dyn Object>>,
    ) -> Result<HttpResponse, StatusError> {
        match accepted.shape {
            Shape::Object => whole_list(request, endpoint, accepted.format, meta, objects).await,
            Shape::Table(version) => {
                let writer = self.table_writer(request, &endpoint.columns, accepted, version)?;
                let out = table(endpoint, &writer, meta, objects).await?;
                Ok(respond::long_json(request.rendering(accepted.format), 200, out).await)
            }
            Shape::PartialMetadataList(version) => {
                let mut found = objects.map(|object| object.map(|mut object| std::mem::take(object.meta_mut())));
                metadata_list(request, endpoint, (accepted.format, version), meta, &mut found).await
            }
            Shape::PartialMetadata(_) => {
                let found = match endpoint.resource.is_custom() {
                    true => "*unstructured.UnstructuredList".to_owned(),
                    false => internal_type(&endpoint.kind.group, &endpoint.kind.list_kind),
                };
                Err(unfit(format!(
                    "you requested PartialObjectMetadata, but the requested object is a list ({found})"
                )))
            }
        }
    }

    fn table_writer<'a>(
        &self,
        request: &Request,
        columns: &'a TableColumns,
        accepted: Accepted,
        version: MetaVersion,
    ) -> Result<TableWriter<'a>, StatusError> {
        Ok(TableWriter {
            columns,
            include: include_object(request, accepted)?,
            headers: true,
            api_version: version.api_version(),
            now: self.now(),
        })
    }
}

/// A Table of hub objects.
async fn table(
    endpoint: &Endpoint,
    writer: &TableWriter<'_>,
    meta: &ListMeta,
    objects: Found<'_, Box<dyn Object>>,
) -> Result<Vec<u8>, StatusError> {
    let versioned = needs_version(writer.columns, writer.include);
    let mut out = Vec::with_capacity(4096);
    writer.begin(meta, &mut out);
    let mut slices = Slices::begin();
    for object in objects {
        writer.row(&Presented::new(endpoint, object?, versioned)?.row(), &mut out);
        slices.between().await;
    }
    writer.end(&mut out);
    Ok(out)
}

/// Metadata of the list that one object makes.
fn single(metadata: &ObjectMeta) -> ListMeta {
    ListMeta {
        resource_version: metadata.resource_version.clone(),
        ..ListMeta::default()
    }
}

pub(super) fn metadata_of(object: &dyn Kind) -> Option<&ObjectMeta> {
    let (index, _) = object.desc().field("metadata")?;
    match object.get(index) {
        Value::Message(metadata) => metadata.as_any().downcast_ref(),
        _ => None,
    }
}

fn metadata_response(
    request: &Request,
    format: Format,
    version: MetaVersion,
    code: u16,
    metadata: &ObjectMeta,
) -> HttpResponse {
    let rendering = request.rendering(format);
    let text = || {
        let mut out = Vec::with_capacity(512);
        write_partial_metadata(metadata, version.api_version(), &mut out);
        out
    };
    if format == Format::Protobuf {
        let mut out = Vec::with_capacity(512);
        write_metadata(metadata, &mut out);
        let body = protobuf::wrap(version.api_version(), "PartialObjectMetadata", &out);
        return respond::protobuf_bytes(rendering, code, body, text);
    }
    respond::json_bytes(rendering, code, text())
}

async fn whole_list(
    request: &Request,
    endpoint: &Endpoint,
    format: Format,
    meta: &ListMeta,
    objects: Found<'_, Box<dyn Object>>,
) -> Result<HttpResponse, StatusError> {
    let kind = &endpoint.kind;
    let version = api_version(&kind.group, &kind.version);
    let rendering = request.rendering(format);
    let is_protobuf = format == Format::Protobuf;
    let wants_text = !is_protobuf || rendering.recording.objects();
    let (mut text, mut raw, mut part) = (Vec::new(), Vec::new(), Vec::new());
    begin_list_json(&version, &kind.list_kind, &metadata_json(endpoint, meta), &mut text);
    begin_list_protobuf(meta, &mut raw);
    let (mut slices, mut empty) = (Slices::begin(), true);
    for object in objects {
        let object = endpoint.resource.from_hub(kind, object?)?;
        if wants_text {
            text.extend_from_slice(if empty { b"" } else { b"," });
            json::write_item(&*object, &mut text);
        }
        if is_protobuf {
            part.clear();
            protobuf::write_message(object.as_reflect(), &mut part);
            protobuf::write_tag_bytes(LIST_ITEMS, &part, &mut raw);
        }
        empty = false;
        slices.between().await;
    }
    text.extend_from_slice(b"]}");
    if is_protobuf {
        let body = protobuf::wrap(&version, &kind.list_kind, &raw);
        return Ok(respond::long_protobuf(rendering, 200, body, || text).await);
    }
    Ok(respond::long_json(rendering, 200, text).await)
}

/// What a list shows, one after the other, so that few are in memory at once.
type Found<'a, T> = &'a mut dyn Iterator<Item = Result<T, StatusError>>;

/// A list of objects' metadata (of the hub version).
pub(super) async fn metadata_list(
    request: &Request,
    endpoint: &Endpoint,
    (format, version): (Format, MetaVersion),
    meta: &ListMeta,
    found: Found<'_, ObjectMeta>,
) -> Result<HttpResponse, StatusError> {
    const KIND: &str = "PartialObjectMetadataList";
    let (rendering, version) = (request.rendering(format), version.api_version());
    let hidden = endpoint.resource.strategy.versioned_annotations();
    let is_protobuf = format == Format::Protobuf;
    let wants_text = !is_protobuf || rendering.recording.objects();
    let (mut text, mut raw) = (Vec::new(), Vec::new());
    let mut list_meta = Vec::new();
    json::write(meta, &mut list_meta);
    begin_list_json(version, KIND, &list_meta, &mut text);
    begin_list_protobuf(meta, &mut raw);
    let (mut part, mut empty) = (Vec::new(), true);
    let mut slices = Slices::begin();
    for metadata in found {
        slices.between().await;
        let mut metadata = metadata?;
        for name in hidden {
            metadata.annotations.remove(*name);
        }
        if wants_text {
            text.extend_from_slice(if empty { b"" } else { b"," });
            write_partial_metadata(&metadata, version, &mut text);
        }
        if is_protobuf {
            part.clear();
            write_metadata(&metadata, &mut part);
            protobuf::write_tag_bytes(LIST_ITEMS, &part, &mut raw);
        }
        empty = false;
    }
    // Alone among lists this one has null for no items.
    if empty {
        text.truncate(text.len() - b"[".len());
        text.extend_from_slice(b"null}");
    } else {
        text.extend_from_slice(b"]}");
    }
    if is_protobuf {
        let body = protobuf::wrap(version, KIND, &raw);
        return Ok(respond::long_protobuf(rendering, 200, body, || text).await);
    }
    Ok(respond::long_json(rendering, 200, text).await)
}

fn no_list(group: &str, kind: &str) -> StatusError {
    let found = internal_type(group, kind);
    unfit(format!(
        "you requested PartialObjectMetadataList, but the requested object is not a list ({found})"
    ))
}

fn unfit(message: String) -> StatusError {
    StatusError::new(406, reason::NOT_ACCEPTABLE, message)
}

/// What kube-apiserver calls the type of a kind's hub version: clients see its name in errors.
fn internal_type(group: &str, kind: &str) -> String {
    let package = match group {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        group => group.split('.').next().unwrap_or(group),
    };
    format!("*{package}.{kind}")
}

/// Everything up to the first item.
fn begin_list_json(version: &str, kind: &str, meta: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"apiVersion\":\"");
    out.extend_from_slice(version.as_bytes());
    out.extend_from_slice(b"\",\"metadata\":");
    out.extend_from_slice(meta);
    out.extend_from_slice(b",\"items\":[");
}

/// The metadata of a list of whole objects. That of custom resources says that it does not go on.
pub(super) fn metadata_json(endpoint: &Endpoint, meta: &ListMeta) -> Vec<u8> {
    let mut out = Vec::new();
    json::write(meta, &mut out);
    if endpoint.resource.is_custom() && meta.r#continue.is_empty() {
        let separator: &[u8] = if out == b"{}" { b"" } else { b"," };
        out = [b"{\"continue\":\"\"", separator, out.get(1..).unwrap_or_default()].concat();
    }
    out
}

fn begin_list_protobuf(meta: &ListMeta, out: &mut Vec<u8>) {
    let mut part = Vec::new();
    protobuf::write_message(meta, &mut part);
    protobuf::write_tag_bytes(LIST_METADATA, &part, out);
}

/// PartialObjectMetadata in protobuf.
pub(super) fn write_metadata(meta: &ObjectMeta, out: &mut Vec<u8>) {
    let mut part = Vec::new();
    protobuf::write_message(meta, &mut part);
    write_partial_protobuf(&part, out);
}
