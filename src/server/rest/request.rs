//! A request on its way through the REST handlers.

use std::cell::RefCell;
use std::rc::Rc;

use actix_web::http::header::{self, HeaderMap};
use actix_web::web::{BytesMut, Payload};
use bytes::Bytes;
use futures_util::StreamExt;
use keelson_machinery::json;
use keelson_machinery::managed::{self, Writer};
use keelson_machinery::object::{Gvk, Kind, Object, api_version};
use keelson_machinery::protobuf;
use keelson_machinery::scheme::KindDesc;
use keelson_machinery::status::StatusError;
use keelson_machinery::time::Time;
use keelson_machinery::yaml;

use super::options::FieldValidation;
use super::pretty;
use crate::compress;
use crate::negotiate::{self, Accepted, Format, Offer};
use crate::registry::managed::{RequestWriter, Tracking};
use crate::registry::{Context, Endpoint, Registry};
use crate::request_info::{Query, RequestInfo};
use crate::respond::{Rendering, header_text};
use crate::user::User;

/// Largest request body, in bytes, as in kube-apiserver.
pub const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// A request whose sender is known and allowed to do what it asks.
pub struct Request {
    pub info: Rc<RequestInfo>,
    pub query: Query,
    pub headers: HeaderMap,
    pub user: Rc<User>,
    pub payload: RefCell<Option<Payload>>,
    /// Texts for `Warning` headers.
    pub warnings: RefCell<Vec<String>>,
}

impl Request {
    pub fn negotiate(&self, offer: Offer) -> Result<Accepted, StatusError> {
        negotiate::negotiate(header_text(&self.headers, &header::ACCEPT), offer)
    }

    pub fn rendering(&self, format: Format) -> Rendering {
        Rendering {
            format,
            pretty: pretty::wanted(&self.headers, &self.query),
            gzip: compress::accepted(&self.headers),
        }
    }

    pub fn header(&self, name: &header::HeaderName) -> Option<&str> {
        header_text(&self.headers, name)
    }

    pub fn warn(&self, text: impl Into<String>) {
        self.warnings.borrow_mut().push(text.into());
    }

    /// What strategies may know.
    pub fn context(&self, endpoint: &Endpoint, now: Time, dry_run: bool) -> Context {
        let namespace = if endpoint.kind.namespaced {
            self.info.namespace.clone()
        } else {
            String::new()
        };
        Context {
            now,
            namespace,
            user: (*self.user).clone(),
            dry_run,
            tracking: Tracking::Update(self.writer(endpoint, now)),
        }
    }

    /// Who writes: the `fieldManager` of the query, or the client program.
    pub fn writer(&self, endpoint: &Endpoint, now: Time) -> RequestWriter {
        let named = self.query.get("fieldManager").filter(|name| !name.is_empty());
        let manager = named.map_or_else(
            || managed::manager_of_agent(self.header(&header::USER_AGENT).unwrap_or_default()),
            str::to_owned,
        );
        let kind = endpoint.kind;
        RequestWriter {
            kind,
            writer: Writer {
                manager,
                api_version: api_version(kind.group, kind.version),
                subresource: self.info.subresource.clone(),
                now: Some(now.truncate_to_seconds()),
            },
        }
    }

    /// The whole body; 413 above the limit.
    pub async fn body(&self) -> Result<Bytes, StatusError> {
        // The handler of the verb reads it once; a second reader would find nothing.
        let Some(mut payload) = self.payload.take() else {
            return Ok(Bytes::new());
        };
        let mut body = BytesMut::new();
        while let Some(chunk) = payload.next().await {
            let chunk = chunk.map_err(|e| StatusError::bad_request(e.to_string()))?;
            if body.len() + chunk.len() > MAX_BODY_BYTES {
                return Err(StatusError::request_entity_too_large(MAX_BODY_BYTES));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }

    /// The format of the body; 415 for one that is not known.
    pub fn body_format(&self) -> Result<Format, StatusError> {
        Format::of_body(self.header(&header::CONTENT_TYPE)).ok_or_else(|| {
            StatusError::unsupported_media_type(&[
                Format::Json.media_type(),
                Format::Yaml.media_type(),
                Format::Protobuf.media_type(),
            ])
        })
    }

    /// Decodes the body as an object of `kind`, with defaults not yet applied.
    pub async fn object(
        &self,
        registry: &Registry,
        kind: &KindDesc,
        validation: FieldValidation,
    ) -> Result<Box<dyn Object>, StatusError> {
        let format = self.body_format()?;
        let body = self.body().await?;
        let (object, problems) = decode_object(registry, kind, format, &body, validation)?;
        self.judge(validation, problems)?;
        Ok(object)
    }

    /// Decodes the body as a `kind` that need not be a resource, into an empty message of it.
    pub async fn kind(
        &self,
        registry: &Registry,
        kind: Gvk,
        validation: FieldValidation,
        message: &mut dyn Kind,
    ) -> Result<(), StatusError> {
        let format = self.body_format()?;
        let body = self.body().await?;
        let problems = decode_kind(registry, kind, format, &body, validation, message)?;
        self.judge(validation, problems)
    }

    /// Unknown and repeated fields: nothing, warnings, or a 400.
    pub fn judge(&self, validation: FieldValidation, problems: Vec<String>) -> Result<(), StatusError> {
        match validation {
            FieldValidation::Ignore => Ok(()),
            FieldValidation::Warn => {
                self.warnings.borrow_mut().extend(problems);
                Ok(())
            }
            FieldValidation::Strict if problems.is_empty() => Ok(()),
            FieldValidation::Strict => {
                let text = problems.join(", ");
                Err(StatusError::bad_request(format!("strict decoding error: {text}")))
            }
        }
    }
}

/// An object and what strict decoding has against its text.
pub fn decode_object(
    registry: &Registry,
    kind: &KindDesc,
    format: Format,
    body: &[u8],
    validation: FieldValidation,
) -> Result<(Box<dyn Object>, Vec<String>), StatusError> {
    let mut object = (kind.new)();
    let problems = decode_kind(registry, kind.gvk(), format, body, validation, &mut *object)?;
    Ok((object, problems))
}

/// Reads a body that must be of `kind` into an empty message of it; what strict decoding has against its text.
pub fn decode_kind(
    registry: &Registry,
    kind: Gvk,
    format: Format,
    body: &[u8],
    validation: FieldValidation,
    object: &mut dyn Kind,
) -> Result<Vec<String>, StatusError> {
    match format {
        Format::Protobuf => {
            let unknown = protobuf::decode_envelope(body).map_err(|e| unrecognized(kind, &e.to_string(), body))?;
            check_type(registry, kind, &unknown.api_version, &unknown.kind)?;
            protobuf::read_message(unknown.raw, object.as_reflect_mut())
                .map_err(|e| unhandled(kind, &unknown.kind, &unknown.api_version, &e.to_string()))?;
            Ok(Vec::new())
        }
        Format::Json => decode_json(registry, kind, body, object),
        Format::Yaml => {
            let (json, repeated) = yaml::to_json_strict(body).map_err(|e| unrecognized(kind, &e.to_string(), body))?;
            let mut problems = yaml_problems(repeated, validation);
            problems.extend(decode_json(registry, kind, &json, object)?);
            Ok(problems)
        }
    }
}

/// Repeated keys: a warning for each, or all in the one text that a strict decoder gives.
fn yaml_problems(repeated: Option<String>, validation: FieldValidation) -> Vec<String> {
    match (repeated, validation) {
        (None, _) => Vec::new(),
        (Some(text), FieldValidation::Strict) => vec![text],
        (Some(text), _) => text.lines().skip(1).map(|line| line.trim().to_owned()).collect(),
    }
}

fn decode_json(registry: &Registry, kind: Gvk, body: &[u8], object: &mut dyn Kind) -> Result<Vec<String>, StatusError> {
    let named = json::type_meta(body)
        .map_err(|e| unrecognized(kind, &format!("couldn't get version/kind; json parse error: {e}"), body))?;
    check_type(registry, kind, &named.api_version, &named.kind)?;
    let problems = json::read(body, object.as_reflect_mut())
        .map_err(|e| unhandled(kind, &named.kind, &named.api_version, &e.to_string()))?;
    managed::mark_reset(body, object.as_reflect_mut());
    Ok(problems.iter().map(ToString::to_string).collect())
}

/// apiVersion and kind may be missing; what is there must be what the path says.
fn check_type(registry: &Registry, want: Gvk, api_version: &str, kind: &str) -> Result<(), StatusError> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    if !kind.is_empty() && kind != want.kind {
        let version = if version.is_empty() { want.version } else { version };
        let why = match registry.knows(if api_version.is_empty() { want.group } else { group }, version, kind) {
            true => format!(
                "converting ({version}.{kind}) to ({}.{}): unknown conversion",
                want.version, want.kind
            ),
            false => format!("no kind {kind:?} is registered for version {api_version:?} in scheme"),
        };
        return Err(unhandled(want, kind, api_version, &why));
    }
    if !api_version.is_empty() && (group != want.group || version != want.version) {
        return Err(StatusError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            keelson_machinery::object::api_version(want.group, want.version)
        )));
    }
    Ok(())
}

fn unhandled(want: Gvk, kind: &str, api_version: &str, why: &str) -> StatusError {
    let kind = if kind.is_empty() { want.kind } else { kind };
    let version = api_version
        .rsplit('/')
        .next()
        .filter(|v| !v.is_empty())
        .unwrap_or(want.version);
    StatusError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {}: {why}",
        want.kind
    ))
}

/// Bytes of a refused body that the error shows.
const SHOWN_BYTES: usize = 30;

fn unrecognized(want: Gvk, why: &str, body: &[u8]) -> StatusError {
    StatusError::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why} ({})",
        want.kind,
        summary(body)
    ))
}

fn summary(body: &[u8]) -> String {
    if body.is_empty() {
        return "<empty>".into();
    }
    let shown: String = body.iter().take(SHOWN_BYTES).map(|b| format!("{b:02x}")).collect();
    if body.len() > SHOWN_BYTES {
        format!("{shown} ...")
    } else {
        shown
    }
}
