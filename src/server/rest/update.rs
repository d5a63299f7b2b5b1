//! PUT of an object or of one of its subresources.

use actix_web::HttpResponse;
use keelson_machinery::object::Object;
use keelson_machinery::scheme::SubresourceDesc;
use keelson_machinery::status::StatusError;

use super::create::{OwnersRead, drop_repeated_owners, take_namespace};
use super::options::{WriteOptions, Writing};
use super::place;
use super::request::Request;
use super::{Rest, namespace};
use crate::admission::Operation;
use crate::negotiate::Offer;
use crate::registry::write::{OBJECT_MODIFIED, Part, UpdateRequest, Updated, Updater};
use crate::registry::{Context, Endpoint};

/// How often an object may come or go while an update of it is admitted, before the client is told to retry.
const MAX_OPERATIONS: usize = 64;

impl Rest {
    pub(super) async fn update(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        subresource: Option<&'static SubresourceDesc>,
    ) -> Result<HttpResponse, StatusError> {
        let accepted = request.negotiate(Offer::of_subresource(&request.info.subresource))?;
        let options = WriteOptions::parse(&request.query, Writing::Update)?;
        let mut object = request
            .object(&self.registry, endpoint.kind, options.field_validation)
            .await?;
        endpoint.resource.apply_defaults(endpoint.kind, &mut *object);
        request.audit.sent(&*object, Some(object.meta()));
        check_name(request, endpoint, &mut *object)?;
        drop_repeated_owners(request, &mut *object, OwnersRead::Sent);
        let hub = endpoint.resource.to_hub(endpoint.kind, object)?;
        let context = self.context(request, endpoint, options.dry_run);
        let name = request.info.name.as_str();
        let namespace = namespace(request, endpoint);
        let may_create = subresource.is_none() && endpoint.kind.create_on_update;
        let wanted = UpdateRequest {
            name,
            part: part(subresource),
            creation: may_create.then_some(&*request.info),
            uid_is_precondition: true,
        };
        let mut make = |_: Option<&dyn Object>| Ok(hub.clone_object());
        let updated = self
            .update_admitted(endpoint, &context, &wanted, namespace, &mut make)
            .await?;
        let code = if updated.created { 201 } else { 200 };
        self.object_response(request, endpoint, accepted, code, updated.object)
    }

    /// Updates an object that may be absent. Admission depends on whether it is there, which only the write finds out,
    /// and only who comes to it learns: a creation has to be admitted as one.
    pub(super) async fn update_admitted(
        &self,
        endpoint: &Endpoint,
        context: &Context,
        wanted: &UpdateRequest<'_>,
        namespace: &str,
        make: Updater<'_>,
    ) -> Result<Updated, StatusError> {
        let mut operation = Operation::Update;
        for _ in 0..MAX_OPERATIONS {
            self.admission
                .admit(&self.registry, endpoint, operation, namespace, wanted.name)
                .await?;
            let mut found = operation;
            let mut updater = |current: Option<&dyn Object>| {
                found = match current {
                    Some(_) => Operation::Update,
                    None => Operation::Create,
                };
                match found == operation {
                    true => make(current),
                    false => Err(endpoint.resource.not_found(wanted.name)),
                }
            };
            let outcome = endpoint.resource.update(context, wanted, &mut updater).await;
            if found == operation {
                return outcome;
            }
            operation = found;
        }
        let resource = &endpoint.resource;
        let (group, plural) = (resource.group, resource.plural);
        Err(StatusError::conflict(group, plural, wanted.name, OBJECT_MODIFIED))
    }
}

pub(super) fn part(subresource: Option<&'static SubresourceDesc>) -> Part {
    match subresource {
        None => Part::Main,
        Some(sub) if sub.name == "status" => Part::Status,
        Some(sub) => Part::Named(sub.name),
    }
}

/// The body must be about the object that the path names.
pub(super) fn check_name(request: &Request, endpoint: &Endpoint, object: &mut dyn Object) -> Result<(), StatusError> {
    take_namespace(request, endpoint, object)?;
    place::check_name(&request.info.name, &object.meta().name)
}
