//! PUT of an object or of one of its subresources.

use actix_web::HttpResponse;
use keelson_machinery::object::Object;
use keelson_machinery::scheme::SubresourceDesc;
use keelson_machinery::status::StatusError;
use keelson_registry::Endpoint;
use keelson_registry::admission::Options;
use keelson_registry::owners::{OwnersRead, drop_repeated_owners};
use keelson_registry::write::{Part, UpdateRequest};

use super::create::take_namespace;
use super::options::{WriteOptions, Writing};
use super::place;
use super::{Rest, custom, named, write_options};
use crate::negotiate::Offer;
use crate::request::Request;

impl Rest {
    pub(super) async fn update(
        &self,
        request: &Request,
        endpoint: &Endpoint,
        subresource: Option<&SubresourceDesc>,
    ) -> Result<HttpResponse, StatusError> {
        let accepted = request.negotiate(Offer::of_subresource(&request.info.subresource))?;
        let options = WriteOptions::parse(&request.query, Writing::Update)?;
        let (mut object, other_kind) = request
            .object(&self.registry, endpoint, options.field_validation)
            .await?;
        endpoint.resource.apply_defaults_to_sent(&endpoint.kind, &mut *object)?;
        request.audit.sent(&*object, Some(object.meta()));
        check_name(request, endpoint, &mut *object)?;
        drop_repeated_owners(&request.warnings, &mut *object, OwnersRead::Sent);
        let hub = endpoint.resource.to_hub(&endpoint.kind, object)?;
        let context = self.context(request, endpoint, options.dry_run);
        let may_create = subresource.is_none() && endpoint.kind.create_on_update;
        let wanted = UpdateRequest {
            creation: may_create.then_some(&*request.info),
            ..UpdateRequest::of(Part::of(subresource))
        };
        let options = Options::Update(write_options(request));
        let target = named(request, endpoint, subresource, &context, options);
        let mut make = |current: Option<&dyn Object>| match &other_kind {
            // What version is meant is looked at before. A status is written into the object that is there.
            Some(kind) if subresource.is_none() && current.is_some_and(|current| is_of(&*hub, current)) => {
                Err(custom::other_kind(endpoint, &hub.meta().name, kind))
            }
            _ => Ok(hub.clone_object()),
        };
        let updated = self.verbs.update(&target, &wanted, &mut make).await?;
        let code = if updated.created { 201 } else { 200 };
        self.object_response(request, endpoint, accepted, code, updated.object)
    }
}

/// Whether a new object is made of the very version that is there.
fn is_of(new: &dyn Object, current: &dyn Object) -> bool {
    new.meta().resource_version == current.meta().resource_version
}

/// The body must be about the object that the path names.
pub(super) fn check_name(request: &Request, endpoint: &Endpoint, object: &mut dyn Object) -> Result<(), StatusError> {
    take_namespace(request, endpoint, object)?;
    place::check_name(&request.info.name, &object.meta().name)
}
