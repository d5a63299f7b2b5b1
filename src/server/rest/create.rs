//! POST to a collection.

use actix_web::HttpResponse;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;

use super::options::{WriteOptions, Writing};
use super::request::Request;
use super::{Rest, namespace};
use crate::admission::Operation;
use crate::negotiate::Offer;
use crate::registry::Endpoint;

impl Rest {
    pub(super) async fn create(&self, request: &Request, endpoint: &Endpoint) -> Result<HttpResponse, StatusError> {
        let accepted = request.negotiate(Offer::Objects)?;
        let options = WriteOptions::parse(&request.query, Writing::Create)?;
        let mut object = request
            .object(&self.registry, endpoint.kind, options.field_validation)
            .await?;
        check_namespace(request, endpoint, &mut *object)?;
        endpoint.resource.apply_defaults(endpoint.kind, &mut *object);
        let hub = endpoint.resource.to_hub(endpoint.kind, object)?;
        let context = request.context(endpoint, self.now(), options.dry_run);
        self.admission
            .admit(
                &self.registry,
                endpoint,
                Operation::Create,
                namespace(request, endpoint),
                &hub.meta().name,
            )
            .await?;
        let created = endpoint.resource.create(&context, hub).await?;
        self.object_response(request, endpoint, accepted, 201, created)
    }
}

/// The body's namespace must be the path's, or empty.
pub(super) fn check_namespace(
    request: &Request,
    endpoint: &Endpoint,
    object: &mut dyn Object,
) -> Result<(), StatusError> {
    let path = namespace(request, endpoint);
    let meta = object.meta_mut();
    if !endpoint.kind.namespaced || meta.namespace.is_empty() || meta.namespace == path {
        path.clone_into(&mut meta.namespace);
        return Ok(());
    }
    Err(StatusError::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    ))
}
