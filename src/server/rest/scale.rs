//! The scale subresource: a view of replicas and selector at the paths that the definition names.

use actix_web::HttpResponse;
use keelson_machinery::decode::StrictProblem;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::json;
use keelson_machinery::jsonpath::{self, JsonPath};
use keelson_machinery::object::{Kind, Object, api_version, not_registered};
use keelson_machinery::patch;
use keelson_machinery::reflect::{Reflect, Value};
use keelson_machinery::scheme::{NameRule, SubresourceDesc};
use keelson_machinery::selector::LabelSelector;
use keelson_machinery::status::StatusError;
use keelson_machinery::validation::meta;
use keelson_registry::admission::Options;
use keelson_registry::apply::unfit as unfit_document;
use keelson_registry::managed::Tracking;
use keelson_registry::write::{Part, UpdateRequest, standard_finalizers};
use keelson_registry::{Context, Endpoint};
use serde_json::json;

use super::apply::{ApplyBody, is_apply};
use super::custom_scale::{self, Replicas};
use super::decode::{DocumentFault, Expected, TypeFault, check_type, decode_kind, strict_error};
use super::options::{FieldValidation, WriteOptions, Writing};
use super::output::metadata_of;
use super::patch::{PatchType, apply, unfit};
use super::place::{check_name, check_namespace};
use super::scaling::Scaling;
use super::{Rest, named, namespace, write_options};
use crate::negotiate::{Accepted, Format, Offer};
use crate::request::Request;

impl Rest {
    pub(super) async fn scale(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        scale: &SubresourceDesc,
        verb: &str,
    ) -> Result<HttpResponse, StatusError> {
        let accepted = request.negotiate(Offer::Objects)?;
        let name = request.info.name.as_str();
        if verb == "get" {
            let stored = endpoint.resource.get(namespace(request, endpoint), name).await?;
            if endpoint.resource.is_custom() {
                custom_scale::check_present(scale, &*stored.object)?;
            }
            return self.scale_response(request, endpoint, scale, accepted, stored.object);
        }
        let change = match verb {
            "update" => Change::Replace(
                request.body_format()?,
                WriteOptions::parse(&request.query, Writing::Update)?,
            ),
            _ if is_apply(request) => Change::Apply(WriteOptions::parse(&request.query, Writing::Apply)?),
            _ => Change::Patch(
                PatchType::of(request)?,
                WriteOptions::parse(&request.query, Writing::Patch)?,
            ),
        };
        let body = request.body().await?;
        if !matches!(change, Change::Replace(..)) {
            request.audit.sent_patch(&body);
        }
        let context = Context {
            tracking: Tracking::Done,
            ..self.context(request, endpoint, change.options().dry_run)
        };
        // What is wrong with a whole body is said before whether there is something to scale.
        let asked = match &change {
            Change::Apply(options) => {
                let (applied, text) = self.applied(scale, &body, options)?;
                Asked::Applied(applied, text)
            }
            Change::Replace(format, options) => {
                let replaced = self.replaced(request, scale, &body, (*format, options));
                let (new, problems) = replaced.map_err(|error| match endpoint.resource.is_custom() {
                    true => custom_scale::refused(scale, *format, &body, error),
                    false => error,
                })?;
                check_place(request, endpoint, &*new)?;
                Asked::Replaced(new, problems)
            }
            Change::Patch(patch_type, options) => Asked::Patched(*patch_type, options.field_validation),
        };
        let show = |object: &dyn Object| {
            let versioned = endpoint.resource.from_hub(&endpoint.kind, object.clone_object())?;
            self.view(scale, &*versioned)
        };
        let wanted = UpdateRequest {
            shown: Some(&show),
            ..UpdateRequest::of(Part::Main)
        };
        let given = write_options(request);
        let options = match change {
            Change::Replace(..) => Options::Update(given),
            Change::Patch(..) | Change::Apply(_) => Options::Patch(given),
        };
        let target = named(request, endpoint, Some(scale), &context, options);
        let mut scaling = Scaling {
            rest: self,
            request,
            endpoint,
            scale,
            target: &target,
            writer: &request.writer(endpoint, self.now()),
            body: &body,
            asked: &asked,
        };
        let updated = self.verbs.update(&target, &wanted, &mut scaling).await?;
        self.scale_response(request, endpoint, scale, accepted, updated.object)
    }

    /// The document of an apply request to a scale.
    fn applied(
        &self,
        scale: &SubresourceDesc,
        body: &[u8],
        options: &WriteOptions,
    ) -> Result<(Box<dyn Kind>, ApplyBody), StatusError> {
        let mut applied = self.new_scale(scale)?;
        let gvk = applied.gvk().clone();
        let body = ApplyBody::read(body, &gvk, options.field_validation, &mut *applied)?;
        match &body.document.unfit {
            Some(why) => Err(unfit_document(applied.as_reflect(), &gvk, why)),
            None => Ok((applied, body)),
        }
    }

    fn scale_response(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        scale: &SubresourceDesc,
        accepted: Accepted,
        object: Box<dyn Object>,
    ) -> Result<HttpResponse, StatusError> {
        let versioned = endpoint.resource.from_hub(&endpoint.kind, object)?;
        let view = self.view(scale, &*versioned)?;
        self.kind_response(request, accepted, 200, &*view)
    }

    /// The Scale of an object.
    pub(super) fn view(&self, scale: &SubresourceDesc, object: &dyn Object) -> Result<Box<dyn Kind>, StatusError> {
        let meta = object.meta();
        let replicas = match object.desc().is_dynamic() {
            true => custom_scale::replicas(scale, object)?,
            false => Replicas {
                wanted: Some(number_at(object.as_reflect(), &scale.spec_replicas_path)),
                present: number_at(object.as_reflect(), &scale.status_replicas_path),
                selector: selector_at(object.as_reflect(), &scale.label_selector_path),
            },
        };
        let view = json!({
            "metadata": {
                "name": meta.name,
                "namespace": meta.namespace,
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
                "creationTimestamp": meta.creation_timestamp.to_string(),
            },
            "spec": { "replicas": replicas.wanted.unwrap_or_default() },
            "status": { "replicas": replicas.present, "selector": replicas.selector },
        });
        let mut new = self.new_scale(scale)?;
        json::read(view.to_string().as_bytes(), new.as_reflect_mut())
            .map_err(|e| StatusError::internal_error(e.to_string()))?;
        Ok(new)
    }

    pub(super) fn new_scale(&self, scale: &SubresourceDesc) -> Result<Box<dyn Kind>, StatusError> {
        self.registry
            .new_type(&scale.group, &scale.version, &scale.kind)
            .ok_or_else(|| {
                let name = api_version(&scale.group, &scale.version);
                StatusError::internal_error(format!("no kind {:?} is registered for version {name:?}", scale.kind))
            })
    }

    /// The Scale that a request puts in the place of the present one, and what strict decoding says of it, as far as
    /// that is to be told to the client.
    fn replaced(
        &self,
        request: &Request,
        scale: &SubresourceDesc,
        body: &[u8],
        (format, options): (Format, &WriteOptions),
    ) -> Result<(Box<dyn Kind>, Vec<String>), StatusError> {
        let mut new = self.new_scale(scale)?;
        let expected = Expected {
            kind: new.gvk().clone(),
            also: &[],
        };
        let told = decode_kind(
            &self.registry,
            &expected,
            format,
            body,
            options.field_validation,
            &mut *new,
        )?;
        request.audit.sent(&*new, metadata_of(&*new));
        Ok((new, told.problems))
    }

    /// Reads what a patch makes of a Scale into `new`.
    pub(super) fn patched(
        &self,
        endpoint: &Endpoint,
        patch: (PatchType, &[u8]),
        view: &dyn Kind,
        validation: FieldValidation,
        new: &mut dyn Kind,
    ) -> Result<Vec<String>, StatusError> {
        let (patch_type, body) = patch;
        let strict = validation != FieldValidation::Ignore;
        let mut document = Vec::new();
        json::write_kind(view, &mut document);
        let strategic = patch_type == PatchType::Strategic;
        let (text, mut problems) = match strategic {
            true => patch::strategic::apply(&document, body, new.desc(), strict)?,
            false => apply(endpoint, patch_type, &document, body, strict)?,
        };
        let desc = new.handle().clone();
        let refused = |why: &str| match strategic {
            true => unfit(patch::strategic::shown(body, &document, &desc).as_bytes(), why),
            false => unfit(&text, why),
        };
        let found = match strategic {
            // Its type counts for nothing.
            true => json::restore(&text, new.as_reflect_mut()).map_err(DocumentFault::Decode),
            false => self.decoded(&text, new),
        };
        problems.extend(
            found
                .map_err(|fault| refused(&fault.to_string()))?
                .iter()
                .map(ToString::to_string),
        );
        match validation {
            FieldValidation::Ignore => Ok(Vec::new()),
            FieldValidation::Strict if !problems.is_empty() => Err(refused(&strict_error(&problems))),
            _ => Ok(problems),
        }
    }

    /// What a patch other than a strategic one has made: a document, which must be a Scale.
    fn decoded(&self, text: &[u8], new: &mut dyn Kind) -> Result<Vec<StrictProblem>, DocumentFault> {
        let named = json::type_meta(text).map_err(DocumentFault::TypeMeta)?;
        match check_type(&self.registry, new.gvk(), &named) {
            Ok(()) => {}
            Err(TypeFault::OtherVersion(version)) => {
                return Err(DocumentFault::Type(not_registered(&new.gvk().kind, &version)));
            }
            Err(TypeFault::Malformed(why) | TypeFault::Unknown(why) | TypeFault::OtherKind(why)) => {
                return Err(DocumentFault::Type(why));
            }
        }
        Ok(match named.api_version.is_empty() {
            true => json::no_fields(text)?,
            false => json::read(text, new.as_reflect_mut())?,
        })
    }
}

/// A patch that names another uid is one of another object.
pub(super) fn same_uid(
    endpoint: &Endpoint,
    scale: &SubresourceDesc,
    view: &dyn Reflect,
    new: &dyn Reflect,
) -> Result<(), StatusError> {
    let uid = |scale: &dyn Reflect| jsonpath::lookup_text(scale, "metadata.uid").into_owned();
    let (wanted, found) = (uid(new), uid(view));
    if wanted.is_empty() || wanted == found {
        return Ok(());
    }
    let name = jsonpath::lookup_text(view, "metadata.name").into_owned();
    let resource = format!("{}/{}", endpoint.kind.plural, scale.name);
    let text = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
    Err(StatusError::conflict(&endpoint.kind.group, &resource, &name, text))
}

/// The Scale must be of the object that the path names.
pub(super) fn check_place(request: &Request, endpoint: &Endpoint, new: &dyn Reflect) -> Result<(), StatusError> {
    check_namespace(request, endpoint, &jsonpath::lookup_text(new, "metadata.namespace"))?;
    check_name(&request.info.name, &jsonpath::lookup_text(new, "metadata.name"))
}

/// What a write to the scale carries.
enum Change {
    Replace(Format, WriteOptions),
    Patch(PatchType, WriteOptions),
    Apply(WriteOptions),
}

/// What is known of a change before the present Scale is.
pub(super) enum Asked {
    Applied(Box<dyn Kind>, ApplyBody),
    /// With what the client is to be warned of.
    Replaced(Box<dyn Kind>, Vec<String>),
    Patched(PatchType, FieldValidation),
}

impl Change {
    fn options(&self) -> &WriteOptions {
        match self {
            Change::Replace(_, options) | Change::Patch(_, options) | Change::Apply(options) => options,
        }
    }
}

/// The number at a path, 0 where there is none.
fn number_at(message: &dyn Reflect, path: &str) -> i32 {
    match first(message, path) {
        Some(Value::Int32(v)) => v,
        Some(Value::Int64(v)) => i32::try_from(v).unwrap_or(i32::MAX),
        _ => 0,
    }
}

/// The selector at a path in its text form: a string, or a LabelSelector.
fn selector_at(message: &dyn Reflect, path: &str) -> String {
    match first(message, path) {
        Some(Value::Message(selector)) => {
            let selector = LabelSelector::from_message(selector.as_any().downcast_ref());
            selector.map(|s| s.to_string()).unwrap_or_default()
        }
        Some(Value::Map(labels)) => {
            let mut terms = Vec::with_capacity(labels.len());
            labels.for_each(&mut |key, value| {
                terms.push(format!("{key}={}", jsonpath::scalar_text(value).unwrap_or_default()));
            });
            terms.join(",")
        }
        Some(value) => jsonpath::scalar_text(value).unwrap_or_default().into_owned(),
        None => String::new(),
    }
}

fn first<'a>(message: &'a dyn Reflect, path: &str) -> Option<Value<'a>> {
    JsonPath::parse(path).ok()?.first(message)
}

/// 422 for a Scale that is none: its metadata is that of an object in a namespace, which it need not name.
pub(super) fn check(scale: &SubresourceDesc, new: &dyn Kind, namespace: &str) -> Result<(), StatusError> {
    let mut errors = ErrorList::new();
    if let Some(mut metadata) = metadata_of(new).cloned() {
        namespace.clone_into(&mut metadata.namespace);
        let path = Path::new("metadata");
        errors.extend(meta::validate_object_meta(
            &metadata,
            true,
            NameRule::DnsSubdomain,
            &path,
        ));
        errors.extend(standard_finalizers(&metadata, &path));
    }
    let replicas = i64::from(number_at(new.as_reflect(), ".spec.replicas"));
    if replicas < 0 {
        let path = Path::new("spec").child("replicas");
        errors.push(FieldError::invalid(
            &path,
            replicas,
            "must be greater than or equal to 0",
        ));
    }
    if errors.is_empty() {
        return Ok(());
    }
    let name = jsonpath::lookup_text(new.as_reflect(), "metadata.name");
    Err(StatusError::invalid(&scale.group, &scale.kind, &name, &errors))
}

/// The object with the Scale's replicas; its resource version and uid become preconditions.
pub(super) fn put_back(
    endpoint: &Endpoint,
    scale: &SubresourceDesc,
    mut object: Box<dyn Object>,
    new: &dyn Reflect,
) -> Result<Box<dyn Object>, StatusError> {
    let replicas = number_at(new, ".spec.replicas");
    match endpoint.resource.is_custom() {
        true => custom_scale::put_replicas(scale, &mut *object, new)?,
        false => JsonPath::parse(&scale.spec_replicas_path)
            .and_then(|path| path.set_int32(object.as_reflect_mut(), replicas))
            .map_err(|e| StatusError::internal_error(format!("{}: {e}", endpoint.kind.kind)))?,
    }
    object.meta_mut().resource_version = jsonpath::lookup_text(new, "metadata.resourceVersion").into_owned();
    let uid = jsonpath::lookup_text(new, "metadata.uid").into_owned();
    if !uid.is_empty() {
        object.meta_mut().uid = uid;
    }
    Ok(object)
}
