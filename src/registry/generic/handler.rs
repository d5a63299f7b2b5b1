//! Code that answers where no stored object does: for resources without storage, and for subresources that make or do
//! something instead of showing their object.

use std::sync::Arc;

use keelson_access::authn::Authentication;
use keelson_access::authz::Authorization;
use keelson_access::request_info::Query;
use keelson_machinery::meta::v1::Status;
use keelson_machinery::object::{Kind, Object};
use keelson_machinery::scheme::SubresourceDesc;
use keelson_machinery::status::StatusError;

use super::outcome::Answer;
use super::{Backend, Context, Endpoint, Resource, Target, Verbs};

/// A request that a [`Handler`] answers. Its sender is known and may do what it asks, and admission has let it pass.
pub struct Call<'a> {
    /// What else can be asked of the server.
    pub verbs: &'a Arc<Verbs>,
    /// What resources share.
    pub backend: &'a Backend,
    /// Who users are.
    pub authentication: &'a Authentication,
    /// What users may do.
    pub authorization: &'a Authorization,
    /// The resource in the version of the path.
    pub endpoint: &'a Endpoint,
    /// `None`: the call is one of the resource itself.
    pub subresource: Option<&'a SubresourceDesc>,
    /// Name in the path; empty for a collection.
    pub name: &'a str,
    /// The parameters of the query.
    pub query: &'a Query,
    /// The client asks for another protocol on its connection.
    pub upgrade: bool,
    /// Namespace, time, sender, and whether the request is a dry run.
    pub context: Context,
}

impl Call<'_> {
    /// Name in the path; empty for a collection.
    pub fn name(&self) -> &str {
        self.name
    }

    /// Another resource of this server.
    pub fn stored(&self, group: &str, plural: &str) -> Result<Arc<Resource>, StatusError> {
        let resource = self.verbs.registry.resource(group, plural);
        resource.ok_or_else(|| StatusError::internal_error(format!("{plural} are no resource of this server")))
    }

    /// An object that is written in the course of this call, through the subresource that the call is one of.
    pub fn nested<'b>(
        &self,
        resource: &'b Resource,
        subresource: &str,
        name: &'b str,
        context: &'b Context,
    ) -> Target<'b> {
        let mut subresources = resource.hub.subresources.iter();
        let target = Target::own(resource, name, context);
        Target {
            nested: true,
            ..target.subresource(subresources.find(|s| s.name == subresource))
        }
    }
}

/// What a handler answers with.
pub enum Reply {
    /// An object of the resource, in the version of the path; it is shown in every way that the client may ask for.
    Object(u16, Box<dyn Object>),
    /// Any other kind.
    Kind(u16, Box<dyn Kind>),
    /// There is nothing to show: 204.
    Empty,
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

/// What answers for a resource without storage or for a subresource. The verbs of the definition say which of these are
/// called; the others answer 405.
pub trait Handler: Send + Sync {
    /// POST of an object: of the resource's kind, or of the kind that the subresource names. It was decoded; namespace
    /// and name agree with the path.
    fn create<'a>(&'a self, _call: &'a Call<'a>, _object: Box<dyn Kind>) -> Answer<'a, Reply> {
        refused()
    }

    /// Other `apiVersion`s in which that object may come: those of the same form.
    fn also_takes(&self) -> &'static [&'static str] {
        &[]
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
