//! POST to a collection.

use actix_web::HttpResponse;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::Options;
use keelson_registry::owners::{OwnersRead, drop_repeated_owners};
use keelson_registry::{Endpoint, Target};

use super::options::{WriteOptions, Writing};
use super::place::check_namespace;
use super::{Rest, custom, namespace, write_options};
use crate::negotiate::Offer;
use crate::request::Request;

impl Rest {
    pub(super) async fn create(&self, request: &Request, endpoint: &Endpoint) -> Result<HttpResponse, StatusError> {
        let accepted = request.negotiate(Offer::Objects)?;
        let options = WriteOptions::parse(&request.query, Writing::Create)?;
        let (mut object, other_kind) = request
            .object(&self.registry, endpoint, options.field_validation)
            .await?;
        endpoint.resource.apply_defaults_to_sent(&endpoint.kind, &mut *object)?;
        request.audit.sent(&*object, Some(object.meta()));
        take_namespace(request, endpoint, &mut *object)?;
        if let Some(kind) = other_kind {
            return Err(custom::other_kind(endpoint, &object.meta().name, &kind));
        }
        drop_repeated_owners(&request.warnings, &mut *object, OwnersRead::Sent);
        let hub = endpoint.resource.to_hub(&endpoint.kind, object)?;
        let context = self.context(request, endpoint, options.dry_run);
        let target = Target::of(endpoint, "", &context).options(Options::Create(write_options(request)));
        let created = self.verbs.create(&target, hub).await?;
        self.object_response(request, endpoint, accepted, 201, created)
    }
}

/// The namespace of the path, which that of the body must not contradict.
pub(super) fn take_namespace(
    request: &Request,
    endpoint: &Endpoint,
    object: &mut dyn Object,
) -> Result<(), StatusError> {
    let meta = object.meta_mut();
    check_namespace(request, endpoint, &meta.namespace)?;
    namespace(request, endpoint).clone_into(&mut meta.namespace);
    Ok(())
}
