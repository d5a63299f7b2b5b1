//! PATCH with an apply document: server-side apply.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::HttpResponse;
use actix_web::http::header;
use bytes::Bytes;
use keelson_base::cooperative::aside;
use keelson_machinery::apply::{Document, DocumentError, read_document};
use keelson_machinery::budget::Budget;
use keelson_machinery::decode::{DecodeError, TypeMeta};
use keelson_machinery::json;
use keelson_machinery::managedfields;
use keelson_machinery::object::{Gvk, Kind, Object};
use keelson_machinery::scheme::SubresourceDesc;
use keelson_machinery::status::StatusError;
use keelson_machinery::yaml;
use keelson_registry::admission::Options;
use keelson_registry::apply::{Applying, document_name, gvk_text};
use keelson_registry::managed::Tracking;
use keelson_registry::write::{Part, UpdateRequest};
use keelson_registry::{Context, Endpoint};

use super::options::{FieldValidation, WriteOptions, Writing};
use super::place::{check_name, check_namespace};
use super::{Rest, named, write_options};
use crate::negotiate::Offer;
use crate::request::{LARGE_BODY_BYTES, Request};

const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// Whether a PATCH is an apply.
pub(super) fn is_apply(request: &Request) -> bool {
    let content_type = request.header(&header::CONTENT_TYPE).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim() == APPLY_PATCH
}

/// The body of an apply request: a document as JSON, of the type it says.
pub(super) struct ApplyBody {
    pub text: Vec<u8>,
    pub document: Document,
    pub repeated: Repeated,
}

/// What is said of keys that stand twice, when the document has been applied.
pub(super) enum Repeated {
    /// Nothing.
    Passed,
    Warnings(Vec<String>),
    Refused(StatusError),
}

impl Repeated {
    /// What the client is warned of, or why it is refused.
    fn told(self) -> (Vec<String>, Option<StatusError>) {
        match self {
            Repeated::Passed => (Vec::new(), None),
            Repeated::Warnings(warnings) => (warnings, None),
            Repeated::Refused(error) => (Vec::new(), Some(error)),
        }
    }
}

impl ApplyBody {
    /// Reads a body into an empty message of a kind.
    pub fn read(
        body: &[u8],
        want: &Gvk,
        validation: FieldValidation,
        message: &mut dyn Kind,
    ) -> Result<ApplyBody, StatusError> {
        // JSON is YAML, but read in a fraction of the time. Which keys stand twice, and where, YAML tells.
        let is_json = body.trim_ascii_start().first() == Some(&b'{') && json::validate(body).is_ok();
        if is_json && let Ok(document) = read(body, want, message)? {
            return Ok(ApplyBody {
                text: body.to_vec(),
                document,
                repeated: Repeated::Passed,
            });
        }
        let wrong = |what: &str, why: &str| StatusError::bad_request(format!("error {what} YAML: error {why}"));
        let (text, repeated) =
            yaml::to_json_strict(body).map_err(|e| wrong("decoding", &format!("converting YAML to JSON: {e}")))?;
        let repeated = match (repeated, validation) {
            (Some(repeated), FieldValidation::Strict) => {
                let why = format!("converting YAML to JSON: {repeated}");
                Repeated::Refused(wrong("strict decoding", &why))
            }
            (Some(repeated), FieldValidation::Warn) => {
                let lines = repeated.lines().skip(1).map(|line| line.trim().to_owned());
                Repeated::Warnings(lines.collect())
            }
            _ => Repeated::Passed,
        };
        let found = match text.first() {
            Some(b'{') => None,
            Some(b'n') | None => return Err(invalid_type(&TypeMeta::default())),
            Some(b'[') => Some("array"),
            Some(b'"') => Some("string"),
            Some(b't' | b'f') => Some("bool"),
            Some(_) => Some("number"),
        };
        if let Some(found) = found {
            let why = format!(
                "unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type \
                 map[string]interface {{}}"
            );
            return Err(wrong("decoding", &why));
        }
        match read(&text, want, message)? {
            Ok(document) => Ok(ApplyBody {
                text,
                document,
                repeated,
            }),
            Err(Duplicate) => Err(StatusError::internal_error("a document without repeated keys has them")),
        }
    }
}

struct Duplicate;

/// Reads JSON of an object.
fn read(text: &[u8], want: &Gvk, message: &mut dyn Kind) -> Result<Result<Document, Duplicate>, StatusError> {
    let named = json::type_texts(text);
    // A slash before the version of the group without a name changes nothing.
    let version = named.api_version.strip_prefix('/').unwrap_or(&named.api_version);
    if named.kind != want.kind || version != want.api_version() {
        return Err(invalid_type(&named));
    }
    match read_document(text, message.as_reflect_mut()) {
        Ok(document) => {
            managedfields::mark_reset(text, message.as_reflect_mut());
            Ok(Ok(document))
        }
        Err(DocumentError::Duplicate) => Ok(Err(Duplicate)),
        Err(DocumentError::TooLarge) => Err(StatusError::entity_too_large(DecodeError::TooLarge)),
        Err(DocumentError::Schema(why)) => {
            let mut named = message.clone_message();
            // For its name alone; whatever else is wrong with it has been said. Where it becomes too large it has none.
            let _ = json::read_within(text, &mut *named, &Budget::of_request());
            let name = document_name(&*named, want);
            Err(StatusError::unknown(format!(
                "failed to create typed patch object ({name}): {why}"
            )))
        }
    }
}

fn invalid_type(named: &TypeMeta) -> StatusError {
    let TypeMeta { api_version, kind, .. } = named;
    // What is no version of a group names no kind either.
    let text = match api_version.matches('/').count() {
        0 | 1 => gvk_text(api_version, kind),
        _ => gvk_text("", ""),
    };
    StatusError::bad_request(format!("invalid object type: {text}"))
}

/// The body of an apply, and the object that it is without defaults. A long one is read on another thread.
async fn document(
    endpoint: &Endpoint,
    body: Bytes,
    validation: FieldValidation,
) -> Result<(ApplyBody, Box<dyn Object>), StatusError> {
    let (gvk, mut applied) = (endpoint.kind.gvk(), endpoint.kind.new_object());
    let is_long = body.len() > LARGE_BODY_BYTES;
    let read = move || {
        let body = ApplyBody::read(&body, &gvk, validation, &mut *applied)?;
        Ok::<_, StatusError>((body, applied))
    };
    match is_long {
        false => read(),
        true => aside(read).await,
    }
}

impl Rest {
    pub(super) async fn apply(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        subresource: Option<&SubresourceDesc>,
    ) -> Result<HttpResponse, StatusError> {
        let accepted = request.negotiate(Offer::Objects)?;
        let options = WriteOptions::parse(&request.query, Writing::Apply)?;
        let body = request.body().await?;
        request.audit.sent_patch(&body);
        let document = document(endpoint, body, options.field_validation).await;
        if let (Err(_), Some(_)) = (&document, subresource) {
            // Nothing is made through a subresource: that there is no object is said first.
            let (namespace, name) = (&request.info.namespace, &request.info.name);
            self.verbs.get(&endpoint.resource, namespace, name, None).await?;
        }
        let (body, applied) = document?;
        if !applied.meta().managed_fields.is_empty() {
            return Err(StatusError::bad_request("metadata.managedFields must be nil"));
        }
        let (warnings, refused) = body.repeated.told();
        if let Err(error) = check_place(request, endpoint, &*applied) {
            request.warnings.borrow_mut().extend(warnings);
            return Err(refused.unwrap_or(error));
        }
        let writer = request.writer(endpoint, self.now());
        let context = Context {
            tracking: Tracking::Done,
            ..self.context(request, endpoint, options.dry_run)
        };
        let part = Part::of(subresource);
        let applying = Arc::new(Applying {
            ignored: Applying::ignored(&endpoint.resource, part),
            resource: endpoint.resource.clone(),
            kind: writer.kind,
            writer: writer.writer,
            force: request.query.flag("force"),
            text: body.text,
            document: body.document,
            applied,
            refused,
            made: AtomicBool::new(false),
        });
        let wanted = UpdateRequest {
            creation: subresource.is_none().then_some(&*request.info),
            uid_is_precondition: false,
            ..UpdateRequest::of(part)
        };
        let options = Options::Patch(write_options(request));
        let target = named(request, endpoint, subresource, &context, options);
        let updated = self.verbs.apply(&target, &wanted, &applying).await;
        if applying.made.load(Ordering::Relaxed) {
            request.warnings.borrow_mut().extend(warnings);
        }
        let updated = updated?;
        let code = if updated.created { 201 } else { 200 };
        self.object_response(request, endpoint, accepted, code, updated.object)
    }
}

/// The document must be of the object that the path names.
fn check_place(request: &Request, endpoint: &Endpoint, applied: &dyn Object) -> Result<(), StatusError> {
    let meta = applied.meta();
    check_namespace(request, endpoint, &meta.namespace)?;
    match meta.name.is_empty() {
        true => Ok(()),
        false => check_name(&request.info.name, &meta.name),
    }
}
