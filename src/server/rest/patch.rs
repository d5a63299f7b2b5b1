//! PATCH of an object or of one of its subresources.

use actix_web::HttpResponse;
use actix_web::http::header;
use bytes::Bytes;
use keelson_base::cooperative::aside;
use keelson_machinery::budget::Budget;
use keelson_machinery::decode::TypeMeta;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::fieldset::FieldSet;
use keelson_machinery::json;
use keelson_machinery::managedfields;
use keelson_machinery::object::{Object, not_registered};
use keelson_machinery::patch::{self, Reach, json::JsonPatch};
use keelson_machinery::scheme::{KindRef, SubresourceDesc};
use keelson_machinery::status::StatusError;
use keelson_registry::admission::Options;
use keelson_registry::outcome::{Outcome, later, now};
use keelson_registry::owners::{OwnersRead, drop_repeated_owners};
use keelson_registry::write::{Part, UpdateRequest, Updater};
use keelson_registry::{Endpoint, Registry, Target};

use super::decode::{DocumentFault, TypeFault, check_type, strict_error};
use super::options::{FieldValidation, WriteOptions, Writing};
use super::update::check_name;
use super::{Rest, custom, named, write_options};
use crate::negotiate::Offer;
use crate::request::{LARGE_BODY_BYTES, Request};

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

const ALL: [&str; 4] = [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, "application/apply-patch+yaml"];

impl PatchType {
    pub(super) fn of(request: &Request) -> Result<PatchType, StatusError> {
        let content_type = request.header(&header::CONTENT_TYPE).unwrap_or_default();
        match content_type.split(';').next().unwrap_or_default().trim_start() {
            JSON_PATCH => Ok(PatchType::Json),
            MERGE_PATCH => Ok(PatchType::Merge),
            STRATEGIC_PATCH => Ok(PatchType::Strategic),
            // The router takes a space before the parameters, the handler behind it does not.
            other if ALL.contains(&other.trim_end()) => Err(StatusError::unsupported_media_type(&ALL)),
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
        subresource: Option<&SubresourceDesc>,
    ) -> Result<HttpResponse, StatusError> {
        let accepted = request.negotiate(Offer::of_subresource(&request.info.subresource))?;
        let patch_type = PatchType::of(request)?;
        let options = WriteOptions::parse(&request.query, Writing::Patch)?;
        let body = request.body().await?;
        request.audit.sent_patch(&body);
        let context = self.context(request, endpoint, options.dry_run);
        let wanted = UpdateRequest {
            uid_is_precondition: false,
            ..UpdateRequest::of(Part::of(subresource))
        };
        let target = named(
            request,
            endpoint,
            subresource,
            &context,
            Options::Patch(write_options(request)),
        );
        let mut patching = Patching {
            rest: self,
            request,
            endpoint,
            target: &target,
            patch_type,
            body,
            validation: options.field_validation,
        };
        let updated = self.verbs.patch(&target, &wanted, &mut patching).await?;
        self.object_response(request, endpoint, accepted, 200, updated.object)
    }
}

/// Makes what a patch makes of the object that is there. A long patch is applied on a thread made for such work.
struct Patching<'a> {
    rest: &'a Rest,
    request: &'a Request,
    endpoint: &'a Endpoint,
    target: &'a Target<'a>,
    patch_type: PatchType,
    body: Bytes,
    validation: FieldValidation,
}

impl Updater for Patching<'_> {
    fn make<'a>(&'a mut self, current: Option<&'a dyn Object>) -> Outcome<'a, Box<dyn Object>> {
        let Some(current) = current else {
            return now(Err(self.target.resource.not_found(self.target.name)));
        };
        if self.body.len() > LARGE_BODY_BYTES {
            return later(self.made_aside(current));
        }
        let patch = (self.patch_type, &*self.body);
        let made = patched(&self.rest.registry, self.endpoint, current, patch, self.validation);
        now(made.and_then(|made| self.admitted(made)))
    }
}

impl Patching<'_> {
    async fn made_aside(&self, current: &dyn Object) -> Result<Box<dyn Object>, StatusError> {
        let (registry, endpoint) = (self.rest.registry.clone(), self.endpoint.clone());
        let (current, body) = (current.clone_object(), self.body.clone());
        let (patch_type, validation) = (self.patch_type, self.validation);
        let made = aside(move || patched(&registry, &endpoint, &*current, (patch_type, &body), validation)).await;
        self.admitted(made?)
    }

    /// The object as the hub version, if it is the one that is meant.
    fn admitted(&self, (patched, problems): (Patched, Vec<String>)) -> Result<Box<dyn Object>, StatusError> {
        let (request, endpoint) = (self.request, self.endpoint);
        let Patched {
            kind,
            mut object,
            written_empty,
            other_type,
        } = patched;
        request.written_empty.replace(written_empty);
        request.warnings.borrow_mut().extend(problems);
        check_name(request, endpoint, &mut *object)?;
        if other_type.as_ref().is_some_and(|named| named.api_version.is_empty()) {
            return Err(custom::no_version());
        }
        // A status is written into the object that is there.
        if let Some(named) = other_type.filter(|_| request.info.subresource.is_empty()) {
            let name = &object.meta().name;
            return Err(custom::other_type(endpoint, name, &named.kind, &named.api_version));
        }
        drop_repeated_owners(&request.warnings, &mut *object, OwnersRead::Admitted);
        endpoint.resource.apply_defaults_to_sent(&kind, &mut *object)?;
        endpoint.resource.to_hub(&kind, object)
    }
}

/// The object that a patch makes of the current one, as the hub version, and what strict decoding says of patch and
/// result, as far as that is to be told to the client.
fn patched(
    registry: &Registry,
    endpoint: &Endpoint,
    current: &dyn Object,
    patch: (PatchType, &[u8]),
    validation: FieldValidation,
) -> Result<(Patched, Vec<String>), StatusError> {
    let (patch_type, body) = patch;
    let versioned = || endpoint.resource.from_hub(&endpoint.kind, current.clone_object());
    let strict = validation != FieldValidation::Ignore;
    if let Some(patched) = patched_in_part(endpoint, versioned()?, patch, strict) {
        return Ok((patched, Vec::new()));
    }
    let document = json::to_vec(&*versioned()?);
    let (text, mut problems) = apply(endpoint, patch_type, &document, body, strict)?;
    let refused = |why: &str| match patch_type {
        PatchType::Strategic => unfit(
            patch::strategic::shown(body, &document, &endpoint.kind.message).as_bytes(),
            why,
        ),
        _ => unfit(&text, why),
    };
    let (mut patched, found) = match patch_type {
        PatchType::Strategic => restored(endpoint, &text),
        _ => decoded(registry, endpoint, &text),
    }
    .map_err(|fault| refused(&fault.to_string()))?;
    if !endpoint.resource.is_custom() {
        managedfields::mark_reset(&text, patched.object.as_reflect_mut());
    }
    patched.written_empty = managedfields::written_empty(&text, patched.object.as_reflect());
    problems.extend(found);
    match validation {
        FieldValidation::Ignore => Ok((patched, Vec::new())),
        FieldValidation::Strict if !problems.is_empty() => Err(refused(&strict_error(&problems))),
        _ => Ok((patched, problems)),
    }
}

/// The same, of an object in the version of the endpoint, for a patch that reaches few of its fields: the others are
/// neither written nor read. `None` where that is not the whole story: the patch reaches further, or there is something
/// to say of it.
fn patched_in_part(
    endpoint: &Endpoint,
    mut object: Box<dyn Object>,
    (patch_type, body): (PatchType, &[u8]),
    strict: bool,
) -> Option<Patched> {
    if patch_type == PatchType::Json {
        return None;
    }
    let reach = Reach::of(&*object, body)?;
    let (text, problems) = apply(endpoint, patch_type, &reach.document, body, strict).ok()?;
    reach.clear(object.as_reflect_mut());
    let found = match patch_type {
        PatchType::Strategic => json::restore(&text, object.as_reflect_mut()),
        _ => json::read_within(&text, object.as_reflect_mut(), &Budget::of_request()),
    };
    if !problems.is_empty() || !found.ok()?.is_empty() {
        return None;
    }
    if !endpoint.resource.is_custom() {
        managedfields::mark_reset(&text, object.as_reflect_mut());
    }
    let written_empty = managedfields::written_empty(&text, object.as_reflect());
    Some(Patched {
        kind: endpoint.kind.clone(),
        object,
        written_empty,
        other_type: None,
    })
}

/// An object in the version that its text names.
struct Patched {
    kind: KindRef,
    object: Box<dyn Object>,
    /// See [`managedfields::written_empty`].
    written_empty: FieldSet,
    /// What it says that it is, where that is wrong and a matter of validation.
    other_type: Option<TypeMeta>,
}

/// What a strategic merge patch has made: its type counts for nothing.
fn restored(endpoint: &Endpoint, text: &[u8]) -> Result<(Patched, Vec<String>), DocumentFault> {
    let mut object = endpoint.kind.new_object();
    let problems = json::restore(text, object.as_reflect_mut())?;
    let kind = endpoint.kind.clone();
    Ok((
        Patched {
            kind,
            object,
            written_empty: FieldSet::EMPTY,
            other_type: None,
        },
        problems.iter().map(ToString::to_string).collect(),
    ))
}

/// What another patch has made: a document, which may name another version.
fn decoded(registry: &Registry, endpoint: &Endpoint, text: &[u8]) -> Result<(Patched, Vec<String>), DocumentFault> {
    let named = json::type_meta(text).map_err(DocumentFault::TypeMeta)?;
    if endpoint.resource.is_custom() {
        return decoded_custom(endpoint, text, named);
    }
    let mut kind = &endpoint.kind;
    match check_type(registry, &kind.gvk(), &named) {
        Ok(()) => {}
        Err(TypeFault::OtherVersion(api_version)) => {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            let found = endpoint.resource.versions.iter().find(|k| k.version == version);
            kind = found.ok_or_else(|| DocumentFault::Type(not_registered(&kind.kind, &api_version)))?;
        }
        Err(TypeFault::Malformed(why) | TypeFault::Unknown(why) | TypeFault::OtherKind(why)) => {
            return Err(DocumentFault::Type(why));
        }
    }
    let mut object = kind.new_object();
    let problems = if named.api_version.is_empty() {
        // Without a version it is an object of the internal one, where no field has the name that it has in JSON.
        json::no_fields(text)
    } else {
        json::read_within(text, object.as_reflect_mut(), &Budget::of_request())
    };
    let problems = problems?;
    Ok((
        Patched {
            kind: kind.clone(),
            object,
            written_empty: FieldSet::EMPTY,
            other_type: None,
        },
        problems.iter().map(ToString::to_string).collect(),
    ))
}

/// The same of a custom resource, which is validated for what it says that it is.
fn decoded_custom(endpoint: &Endpoint, text: &[u8], named: TypeMeta) -> Result<(Patched, Vec<String>), DocumentFault> {
    if named.kind.is_empty() {
        return Err(DocumentFault::NoKind(json::lossy_text(text).to_string()));
    }
    if let Some(api_version) = Some(&named.api_version).filter(|named| named.matches('/').count() > 1) {
        return Err(DocumentFault::Type(format!(
            "unexpected GroupVersion string: {api_version}"
        )));
    }
    let kind = endpoint.kind.clone();
    let mut object = kind.new_object();
    let problems = json::read_within(text, object.as_reflect_mut(), &Budget::of_request());
    let problems = problems?;
    let is_other = named.kind != *kind.kind || named.api_version != kind.gvk().api_version();
    let patched = Patched {
        kind,
        object,
        written_empty: FieldSet::EMPTY,
        other_type: is_other.then_some(named),
    };
    Ok((patched, problems.iter().map(ToString::to_string).collect()))
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
        PatchType::Strategic => patch::strategic::apply(document, body, &endpoint.kind.message, strict),
    }
}
