//! Requests for custom resources: which verb a path and method stand for, in the words of the API extensions server. No
//! router stands before it, as one does before built-in kinds: what it does not serve is `404 page not found`, of what
//! follows a subresource it takes no notice, and media types are negotiated by the handlers alone.

use std::sync::Arc;

use actix_web::HttpResponse;
use keelson_machinery::field::{FieldError, Path};
use keelson_machinery::status::StatusError;
use keelson_registry::Endpoint;

use super::{Rest, Target};
use crate::request::Request;
use crate::respond;

/// Content types of patches; there is no strategic one.
const PATCHES: [&str; 3] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
];

impl Rest {
    /// Serves a request for a custom resource.
    pub(super) async fn handle_custom(&self, request: &Request, endpoint: &Arc<Endpoint>) -> HttpResponse {
        if let Some(settled) = endpoint.resource.strategy.settled() {
            settled.await;
        }
        if !fits_scope(request, endpoint) {
            return respond::page_not_found();
        }
        if !endpoint.kind.deprecation.is_empty() {
            request.warn(&*endpoint.kind.deprecation);
            request.audit.annotate("k8s.io/deprecated", || "true");
        }
        let served = self.serve_custom(request, endpoint).await;
        served.unwrap_or_else(|error| request.error(&error))
    }

    async fn serve_custom(&self, request: &Request, endpoint: &Arc<Endpoint>) -> Result<HttpResponse, StatusError> {
        let (info, kind) = (&request.info, &endpoint.kind);
        let target = match (info.subresource.as_str(), endpoint.subresource(&info.subresource)) {
            ("", _) if info.path_name().is_empty() => Target::Collection,
            ("", _) => Target::Object,
            (_, Some(subresource)) => Target::Subresource(subresource),
            _ => return Err(endpoint.resource.not_found(&info.name)),
        };
        let verb = match (target, info.verb.as_str()) {
            (Target::Subresource(_), verb) => ["get", "update", "patch"].into_iter().find(|known| *known == verb),
            (_, verb) => kind.verbs.iter().find(|known| *known == verb),
        };
        let verb = verb.ok_or_else(|| StatusError::method_not_supported(&kind.group, &kind.plural, &info.verb))?;
        if verb == "patch" {
            check_patch_type(request)?;
        }
        if matches!(verb, "get" | "update" | "patch" | "delete") && info.path_name().is_empty() {
            return Err(StatusError::bad_request("name must be provided"));
        }
        self.dispatch(request, endpoint, target, verb).await
    }
}

/// Whether the path is one of the scope: without a namespace objects in namespaces can only be read, all together.
fn fits_scope(request: &Request, endpoint: &Endpoint) -> bool {
    let info = &request.info;
    match endpoint.kind.namespaced {
        true => !info.namespace.is_empty() || matches!(info.verb.as_str(), "list" | "watch"),
        false => info.namespace.is_empty(),
    }
}

fn check_patch_type(request: &Request) -> Result<(), StatusError> {
    let content_type = request
        .header(&actix_web::http::header::CONTENT_TYPE)
        .unwrap_or_default();
    let essence = match content_type.split_once(';') {
        Some((essence, _)) if !essence.is_empty() => essence,
        _ => content_type,
    };
    match PATCHES.contains(&essence) {
        true => Ok(()),
        false => Err(StatusError::unsupported_media_type(&PATCHES)),
    }
}

/// 422 for an object that says that it is of another kind.
pub(super) fn other_kind(endpoint: &Endpoint, name: &str, kind: &str) -> StatusError {
    let wanted = &endpoint.kind.kind;
    let fault = FieldError::invalid(&Path::new("kind"), kind, format!("must be {wanted}"));
    StatusError::invalid(&endpoint.kind.group, kind, name, &fault.into())
}

/// 500 for an object that a patch took the version from.
pub(super) fn no_version() -> StatusError {
    StatusError::internal_error("Object 'apiVersion' is missing in 'object has no apiVersion field'")
}

/// 422 for an object that says that it is of another version, and perhaps of another kind.
pub(super) fn other_type(endpoint: &Endpoint, name: &str, kind: &str, api_version: &str) -> StatusError {
    let wanted = &endpoint.kind;
    let version = wanted.gvk().api_version();
    let mut errors = keelson_machinery::field::ErrorList::new();
    if kind != &*wanted.kind {
        errors.push(FieldError::invalid(
            &Path::new("kind"),
            kind,
            format!("must be {}", wanted.kind),
        ));
    }
    if api_version != version {
        let path = Path::new("apiVersion");
        errors.push(FieldError::invalid(&path, api_version, format!("must be {version}")));
    }
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    StatusError::invalid(group, kind, name, &errors)
}
