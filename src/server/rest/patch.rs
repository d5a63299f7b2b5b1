//! PATCH of an object or of one of its subresources.

use actix_web::HttpResponse;
use actix_web::http::header;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::json;
use keelson_machinery::managed;
use keelson_machinery::object::Object;
use keelson_machinery::patch::{self, json::JsonPatch};
use keelson_machinery::scheme::SubresourceDesc;
use keelson_machinery::status::StatusError;

use super::options::{FieldValidation, WriteOptions, Writing};
use super::request::Request;
use super::update::{check_name, part};
use super::{Rest, namespace};
use crate::admission::Operation;
use crate::negotiate::Offer;
use crate::registry::Endpoint;
use crate::registry::write::UpdateRequest;

/// The kinds of patch; their content types are compared in their exact case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PatchType {
    Json,
    Merge,
    Strategic,
}

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

impl PatchType {
    pub(super) fn of(request: &Request) -> Result<PatchType, StatusError> {
        let content_type = request.header(&header::CONTENT_TYPE).unwrap_or_default();
        match content_type.split(';').next().unwrap_or_default().trim() {
            JSON_PATCH => Ok(PatchType::Json),
            MERGE_PATCH => Ok(PatchType::Merge),
            STRATEGIC_PATCH => Ok(PatchType::Strategic),
            // The words of the router, which looks at the content type before any handler does.
            _ => Err(StatusError::generic(415, "415: Unsupported Media Type")),
        }
    }
}

impl Rest {
    pub(super) async fn patch(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        subresource: Option<&'static SubresourceDesc>,
    ) -> Result<HttpResponse, StatusError> {
        let accepted = request.negotiate(Offer::Objects)?;
        let patch_type = PatchType::of(request)?;
        let options = WriteOptions::parse(&request.query, Writing::Patch)?;
        let body = request.body().await?;
        let context = request.context(endpoint, self.now(), options.dry_run);
        let name = request.info.name.as_str();
        self.admission
            .admit(
                &self.registry,
                endpoint,
                Operation::Update,
                namespace(request, endpoint),
                name,
            )
            .await?;
        let wanted = UpdateRequest {
            name,
            part: part(subresource),
            may_create: false,
            uid_is_precondition: false,
        };
        let before = request.warnings.borrow().len();
        let mut updater = |current: Option<&dyn Object>| {
            let current = current.ok_or_else(|| endpoint.resource.not_found(name))?;
            let (mut object, problems) = patched(endpoint, current, patch_type, &body, options.field_validation)?;
            // What an attempt before this one warned of is said again.
            request.warnings.borrow_mut().truncate(before);
            request.judge(options.field_validation, problems)?;
            check_name(request, endpoint, &mut *object)?;
            endpoint.resource.apply_defaults(endpoint.kind, &mut *object);
            endpoint.resource.to_hub(endpoint.kind, object)
        };
        let updated = endpoint.resource.update(&context, &wanted, &mut updater).await?;
        self.object_response(request, endpoint, accepted, 200, updated.object)
    }
}

/// The current object in the request's version with the patch applied, and what strict decoding says of patch and result.
fn patched(
    endpoint: &Endpoint,
    current: &dyn Object,
    patch_type: PatchType,
    body: &[u8],
    strictness: FieldValidation,
) -> Result<(Box<dyn Object>, Vec<String>), StatusError> {
    let strict = strictness != FieldValidation::Ignore;
    let versioned = endpoint.resource.from_hub(endpoint.kind, current.clone_object())?;
    let document = json::to_vec(&*versioned);
    let (patched, mut problems) = apply(endpoint, patch_type, &document, body, strict)?;
    let mut object = (endpoint.kind.new)();
    let named = json::type_meta(&patched).map_err(|e| unfit(&patched, &e.to_string()))?;
    if !named.kind.is_empty() && named.kind != endpoint.kind.kind {
        let why = format!("no kind {:?} is expected here", named.kind);
        return Err(unfit(&patched, &why));
    }
    let found = json::read(&patched, object.as_reflect_mut()).map_err(|e| unfit(&patched, &e.to_string()))?;
    managed::mark_reset(&patched, object.as_reflect_mut());
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    if strictness == FieldValidation::Strict && !found.is_empty() {
        return Err(unfit(&patched, &format!("strict decoding error: {}", found.join(", "))));
    }
    problems.extend(found);
    Ok((object, problems))
}

/// The patched object is none of its kind; the answer shows it whole.
pub(super) fn unfit(patched: &[u8], why: &str) -> StatusError {
    let mut errors = ErrorList::new();
    let shown = String::from_utf8_lossy(patched).into_owned();
    errors.push(FieldError::invalid(&Path::new("patch"), shown, why));
    StatusError::invalid("", "", "", &errors)
}

/// Applies a patch to JSON text; with `strict` also tells of keys that stand twice in it.
pub(super) fn apply(
    endpoint: &Endpoint,
    patch_type: PatchType,
    document: &[u8],
    body: &[u8],
    strict: bool,
) -> Result<(Vec<u8>, Vec<String>), StatusError> {
    match patch_type {
        PatchType::Json => {
            let (patch, problems) = JsonPatch::decode(body, strict)?;
            Ok((patch.apply(document)?, problems))
        }
        PatchType::Merge => patch::merge::apply(document, body, strict),
        PatchType::Strategic => patch::strategic::apply(document, body, (endpoint.kind.message)(), strict),
    }
}
