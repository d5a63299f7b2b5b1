//! The target of a verb: what it is called on, by whom, and with which options.

use keelson_machinery::object::Kind;
use keelson_machinery::scheme::{KindDesc, SubresourceDesc};
use keelson_machinery::status::StatusError;

use super::super::admission::{Attributes, Chain, Operation, Options, Reinvocation};
use super::super::reservation::Reserved;
use super::super::{Context, Endpoint, Resource};

/// What a verb is called on. It is made for one request, or for each object of a collection.
pub struct Target<'a> {
    /// Whose objects.
    pub resource: &'a Resource,
    /// The kind of the resource in the version of the request.
    pub kind: &'a KindDesc,
    /// `None`: the object itself.
    pub subresource: Option<&'a SubresourceDesc>,
    /// Name in the path; "": a new object.
    pub name: &'a str,
    /// What the client sent with its request.
    pub options: Options<'a>,
    /// See [`Attributes::nested`].
    pub nested: bool,
    /// Who asks, when, and with what rights.
    pub context: &'a Context,
    /// What the attempt that is under way has taken.
    pub(in crate::generic) reserved: Reserved,
    /// The request does not say the name, which is that of one of a collection.
    pub(in crate::generic) unnamed: bool,
}

impl<'a> Target<'a> {
    /// An object of an endpoint, or with an empty name a new one.
    pub fn of(endpoint: &'a Endpoint, name: &'a str, context: &'a Context) -> Target<'a> {
        Target {
            kind: &endpoint.kind,
            ..Target::own(&endpoint.resource, name, context)
        }
    }

    /// An object of a resource, as the server's own code sees it: in the hub version.
    pub fn own(resource: &'a Resource, name: &'a str, context: &'a Context) -> Target<'a> {
        Target {
            resource,
            kind: &resource.hub,
            subresource: None,
            name,
            options: Options::None,
            nested: false,
            context,
            reserved: Reserved::default(),
            unnamed: false,
        }
    }

    /// A subresource of it; `None`: the object itself.
    #[must_use]
    pub fn subresource(self, subresource: Option<&'a SubresourceDesc>) -> Target<'a> {
        Target { subresource, ..self }
    }

    /// With the options of the client.
    #[must_use]
    pub fn options(self, options: Options<'a>) -> Target<'a> {
        Target { options, ..self }
    }

    /// The name of the subresource; "": the object itself.
    pub fn subresource_name(&self) -> &'a str {
        self.subresource.map_or("", |subresource| &subresource.name)
    }

    /// Calls the plug-ins that mutate.
    ///
    /// # Errors
    /// One refuses.
    pub async fn admit(
        &self,
        operation: Operation,
        object: Option<&mut dyn Kind>,
        old: Option<&dyn Kind>,
    ) -> Result<(), StatusError> {
        let chain = self.chain(operation)?;
        if chain.mutating.is_empty() {
            return Ok(());
        }
        chain.admit(&mut self.attributes(operation, object, old)).await
    }

    /// Calls the plug-ins that validate.
    ///
    /// # Errors
    /// One refuses.
    pub async fn validate(
        &self,
        operation: Operation,
        object: Option<&mut dyn Kind>,
        old: Option<&dyn Kind>,
    ) -> Result<(), StatusError> {
        let chain = self.chain(operation)?;
        if chain.validating.is_empty() {
            return Ok(());
        }
        chain.validate(&self.attributes(operation, object, old)).await
    }

    /// The plug-ins that handle an operation on this.
    pub(in crate::generic) fn chain(&self, operation: Operation) -> Result<&'a Chain, StatusError> {
        let (resource, name) = (self.resource, self.subresource_name());
        resource.chains.of(operation, name).ok_or_else(|| {
            // Rather nothing than a write that nobody has looked at.
            StatusError::internal_error(format!("{}/{name} is not known to admission", resource.plural))
        })
    }

    fn attributes<'b>(
        &'b self,
        operation: Operation,
        object: Option<&'b mut dyn Kind>,
        old: Option<&'b dyn Kind>,
    ) -> Attributes<'b> {
        Attributes {
            operation,
            resource: self.resource,
            kind: self.kind,
            subresource: self.subresource_name(),
            path_name: self.name,
            object,
            old,
            options: self.options,
            nested: self.nested,
            context: self.context,
            reinvocation: Reinvocation::default(),
            unnamed: self.unnamed,
            reserved: &self.reserved,
        }
    }
}
