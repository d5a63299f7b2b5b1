//! Requests that code answers: resources without storage, subresources that create or connect.

use actix_web::HttpResponse;
use actix_web::http::header;
use keelson_machinery::meta::v1::{ListMeta, ObjectMeta};
use keelson_machinery::object::{Gvk, Kind};
use keelson_machinery::reflect::{Slot, Value};
use keelson_machinery::scheme::SubresourceDesc;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::Options;
use keelson_registry::managed::Tracking;
use keelson_registry::verbs::HandledRequest;
use keelson_registry::{Context, Endpoint, Reply};

use super::decode::Expected;
use super::list::resolve_fields;
use super::options::{ListOptions, WriteOptions, Writing};
use super::output::metadata_of;
use super::owned::own_fields;
use super::place::check_namespace;
use super::{Rest, namespace, write_options};
use crate::negotiate::Offer;
use crate::request::Request;

impl Rest {
    /// Answers `verb` with the code of the resource (`subresource` is `None`) or of one of its subresources.
    pub(super) async fn handled(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        subresource: Option<&SubresourceDesc>,
        verb: &str,
    ) -> Result<HttpResponse, StatusError> {
        if subresource.is_some_and(|s| s.connect) {
            let handled = self.handled_request(request, endpoint, subresource, false);
            let reply = self.verbs.connect(&handled).await?;
            return self.reply(request, &handled, reply);
        }
        match verb {
            "create" => self.handled_create(request, endpoint, subresource).await,
            "get" => {
                request.negotiate(offer(endpoint, subresource))?;
                let handled = self.handled_request(request, endpoint, subresource, false);
                let reply = self.verbs.get_handled(&handled).await?;
                self.reply(request, &handled, reply)
            }
            "list" => self.handled_list(request, endpoint).await,
            _ => Err(StatusError::method_not_allowed()),
        }
    }

    fn handled_request<'a>(
        &self,
        request: &'a Request,
        endpoint: &'a Endpoint,
        subresource: Option<&'a SubresourceDesc>,
        dry_run: bool,
    ) -> HandledRequest<'a> {
        HandledRequest {
            endpoint,
            subresource,
            name: &request.info.name,
            query: &request.query,
            upgrade: wants_upgrade(request),
            context: Context {
                // What code does in the name of a request belongs to nobody.
                tracking: Tracking::Keep,
                ..self.context(request, endpoint, dry_run)
            },
        }
    }

    async fn handled_create(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        subresource: Option<&SubresourceDesc>,
    ) -> Result<HttpResponse, StatusError> {
        request.negotiate(offer(endpoint, subresource))?;
        let options = WriteOptions::parse(&request.query, Writing::Create)?;
        let gvk = body_kind(endpoint, subresource);
        let new = || {
            let made = self.registry.new_type(&gvk.group, &gvk.version, &gvk.kind);
            made.ok_or_else(|| StatusError::internal_error(format!("no kind is registered for {gvk}")))
        };
        let handler = endpoint.handler(subresource.map_or("", |subresource| &subresource.name));
        let expected = Expected {
            kind: gvk.clone(),
            also: handler.map_or(&[], |handler| handler.also_takes()),
        };
        let mut object = request
            .kind(&self.registry, expected, options.field_validation, new()?)
            .await?;
        keelson_machinery::defaults::apply(object.as_reflect_mut());
        request.audit.sent(&*object, metadata_of(&*object));
        let writer = request.writer(endpoint, self.now()).writer;
        own_fields(&mut *object, &*new()?, &gvk, writer)?;
        take_namespace(request, endpoint, &mut *object)?;
        let handled = self.handled_request(request, endpoint, subresource, options.dry_run);
        let options = Options::Create(write_options(request));
        let reply = self.verbs.create_handled(&handled, object, options).await?;
        self.reply(request, &handled, reply)
    }

    async fn handled_list(&self, request: &Request, endpoint: &Endpoint) -> Result<HttpResponse, StatusError> {
        let accepted = request.negotiate(Offer::Objects)?;
        let options = resolve_fields(endpoint, ListOptions::parse(&request.query, false)?)?;
        let handled = self.handled_request(request, endpoint, None, false);
        let mut objects = Vec::new();
        for object in self.verbs.list_handled(&handled).await? {
            let hub = endpoint.resource.to_hub(&endpoint.kind, object)?;
            let resource = &endpoint.resource;
            let by_fields = options.fields.matches(|label| resource.field_of(&*hub, label));
            if by_fields && options.labels.matches(&hub.meta().labels) {
                objects.push(hub);
            }
        }
        let mut shown = objects.into_iter().map(Ok);
        self.list_response(request, endpoint, accepted, &ListMeta::default(), &mut shown)
            .await
    }

    fn reply(
        &self,
        request: &Request,
        handled: &HandledRequest<'_>,
        reply: Reply,
    ) -> Result<HttpResponse, StatusError> {
        let endpoint = handled.endpoint;
        match reply {
            Reply::Empty => Ok(HttpResponse::NoContent().finish()),
            Reply::Kind(code, kind) => {
                let accepted = request.negotiate(Offer::Metadata)?;
                self.kind_response(request, accepted, code, &*kind)
            }
            Reply::Object(code, object) => {
                let accepted = request.negotiate(offer(endpoint, handled.subresource))?;
                let hub = endpoint.resource.to_hub(&endpoint.kind, object)?;
                self.object_response(request, endpoint, accepted, code, hub)
            }
        }
    }
}

/// Whether the client asks for another protocol on this connection.
fn wants_upgrade(request: &Request) -> bool {
    let connection = request.header(&header::CONNECTION).unwrap_or_default();
    connection.to_ascii_lowercase().contains("upgrade")
}

/// What is listed has columns; what is only made or asked for has none.
fn offer(endpoint: &Endpoint, subresource: Option<&SubresourceDesc>) -> Offer {
    match subresource {
        None if endpoint.kind.verbs.contains("list") => Offer::Objects,
        _ => Offer::Metadata,
    }
}

/// The kind of the body: the one that the subresource names, else that of the resource.
fn body_kind(endpoint: &Endpoint, subresource: Option<&SubresourceDesc>) -> Gvk {
    match subresource.filter(|s| !s.kind.is_empty()) {
        Some(SubresourceDesc {
            group, version, kind, ..
        }) => Gvk::new(group.clone(), version.clone(), kind.clone()),
        None => endpoint.kind.gvk(),
    }
}

/// The namespace of the path, which that of the body must not contradict.
fn take_namespace(request: &Request, endpoint: &Endpoint, object: &mut dyn Kind) -> Result<(), StatusError> {
    let path = namespace(request, endpoint);
    let Some((index, _)) = object.desc().field("metadata") else {
        return Ok(());
    };
    let given = match object.get(index) {
        Value::Message(meta) => meta.as_any().downcast_ref::<ObjectMeta>(),
        _ => None,
    };
    if let Some(meta) = given {
        check_namespace(request, endpoint, &meta.namespace)?;
    }
    if let Some(Slot::Message(meta)) = object.get_mut(index)
        && let Some(meta) = meta.as_any_mut().downcast_mut::<ObjectMeta>()
    {
        path.clone_into(&mut meta.namespace);
    }
    Ok(())
}
