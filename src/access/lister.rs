//! Listers: what authentication, authorization, and priority and fairness read of the server's objects.
//!
//! They decide by objects and know nothing of stores: the registry implements these traits.

use futures_util::future::LocalBoxFuture;
use keelson_machinery::object::Object;

/// The objects of a server. Whatever is asked for here is held in memory from then on.
pub trait Listers {
    /// What changes among the objects of a resource; `None`: the server has no such resource.
    fn feed(&self, group: &str, plural: &str) -> Option<Box<dyn Feed>>;

    /// The objects of a resource, one by one; `None`: the server has no such resource.
    fn getter(&self, group: &str, plural: &str) -> Option<Box<dyn Getter>>;
}

/// The changes of a resource's objects. Nothing runs in the background: whoever is about to decide catches up first,
/// which costs next to nothing where nothing has changed.
pub trait Feed: Send + Sync {
    /// Tells what happened since the last call, if anything did; the first call tells all there is.
    fn catch_up(&self, take: &mut dyn FnMut(Vec<Change>));
}

/// What happened to the objects of a resource.
pub enum Change {
    /// All that was told before no longer counts.
    Reset,
    Put(Place, Box<dyn Object>),
    Gone(Place),
}

/// Which object. The namespace of those that have none is "".
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Place {
    pub namespace: Box<str>,
    pub name: Box<str>,
}

/// The objects of a resource, one by one. Errors are for the log.
pub trait Getter: Send + Sync {
    /// `Ok(None)`: there is no such object.
    fn get<'a>(&'a self, namespace: &'a str, name: &'a str) -> Got<'a, Option<Box<dyn Object>>>;

    /// Labels an object in the name of the server itself; `manager` owns the label in `managedFields`.
    fn label<'a>(&'a self, place: &'a Place, label: &'a str, value: &'a str, manager: &'static str) -> Got<'a, ()>;
}

/// What a [`Getter`] finds or does.
pub type Got<'a, T> = LocalBoxFuture<'a, Result<T, GetterError>>;

/// Why an object could not be read or written: what the store or the resource says of it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct GetterError(pub String);

impl GetterError {
    /// That of a layer above.
    pub fn of(error: impl ToString) -> GetterError {
        GetterError(error.to_string())
    }
}
