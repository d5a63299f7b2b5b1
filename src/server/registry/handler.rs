//! Code that answers where no stored object does: for resources without storage, and for subresources that make or do
//! something instead of showing their object.

use actix_web::HttpResponse;
use futures_util::future::LocalBoxFuture;
use keelson_machinery::meta::v1::Status;
use keelson_machinery::object::{Kind, Object};
use keelson_machinery::scheme::SubresourceDesc;
use keelson_machinery::status::StatusError;

use super::{Backend, Context, Endpoint, Registry, Resource};
use crate::authn::Authentication;
use crate::authz::Authorization;
use crate::rest::request::Request;

/// A request that a [`Handler`] answers. Its sender is known and may do what it asks.
pub struct Call<'a> {
    pub registry: &'a Registry,
    pub backend: &'a Backend,
    pub authentication: &'a Authentication,
    pub authorization: &'a Authorization,
    /// The resource in the version of the path.
    pub endpoint: &'a Endpoint,
    /// `None`: the call is one of the resource itself.
    pub subresource: Option<&'static SubresourceDesc>,
    pub request: &'a Request,
    /// Namespace, time, sender, and whether the request is a dry run.
    pub context: Context,
}

impl Call<'_> {
    /// Name in the path; empty for a collection.
    pub fn name(&self) -> &str {
        &self.request.info.name
    }

    /// Another resource of this server.
    pub fn stored(&self, group: &str, plural: &str) -> Result<&Resource, StatusError> {
        self.registry
            .resource(group, plural)
            .map(|r| &**r)
            .ok_or_else(|| StatusError::internal_error(format!("{plural} are no resource of this server")))
    }
}

/// What a handler answers with.
pub enum Reply {
    /// An object of the resource, in the version of the path; it is shown in every way that the client may ask for.
    Object(u16, Box<dyn Object>),
    /// Any other kind.
    Kind(u16, Box<dyn Kind>),
    /// An answer that is no object.
    Http(HttpResponse),
}

impl Reply {
    /// A Status that says that it is done.
    pub fn success(code: u16) -> Reply {
        let status = Status {
            status: "Success".to_owned(),
            code: i32::from(code),
            ..Status::default()
        };
        Reply::Kind(code, Box::new(status))
    }
}

/// The answer to a call; it need not be sent to another thread.
pub type Answer<'a, T> = LocalBoxFuture<'a, Result<T, StatusError>>;

/// What answers for a resource without storage or for a subresource. The verbs of the definition say which of these are
/// called; the others answer 405.
pub trait Handler: Send + Sync {
    /// POST of an object: of the resource's kind, or of the kind that the subresource names. It was decoded; namespace
    /// and name agree with the path.
    fn create<'a>(&'a self, _call: &'a Call<'a>, _object: Box<dyn Kind>) -> Answer<'a, Reply> {
        refused()
    }

    /// GET of one object, or of a subresource.
    fn get<'a>(&'a self, _call: &'a Call<'a>) -> Answer<'a, Reply> {
        refused()
    }

    /// All objects, in the version of the path; selectors are applied by the caller.
    fn list<'a>(&'a self, _call: &'a Call<'a>) -> Answer<'a, Vec<Box<dyn Object>>> {
        refused()
    }

    /// Any method on a subresource that connects.
    fn connect<'a>(&'a self, _call: &'a Call<'a>) -> Answer<'a, Reply> {
        refused()
    }

    /// Whether the namespace of a new object must exist: it need not for questions about it.
    fn needs_namespace(&self) -> bool {
        true
    }
}

fn refused<'a, T: 'a>() -> Answer<'a, T> {
    Box::pin(std::future::ready(Err(StatusError::method_not_allowed())))
}
