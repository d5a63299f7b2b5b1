//! Controllers: code that brings the world in line with objects. A [`Controller`] is a function from the key of an
//! object, what is there ([`Lister`]) and a [`Client`] to "done" or "again after"; all else is done here: informers
//! tell which keys are to be looked at, a [`Queue`] hands each to one worker at a time and brings back what failed,
//! each controller has a thread of its own, and where several servers share a store one of them leads ([`election`]).
//!
//! [`Controllers::run`] starts one; a server does so by a post-start hook.

pub mod election;
mod lease;
pub(crate) mod metrics;
mod queue;
mod reconcile;
mod run;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use keelson_machinery::object::Object;
use keelson_machinery::reflect::{Name, Reflect};
use keelson_machinery::status::StatusError;
use keelson_machinery::time::Time;

use crate::generic::{Change, Client, Lister, NamespacedName, Registry, Resource, TypedLister};

pub use metrics::ControllerMetrics;
pub use queue::{Backoff, Key, Queue, Work};
pub use run::{Controllers, RunError};

/// Why a key could not be reconciled.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A resource of a group, by its plural.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct GroupResource {
    /// "" for the legacy group.
    pub group: Name,
    /// `pods`.
    pub resource: Name,
}

impl GroupResource {
    /// One that the program knows.
    pub const fn new(group: &'static str, resource: &'static str) -> GroupResource {
        GroupResource {
            group: Name::new_static(group),
            resource: Name::new_static(resource),
        }
    }

    fn find(&self, registry: &Registry) -> Option<Arc<Resource>> {
        registry.resource(&self.group, &self.resource)
    }
}

impl std::fmt::Display for GroupResource {
    /// `deployments.apps`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.group.as_str() {
            "" => f.write_str(&self.resource),
            group => write!(f, "{}.{group}", self.resource),
        }
    }
}

/// What comes after a key was reconciled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing, until something changes.
    Done,
    /// It is reconciled again after this time, if nothing changes before.
    After(Duration),
}

impl Next {
    /// Again when this time has come; nothing if it is past.
    pub fn at(time: Time, now: Time) -> Next {
        let left = u64::try_from((time - now).as_nanos()).unwrap_or_default();
        match left {
            0 => Next::Done,
            left => Next::After(Duration::from_nanos(left)),
        }
    }
}

/// A controller. Methods that wait may be written as `async fn`. They are called on one thread, and dropped where they
/// wait when the server ends or no longer leads: what was begun is gone on with by whoever reconciles the key next.
pub trait Controller: Send + 'static {
    /// The name of its queue in metrics and of its thread.
    fn name(&self) -> &'static str;

    /// Who owns what it writes, in `managedFields`.
    fn manager(&self) -> &'static str {
        self.name()
    }

    /// The resource whose objects it reconciles: each when it is first seen and when it changes.
    fn reconciles(&self) -> GroupResource;

    /// Keys that it reconciles from the beginning, beside those of the objects that are there: of what is kept right as
    /// a whole.
    fn begins_with(&self) -> Vec<NamespacedName> {
        Vec::new()
    }

    /// Other resources whose changes may concern these objects; see [`Controller::affected`].
    fn watches(&self) -> Vec<GroupResource> {
        Vec::new()
    }

    /// The objects to be reconciled since one of a watched resource has changed. Called for each object of such a
    /// resource at the beginning, too. What fails is tried again.
    fn affected(
        &self,
        _change: &Change,
        _context: &ControllerContext,
    ) -> impl Future<Output = Result<Vec<NamespacedName>, Failure>> {
        std::future::ready(Ok(Vec::new()))
    }

    /// Brings the world in line with one object, which may be gone by now, and need not have changed. A failure is
    /// logged and tried again after a wait that doubles.
    fn reconcile(
        &self,
        key: &NamespacedName,
        context: &ControllerContext,
    ) -> impl Future<Output = Result<Next, Failure>>;

    /// How many keys are reconciled at a time, taking turns on one thread.
    fn workers(&self) -> usize {
        1
    }

    /// How long a key that failed waits.
    fn backoff(&self) -> Backoff {
        Backoff::default()
    }

    /// It runs on each of the servers that share a store, and not only on the one that leads: for what a server has in
    /// its own memory.
    fn runs_everywhere(&self) -> bool {
        false
    }
}

/// What a controller may use.
pub struct ControllerContext {
    client: Client,
    /// Of the resources that are followed.
    listers: Vec<Lister>,
}

impl ControllerContext {
    /// A client that sends as the server itself; its fields are owned by [`Controller::manager`].
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Reads objects of a resource, followed or not; `None`: the server has no such resource.
    pub fn lister(&self, of: &GroupResource) -> Option<Lister> {
        Some(self.lister_of(&of.find(self.client.registry())?))
    }

    /// Reads objects of the kind that `T` is, which has to be the hub version.
    ///
    /// # Errors
    /// The server has no resource of this kind.
    pub fn typed_lister<T: Object + Reflect + Default + Clone>(&self) -> Result<TypedLister<T>, StatusError> {
        let objects = self.client.of::<T>("")?;
        Ok(self.lister_of(&objects.objects.resource).typed())
    }

    fn lister_of(&self, resource: &Arc<Resource>) -> Lister {
        let followed = self
            .listers
            .iter()
            .find(|lister| Arc::ptr_eq(lister.resource(), resource));
        followed.cloned().unwrap_or_else(|| Lister::new(resource.clone()))
    }

    /// The time that a write would carry now.
    pub fn now(&self) -> Time {
        self.client.now()
    }
}
