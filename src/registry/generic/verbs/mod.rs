//! The verbs: what can be asked of a resource, below HTTP.
//!
//! The REST handlers of a server turn requests into calls of these methods and results into answers; the in-process
//! client ([`super::Client`]) calls them for the server's own code. Nothing is stored and nothing is connected to but
//! through them, and each of them calls the admission chain ([`super::admission`]). An attempt to write goes like this:
//!
//! 1. what is there is read (from memory, if the store recalls it);
//! 2. the updater makes the new object of it: a PUT, a patch, an apply; it may wait, and nothing is locked meanwhile;
//! 3. `managedFields` are brought up to date, so that what plug-ins set has no owner;
//! 4. plug-ins that mutate;
//! 5. the kind's own right to the write ([`Strategy::authorize`]), and the preconditions of the request;
//! 6. reservations ([`Strategy::reserve`]); what they give is seen by all that follows;
//! 7. the kind prepares the object ([`Strategy::prepare_for_create`] and the like) and validates it;
//! 8. plug-ins that validate; they may reserve too (quota);
//! 9. the store compares and writes: reservations are committed, or given back where another writer was faster, which
//!    begins the next attempt.
//!
//! This is the order of kube-apiserver: a class of service is computed from what plug-ins have set, and a webhook that
//! validates sees the address that a Service was given.
//!
//! [`Strategy::authorize`]: super::Strategy::authorize
//! [`Strategy::reserve`]: super::Strategy::reserve
//! [`Strategy::prepare_for_create`]: super::Strategy::prepare_for_create

mod connect_options;
mod handled;
mod target;

use std::sync::Arc;

use futures_util::future::Either;
use keelson_access::authn::Authentication;
use keelson_access::authz::Authorization;
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_storage::{Entry, Revision, StoreError, WatchStream};

use super::admission::Options;
use super::apply::Applying;
use super::delete::Deleted;
use super::outcome::{Outcome, later, now};
use super::select::Chosen;
use super::select::Query;
use super::write::{UpdateRequest, Updated, Updater};
use super::{Backend, Registry, Resource};

pub use handled::HandledRequest;
pub use target::Target;

/// The verbs of one server, and what its handlers may use.
pub struct Verbs {
    /// The resources of the server.
    pub registry: Arc<Registry>,
    /// What they share.
    pub backend: Backend,
    /// Who users are.
    pub authentication: Authentication,
    /// What users may do.
    pub authorization: Authorization,
}

impl Verbs {
    /// The stored form of one object, not older than a revision.
    ///
    /// # Errors
    /// 404; 504 for a revision that does not come.
    pub async fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        not_older_than: Option<Revision>,
    ) -> Result<Entry, StatusError> {
        match not_older_than {
            Some(revision) => {
                resource.wait_for(revision).await?;
                resource.entry(namespace, name).await
            }
            None => resource.entry_anew(namespace, name).await,
        }
    }

    /// What a query selects.
    pub async fn list(&self, resource: &Resource, query: &Query<'_>) -> Result<Chosen, StatusError> {
        resource.select(query).await
    }

    /// What happens below a prefix of keys after a revision.
    ///
    /// # Errors
    /// The revision is gone or yet to come, or the store fails.
    pub async fn watch(&self, resource: &Resource, prefix: &str, after: Revision) -> Result<WatchStream, StoreError> {
        resource.watch(prefix, after).await
    }

    /// Makes an object of the hub version; the answer has its final metadata.
    pub async fn create(&self, target: &Target<'_>, object: Box<dyn Object>) -> Result<Box<dyn Object>, StatusError> {
        target.resource.create(target, object).await
    }

    /// Writes what the updater makes of an object, trying again while other writers are faster.
    pub async fn update(
        &self,
        target: &Target<'_>,
        request: &UpdateRequest<'_>,
        updater: &mut dyn Updater,
    ) -> Result<Updated, StatusError> {
        target.resource.update(target, request, updater).await
    }

    /// Writes what a patch makes of an object that is there.
    pub async fn patch(
        &self,
        target: &Target<'_>,
        request: &UpdateRequest<'_>,
        patch: &mut dyn Updater,
    ) -> Result<Updated, StatusError> {
        self.update(target, request, patch).await
    }

    /// Applies a document, which makes the object where the request may.
    pub async fn apply(
        &self,
        target: &Target<'_>,
        request: &UpdateRequest<'_>,
        applying: &Arc<Applying>,
    ) -> Result<Updated, StatusError> {
        let mut updater = Applies {
            target,
            creates: request.creation.is_some(),
            applying,
        };
        self.update(target, request, &mut updater).await
    }

    /// Deletes one object, or begins to.
    pub async fn delete(&self, target: &Target<'_>, options: &DeleteOptions) -> Result<Deleted, StatusError> {
        match options.ignore_store_read_error_with_cluster_breaking_potential {
            Some(true) => target.resource.delete_unread(target, options).await,
            _ => target.resource.delete(target, options).await,
        }
    }

    /// Deletes these objects of a collection one by one; those that others have deleted meanwhile are passed over.
    pub async fn delete_collection(
        &self,
        collection: &Target<'_>,
        objects: &[Box<dyn Object>],
        options: &DeleteOptions,
    ) -> Result<(), StatusError> {
        for object in objects {
            let target = Target {
                name: &object.meta().name,
                options: Options::Delete(options),
                reserved: Default::default(),
                unnamed: true,
                ..*collection
            };
            match self.delete(&target, options).await {
                Err(error) if error.code == 404 => {}
                done => drop(done?),
            }
        }
        Ok(())
    }
}

/// 400 for an object without a name that is sent to the path of `name`.
pub fn nameless(name: &str) -> StatusError {
    StatusError::bad_request(format!(
        "the name of the object ({name} based on URL) was undeterminable: name must be provided"
    ))
}

/// Makes what an apply makes of the object that is there.
struct Applies<'a> {
    target: &'a Target<'a>,
    /// If there is none, too.
    creates: bool,
    applying: &'a Arc<Applying>,
}

impl Applies<'_> {
    fn named(&self, mut new: Box<dyn Object>) -> Result<Box<dyn Object>, StatusError> {
        let meta = new.meta_mut();
        if meta.name.is_empty() {
            return Err(nameless(self.target.name));
        }
        meta.namespace.clone_from(&self.target.context.namespace);
        Ok(new)
    }
}

impl Updater for Applies<'_> {
    fn make<'a>(&'a mut self, current: Option<&'a dyn Object>) -> Outcome<'a, Box<dyn Object>> {
        if current.is_none() && !self.creates {
            return now(Err(self.target.resource.not_found(self.target.name)));
        }
        match self.applying.apply(current) {
            Either::Left(made) => now(made.into_inner().and_then(|new| self.named(new))),
            Either::Right(made) => later(async move { self.named(made.await?) }),
        }
    }
}
