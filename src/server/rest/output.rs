//! Objects and lists on their way out: converted, shaped, written.

use actix_web::HttpResponse;
use keelson_machinery::json;
use keelson_machinery::meta::v1::{ListMeta, ObjectMeta};
use keelson_machinery::object::{Object, api_version};
use keelson_machinery::protobuf;
use keelson_machinery::status::{StatusError, reason};
use keelson_machinery::table::{IncludeObject, TableWriter, write_partial_metadata};

use super::Rest;
use super::request::Request;
use crate::negotiate::{Accepted, Format, MetaVersion, Shape};
use crate::registry::Endpoint;
use crate::respond;

/// Numbers of protobuf fields in every list kind, and in PartialObjectMetadata.
const LIST_METADATA: u32 = 1;
const LIST_ITEMS: u32 = 2;

/// `?includeObject=` of a Table request.
pub(super) fn include_object(request: &Request) -> Result<IncludeObject, StatusError> {
    let text = request.query.get("includeObject").unwrap_or_default();
    IncludeObject::parse(text)
        .ok_or_else(|| StatusError::bad_request(format!("unrecognized includeObject value: {text:?}")))
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
        let object = endpoint.resource.from_hub(endpoint.kind, object)?;
        let response = match accepted.shape {
            Shape::Object => respond::kind(request.rendering(accepted.format), code, &*object),
            Shape::Table(version) => {
                let list_meta = ListMeta {
                    resource_version: object.meta().resource_version.clone(),
                    ..ListMeta::default()
                };
                self.table_response(request, endpoint, accepted.format, version, &list_meta, &[object], code)?
            }
            Shape::PartialMetadata(version) => {
                let mut out = Vec::with_capacity(512);
                match accepted.format {
                    Format::Protobuf => {
                        write_partial_protobuf(object.meta(), &mut out);
                        let body = protobuf::wrap(version.api_version(), "PartialObjectMetadata", &out);
                        respond::bytes(request.rendering(accepted.format), code, body)
                    }
                    _ => {
                        write_partial_metadata(object.meta(), version.api_version(), &mut out);
                        respond::json_bytes(request.rendering(accepted.format), code, out)
                    }
                }
            }
            Shape::PartialMetadataList(_) => {
                let found = internal_type(endpoint.kind.group, endpoint.kind.kind);
                return Err(unfit(format!(
                    "you requested PartialObjectMetadataList, but the requested object is not a list ({found})"
                )));
            }
        };
        Ok(response)
    }

    /// A list of hub objects, as the request wants it.
    pub(super) fn list_response(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        accepted: Accepted,
        meta: &ListMeta,
        objects: Vec<Box<dyn Object>>,
    ) -> Result<HttpResponse, StatusError> {
        let kind = endpoint.kind;
        let version = api_version(kind.group, kind.version);
        let objects = objects
            .into_iter()
            .map(|o| endpoint.resource.from_hub(kind, o))
            .collect::<Result<Vec<_>, StatusError>>()?;
        let rendering = request.rendering(accepted.format);
        let response = match accepted.shape {
            Shape::Object if accepted.format == Format::Protobuf => {
                let raw = list_protobuf(meta, &objects, |o, out| protobuf::write_message(o.as_reflect(), out));
                respond::bytes(rendering, 200, protobuf::wrap(&version, kind.list_kind, &raw))
            }
            Shape::Object => {
                let out = list_json(&version, kind.list_kind, meta, &objects, |o, out| {
                    json::write(o.as_reflect(), out)
                });
                respond::json_bytes(rendering, 200, out)
            }
            Shape::Table(version) => {
                self.table_response(request, endpoint, accepted.format, version, meta, &objects, 200)?
            }
            Shape::PartialMetadataList(version) if accepted.format == Format::Protobuf => {
                let raw = list_protobuf(meta, &objects, |o, out| write_partial_protobuf(o.meta(), out));
                respond::bytes(
                    rendering,
                    200,
                    protobuf::wrap(version.api_version(), "PartialObjectMetadataList", &raw),
                )
            }
            Shape::PartialMetadataList(version) => {
                let out = list_json(
                    version.api_version(),
                    "PartialObjectMetadataList",
                    meta,
                    &objects,
                    |o, out| {
                        write_partial_metadata(o.meta(), version.api_version(), out);
                    },
                );
                respond::json_bytes(rendering, 200, out)
            }
            Shape::PartialMetadata(_) => {
                let found = internal_type(kind.group, kind.list_kind);
                return Err(unfit(format!(
                    "you requested PartialObjectMetadata, but the requested object is a list ({found})"
                )));
            }
        };
        Ok(response)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one answer; a struct of them would be used once"
    )]
    fn table_response(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        format: Format,
        version: MetaVersion,
        meta: &ListMeta,
        objects: &[Box<dyn Object>],
        code: u16,
    ) -> Result<HttpResponse, StatusError> {
        let writer = self.table_writer(request, endpoint, version)?;
        let mut out = Vec::with_capacity(1024 + objects.len() * 256);
        writer.write_list(meta, objects.iter().map(|o| &**o), &mut out);
        Ok(respond::json_bytes(request.rendering(format), code, out))
    }

    fn table_writer<'a>(
        &self,
        request: &Request,
        endpoint: &'a Endpoint,
        version: MetaVersion,
    ) -> Result<TableWriter<'a>, StatusError> {
        Ok(TableWriter {
            columns: &endpoint.columns,
            include: include_object(request)?,
            headers: true,
            api_version: version.api_version(),
            now: self.now(),
        })
    }
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

fn list_json(
    version: &str,
    kind: &str,
    meta: &ListMeta,
    objects: &[Box<dyn Object>],
    item: impl Fn(&dyn Object, &mut Vec<u8>),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + objects.len() * 512);
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"apiVersion\":\"");
    out.extend_from_slice(version.as_bytes());
    out.extend_from_slice(b"\",\"metadata\":");
    json::write(meta, &mut out);
    out.extend_from_slice(b",\"items\":[");
    for (i, object) in objects.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        item(&**object, &mut out);
    }
    out.extend_from_slice(b"]}");
    out
}

fn list_protobuf(meta: &ListMeta, objects: &[Box<dyn Object>], item: impl Fn(&dyn Object, &mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + objects.len() * 256);
    let mut part = Vec::new();
    protobuf::write_message(meta, &mut part);
    protobuf::write_tag_bytes(LIST_METADATA, &part, &mut out);
    for object in objects {
        part.clear();
        item(&**object, &mut part);
        protobuf::write_tag_bytes(LIST_ITEMS, &part, &mut out);
    }
    out
}

/// PartialObjectMetadata in protobuf: its one field.
pub(super) fn write_partial_protobuf(meta: &ObjectMeta, out: &mut Vec<u8>) {
    let mut part = Vec::new();
    protobuf::write_message(meta, &mut part);
    protobuf::write_tag_bytes(LIST_METADATA, &part, out);
}
