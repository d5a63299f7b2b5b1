//! POST to a collection.

use actix_web::HttpResponse;
use keelson_machinery::equality;
use keelson_machinery::meta::v1::OwnerReference;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;

use super::options::{WriteOptions, Writing};
use super::place::check_namespace;
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
        endpoint.resource.apply_defaults(endpoint.kind, &mut *object);
        request.audit.sent(&*object, Some(object.meta()));
        take_namespace(request, endpoint, &mut *object)?;
        drop_repeated_owners(request, &mut *object, OwnersRead::Sent);
        let hub = endpoint.resource.to_hub(endpoint.kind, object)?;
        let context = self.context(request, endpoint, options.dry_run);
        let meta = hub.meta();
        let name = match meta.name.is_empty() {
            true => &meta.generate_name,
            false => &meta.name,
        };
        self.admission
            .admit(
                &self.registry,
                endpoint,
                Operation::Create,
                namespace(request, endpoint),
                name,
            )
            .await?;
        let created = endpoint.resource.create(&context, hub).await?;
        self.object_response(request, endpoint, accepted, 201, created)
    }
}

/// When an object's owners are looked at, which its warning says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OwnersRead {
    /// As the client sent them.
    Sent,
    /// As they are about to be stored.
    Admitted,
}

/// An owner that stands twice counts once; the client is told.
pub(super) fn drop_repeated_owners(request: &Request, object: &mut dyn Object, when: OwnersRead) {
    let owners = &mut object.meta_mut().owner_references;
    let (mut kept, mut repeated): (Vec<OwnerReference>, Vec<String>) = (Vec::new(), Vec::new());
    for owner in owners.drain(..) {
        match kept.iter().any(|k| equality::equal(k, &owner)) {
            true => repeated.push(owner.uid),
            false => kept.push(owner),
        }
    }
    *owners = kept;
    if !repeated.is_empty() {
        request.warn(format!(
            ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            match when {
                OwnersRead::Sent => "",
                OwnersRead::Admitted => " after mutating admission happens",
            },
            repeated.join(", ")
        ));
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
