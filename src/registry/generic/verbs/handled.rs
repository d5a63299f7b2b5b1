//! Verbs that code of the kind answers ([`Handler`]): creates of subresources and of what is not stored, connections,
//! reads of what is made up when it is asked for.

use std::sync::Arc;

use keelson_access::request_info::Query;
use keelson_machinery::object::{Kind, Object};
use keelson_machinery::scheme::SubresourceDesc;
use keelson_machinery::status::StatusError;

use super::super::admission::{Operation, Options};
use super::super::{Call, Context, Endpoint, Handler, Reply, Target};
use super::Verbs;
use super::connect_options::connect_options;

/// A request that a [`Handler`] answers.
pub struct HandledRequest<'a> {
    /// What the path leads to.
    pub endpoint: &'a Endpoint,
    /// `None`: it is one of the resource itself.
    pub subresource: Option<&'a SubresourceDesc>,
    /// Name in the path; empty for a collection.
    pub name: &'a str,
    /// The parameters of the query.
    pub query: &'a Query,
    /// See [`Call::upgrade`].
    pub upgrade: bool,
    /// Who asks, when, and with what rights.
    pub context: Context,
}

impl<'a> HandledRequest<'a> {
    fn handler(&self) -> Result<&'a dyn Handler, StatusError> {
        let subresource = self.subresource.map_or("", |subresource| &subresource.name);
        let handler = self.endpoint.handler(subresource);
        handler.ok_or_else(StatusError::method_not_allowed)
    }

    fn target<'b>(&'b self, context: &'b Context) -> Target<'b> {
        Target::of(self.endpoint, self.name, context).subresource(self.subresource)
    }
}

impl Verbs {
    fn call<'a>(self: &'a Arc<Self>, request: &HandledRequest<'a>) -> Call<'a> {
        Call {
            verbs: self,
            backend: &self.backend,
            authentication: &self.authentication,
            authorization: &self.authorization,
            endpoint: request.endpoint,
            subresource: request.subresource,
            name: request.name,
            query: request.query,
            upgrade: request.upgrade,
            context: request.context.clone(),
        }
    }

    /// Hands an object to the code of a resource that is not stored, or of a subresource.
    ///
    /// # Errors
    /// A plug-in refuses, or that code does; 405 where there is no such code.
    pub async fn create_handled(
        self: &Arc<Self>,
        request: &HandledRequest<'_>,
        mut object: Box<dyn Kind>,
        options: Options<'_>,
    ) -> Result<Reply, StatusError> {
        let handler = request.handler()?;
        let target = request.target(&request.context).options(options);
        target.admit(Operation::Create, Some(&mut *object), None).await?;
        target.validate(Operation::Create, Some(&mut *object), None).await?;
        let call = self.call(request);
        handler.create(&call, object).await
    }

    /// Opens a stream or a proxy. Its options are in the query.
    ///
    /// # Errors
    /// As [`Verbs::create_handled`].
    pub async fn connect(self: &Arc<Self>, request: &HandledRequest<'_>) -> Result<Reply, StatusError> {
        let handler = request.handler()?;
        let target = request.target(&request.context);
        let chain = target.chain(Operation::Connect)?;
        if !chain.is_empty() {
            let mut options = connect_options(&self.registry, request);
            let shown = options.as_mut().map(|options| &mut **options as &mut dyn Kind);
            target.admit(Operation::Connect, shown, None).await?;
            let shown = options.as_mut().map(|options| &mut **options as &mut dyn Kind);
            target.validate(Operation::Connect, shown, None).await?;
        }
        let call = self.call(request);
        handler.connect(&call).await
    }

    /// What the code of a resource or subresource shows.
    pub async fn get_handled(self: &Arc<Self>, request: &HandledRequest<'_>) -> Result<Reply, StatusError> {
        let call = self.call(request);
        request.handler()?.get(&call).await
    }

    /// All objects that the code of a resource shows, in the version of the path.
    pub async fn list_handled(
        self: &Arc<Self>,
        request: &HandledRequest<'_>,
    ) -> Result<Vec<Box<dyn Object>>, StatusError> {
        let call = self.call(request);
        request.handler()?.list(&call).await
    }
}
