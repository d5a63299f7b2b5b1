//! The REST handlers: one per verb, generic over kinds. Routes are data: group, version, resource and subresource of
//! the request, looked up in the registry.

mod apply;
mod body;
mod continue_token;
mod create;
mod custom;
mod custom_scale;
pub mod decode;
mod delegate;
mod delete;
mod events;
mod handled;
mod list;
mod list_body;
pub mod options;
mod output;
mod owned;
mod patch;
mod place;
mod read;
mod renditions;
mod rows;
mod scale;
mod scale_owners;
mod scaling;
mod update;
mod watch;
mod watching;
mod writers;

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::header;
use keelson_machinery::scheme::SubresourceDesc;
use keelson_machinery::status::StatusError;
use keelson_machinery::time::Time;
use keelson_net::listener::Shutdown;
use keelson_registry::admission::{self, Options};
use keelson_registry::{Backend, Context, Endpoint, Registry, Target as Named, Verbs};

use crate::negotiate::route;
use crate::request::Request;
use crate::settings::RequestSettings;

/// Everything that the handlers of one server need.
pub struct Rest {
    pub registry: Arc<Registry>,
    pub backend: Backend,
    pub verbs: Arc<Verbs>,
    pub shutdown: Shutdown,
    pub requests: Arc<RequestSettings>,
}

/// What a path and method come to.
#[derive(Clone, Copy)]
enum Target<'e> {
    Collection,
    Object,
    Subresource(&'e SubresourceDesc),
}

impl Rest {
    /// Serves a request for a resource.
    pub async fn handle(&self, request: &Request, endpoint: &Arc<Endpoint>) -> Result<HttpResponse, StatusError> {
        let method = request.http.method().as_str();
        let info = &request.info;
        if info.verb == "proxy" {
            return Err(StatusError::no_such_resource());
        }
        let target = self.target(request, endpoint)?;
        // Without its namespace a namespaced collection can only be read.
        let across = matches!(target, Target::Collection) && endpoint.kind.namespaced && info.namespace.is_empty();
        let watchable = endpoint.kind.verbs.contains("watch");
        if !exists(endpoint, target, across) || (info.legacy_watch && !watchable) {
            return Err(StatusError::no_such_resource());
        }
        if info.legacy_watch && method != "GET" {
            return Err(StatusError::method_not_allowed());
        }
        let verb = match (target, method) {
            (Target::Collection, "GET") if info.verb == "watch" => "watch",
            (Target::Object, "GET") if info.legacy_watch => "watch",
            (Target::Collection, "GET") => "list",
            (Target::Collection, "POST") => "create",
            (Target::Collection, "DELETE") => "deletecollection",
            (Target::Collection, _) => return Err(StatusError::method_not_allowed()),
            (_, "GET") => "get",
            (_, "PUT") => "update",
            (_, "PATCH") => "patch",
            (Target::Object, "DELETE") => "delete",
            (Target::Subresource(sub), _) if sub.connect => connect_verb(sub, method)?,
            (Target::Subresource(_), "POST") => "create",
            _ => return Err(StatusError::method_not_allowed()),
        };
        let verbs = match target {
            Target::Subresource(sub) => &sub.verbs,
            _ => &endpoint.kind.verbs,
        };
        if verb == "watch" && !verbs.contains(verb) && verbs.contains("list") {
            return Err(self.unwatched(request, endpoint));
        }
        if !verbs.contains(verb) || (across && matches!(verb, "create" | "deletecollection")) {
            return Err(StatusError::method_not_allowed());
        }
        check_media_types(request, target, verb)?;
        deprecated(request, &endpoint.kind.deprecation);
        self.dispatch(request, endpoint, target, verb).await
    }

    /// A list of what can't be watched is there, and says so when it is asked for a watch; the old watch path is not.
    fn unwatched(&self, request: &Request, endpoint: &Endpoint) -> StatusError {
        let kind = &endpoint.kind;
        if request.info.legacy_watch {
            return StatusError::no_such_resource();
        }
        deprecated(request, &kind.deprecation);
        StatusError::method_not_supported(&kind.group, &kind.plural, "watch")
    }

    async fn dispatch(
        &self,
        request: &Request,
        endpoint: &Arc<Endpoint>,
        target: Target<'_>,
        verb: &str,
    ) -> Result<HttpResponse, StatusError> {
        let subresource = match target {
            Target::Subresource(sub) => Some(sub),
            _ => None,
        };
        if endpoint.handler(subresource.map_or("", |sub| &sub.name)).is_some() {
            return self.handled(request, endpoint, subresource, verb).await;
        }
        match (target, verb) {
            (Target::Subresource(sub), _) if sub.name == "scale" => self.scale(request, endpoint, sub, verb).await,
            (Target::Subresource(sub), _) if sub.connect || !sub.options[2].is_empty() => {
                Err(unanswered(endpoint, sub))
            }
            (Target::Subresource(_) | Target::Object, "get") => self.get(request, endpoint).await,
            (Target::Subresource(sub), "update") => self.update(request, endpoint, Some(sub)).await,
            (Target::Subresource(_) | Target::Object, "patch") if apply::is_apply(request) => {
                self.apply(request, endpoint, subresource).await
            }
            (Target::Subresource(sub), "patch") => self.patch(request, endpoint, Some(sub)).await,
            (_, "list") => self.list(request, endpoint).await,
            (_, "watch") => self.watch(request, endpoint).await,
            (_, "create") => self.create(request, endpoint).await,
            (_, "update") => self.update(request, endpoint, None).await,
            (_, "patch") => self.patch(request, endpoint, None).await,
            (_, "delete") => self.delete(request, endpoint).await,
            (_, "deletecollection") => self.delete_collection(request, endpoint).await,
            (Target::Subresource(sub), _) => Err(unanswered(endpoint, sub)),
            _ => Err(StatusError::method_not_allowed()),
        }
    }

    /// What the path names; 404 for one that fits the kind's scope or subresources in no way.
    fn target<'e>(&self, request: &Request, endpoint: &'e Endpoint) -> Result<Target<'e>, StatusError> {
        let info = &request.info;
        let name = info.path_name();
        let subpaths = || endpoint.subresource(&info.subresource).is_some_and(|s| s.subpaths);
        let stray = info.malformed || !info.rest.is_empty();
        if (stray && !subpaths()) || (info.in_namespace && !endpoint.kind.namespaced) {
            return Err(StatusError::no_such_resource());
        }
        if name.is_empty() {
            return Ok(Target::Collection);
        }
        if endpoint.kind.namespaced && !info.in_namespace {
            return Err(StatusError::no_such_resource());
        }
        if info.subresource.is_empty() {
            return Ok(Target::Object);
        }
        if info.legacy_watch {
            return Err(StatusError::no_such_resource());
        }
        endpoint
            .subresource(&info.subresource)
            .map(Target::Subresource)
            .ok_or_else(StatusError::no_such_resource)
    }

    /// What strategies and plug-ins may know of a request.
    fn context(&self, request: &Request, endpoint: &Endpoint, dry_run: bool) -> Context {
        Context {
            verbs: Some(self.verbs.clone()),
            ..request.context(endpoint, self.now(), dry_run)
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.backend.clock.now()
    }
}

/// What the verbs are called on for a request: the object that its path names.
fn named<'a>(
    request: &'a Request,
    endpoint: &'a Endpoint,
    subresource: Option<&'a SubresourceDesc>,
    context: &'a Context,
    options: Options<'a>,
) -> Named<'a> {
    let target = Named::of(endpoint, &request.info.name, context);
    target.subresource(subresource).options(options)
}

/// The options of a write as the query has them.
fn write_options(request: &Request) -> admission::WriteOptions<'_> {
    let text = |key: &str| request.query.get(key).unwrap_or_default();
    admission::WriteOptions {
        field_manager: text("fieldManager"),
        field_validation: text("fieldValidation"),
        force: request.query.has("force").then(|| request.query.flag("force")),
    }
}

/// Says that a kind is deprecated, if it is, to the client and to the audit.
fn deprecated(request: &Request, text: &str) {
    if text.is_empty() {
        return;
    }
    request.warn(text);
    request.audit.annotate("k8s.io/deprecated", || "true");
    // The words of the warning, which clients know.
    if let Some((_, release)) = text.split_once("unavailable in v") {
        let release = release.split('+').next().unwrap_or_default();
        request.audit.annotate("k8s.io/removed-release", || release.to_owned());
    }
}

/// The verb that a method stands for on a subresource that connects. HEAD and OPTIONS belong to GET where there are
/// paths below, since these are somebody else's.
fn connect_verb(subresource: &SubresourceDesc, method: &str) -> Result<&'static str, StatusError> {
    match method {
        "POST" => Ok("create"),
        "DELETE" => Ok("delete"),
        "HEAD" | "OPTIONS" if subresource.subpaths => Ok("get"),
        _ => Err(StatusError::method_not_allowed()),
    }
}

/// Whether the path is there for any verb at all: a kind that is only created has no paths of its objects, and a
/// namespaced one that is not listed none across namespaces.
fn exists(endpoint: &Endpoint, target: Target<'_>, across: bool) -> bool {
    let any = |verbs: &[&str]| endpoint.kind.verbs.iter().any(|verb| verbs.contains(&verb));
    match target {
        Target::Object => any(&["get", "update", "patch", "delete", "watch"]),
        Target::Collection if across => any(&["list", "watch"]),
        _ => true,
    }
}

/// A subresource that the definition has and no code answers for.
fn unanswered(endpoint: &Endpoint, subresource: &SubresourceDesc) -> StatusError {
    StatusError::internal_error(format!(
        "no code answers for {}/{}",
        endpoint.kind.plural, subresource.name
    ))
}

/// The router's part of content negotiation, which comes before the handlers' own.
fn check_media_types(request: &Request, target: Target<'_>, verb: &str) -> Result<(), StatusError> {
    let makes = match (target, verb) {
        (Target::Subresource(sub), _) if sub.connect => return Ok(()),
        // Options in the query of a subresource that does not connect: its answer is text.
        (Target::Subresource(sub), _) if !sub.options[2].is_empty() => route::TEXTS,
        (_, "list" | "watch") => route::LISTS,
        _ => route::OBJECTS,
    };
    if verb == "patch" {
        route::check_content_type(request.header(&header::CONTENT_TYPE), route::PATCHES)?;
    }
    route::check_accept(request.header(&header::ACCEPT), makes)
}

/// The namespace that an object of this endpoint lives in: none for cluster-scoped kinds.
fn namespace<'a>(request: &'a Request, endpoint: &Endpoint) -> &'a str {
    if endpoint.kind.namespaced {
        &request.info.namespace
    } else {
        ""
    }
}
