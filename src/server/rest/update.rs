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
use crate::registry::Endpoint;
use crate::registry::write::{Part, UpdateRequest};

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
        let context = request.context(endpoint, self.now(), options.dry_run);
        let name = request.info.name.as_str();
        let namespace = namespace(request, endpoint);
        let may_create = subresource.is_none() && endpoint.kind.create_on_update;
        let wanted = UpdateRequest {
            name,
            part: part(subresource),
            may_create,
            uid_is_precondition: true,
        };
        let mut operation = Operation::Update;
        let updated = loop {
            self.admission
                .admit(&self.registry, endpoint, operation, namespace, name)
                .await?;
            // Only who comes to it learns whether there is an object: a creation has to be admitted as one.
            let mut unexpected = false;
            let mut updater = |current: Option<&dyn Object>| {
                unexpected = current.is_none() && operation == Operation::Update;
                match unexpected {
                    true => Err(endpoint.resource.not_found(name)),
                    false => Ok(hub.clone_object()),
                }
            };
            let outcome = endpoint.resource.update(&context, &wanted, &mut updater).await;
            if !unexpected {
                break outcome?;
            }
            operation = Operation::Create;
        };
        let code = if updated.created { 201 } else { 200 };
        self.object_response(request, endpoint, accepted, code, updated.object)
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
