//! Attributes: what a plug-in may know of a request, and what it may change of it.

use std::borrow::Cow;
use std::fmt::Display;

use keelson_access::user::User;
use keelson_machinery::managedfields;
use keelson_machinery::meta::v1::{DeleteOptions, ObjectMeta};
use keelson_machinery::object::Kind;
use keelson_machinery::reflect::{Reflect, Value};
use keelson_machinery::scheme::KindDesc;
use keelson_machinery::status::StatusError;

use super::super::reservation::{Reservation, Reserved};
use super::super::{Context, Registry, Resource};
use super::{Operation, Reinvocation};

/// The options that a client sent with its request.
#[derive(Clone, Copy)]
pub enum Options<'a> {
    /// A request that takes none, or one of the server's own.
    None,
    /// Of a create.
    Create(WriteOptions<'a>),
    /// Of a replacement.
    Update(WriteOptions<'a>),
    /// Of a patch or an apply.
    Patch(WriteOptions<'a>),
    /// Of a deletion.
    Delete(&'a DeleteOptions),
}

/// The options of a create, an update or a patch; whether it is a dry run is said by [`Attributes::dry_run`].
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions<'a> {
    /// As the query has them; may be empty.
    pub field_manager: &'a str,
    /// As the query has it; may be empty.
    pub field_validation: &'a str,
    /// Of an apply: conflicts are overridden.
    pub force: Option<bool>,
}

/// One request at one attempt to do what it asks for. Objects are those of the hub version; where a subresource has a
/// kind of its own (Scale, Binding, Eviction, TokenRequest), they are of that kind.
pub struct Attributes<'a> {
    /// What is about to be done.
    pub operation: Operation,
    /// To an object of this.
    pub resource: &'a Resource,
    /// The kind of the resource in the version that the request names.
    pub kind: &'a KindDesc,
    /// "": the resource itself.
    pub subresource: &'a str,
    /// As the path has it; see [`Attributes::name`].
    pub path_name: &'a str,
    /// `None`: a deletion, or a connection whose options are no kind.
    pub object: Option<&'a mut dyn Kind>,
    /// What is there; `None`: nothing, or nothing that the request is about.
    pub old: Option<&'a dyn Kind>,
    /// What the client sent with its request.
    pub options: Options<'a>,
    /// A write that the server does in the course of a request which was admitted as what the client asked for: a
    /// binding writes a pod. kube-apiserver's plug-ins do not see such writes.
    pub nested: bool,
    /// Who asks, when, and with what rights.
    pub context: &'a Context,
    /// Whether the plug-ins that mutate are called once more.
    pub reinvocation: Reinvocation,
    /// The request does not say the name of the object, which is one of a collection.
    pub(in crate::generic) unnamed: bool,
    pub(in crate::generic) reserved: &'a Reserved,
}

impl Attributes<'_> {
    /// "" for what belongs to no namespace.
    pub fn namespace(&self) -> &str {
        &self.context.namespace
    }

    /// The name of the object: that of the path, else its own. Empty where it is yet to be generated.
    pub fn name(&self) -> &str {
        match (self.path_name, self.metadata()) {
            ("", Some(metadata)) => &metadata.name,
            (name, _) => name,
        }
    }

    /// The name that the request is about; empty where it is yet to be generated, or is that of one of a collection.
    pub fn requested_name(&self) -> &str {
        if self.unnamed { "" } else { self.name() }
    }

    /// The namespace that the request is about: that of a namespace is its own name.
    pub fn requested_namespace(&self) -> &str {
        let is_namespace = self.resource.group.is_empty() && self.resource.plural == "namespaces";
        if is_namespace {
            self.requested_name()
        } else {
            self.namespace()
        }
    }

    /// Who asks.
    pub fn user(&self) -> &User {
        &self.context.user
    }

    /// Nothing is to be stored.
    pub fn dry_run(&self) -> bool {
        self.context.dry_run
    }

    /// The resources of the server, to look something up; `None`: it has no others.
    pub fn registry(&self) -> Option<&Registry> {
        self.context.registry().map(|registry| &**registry)
    }

    /// The metadata of the object, if it has any.
    pub fn metadata(&self) -> Option<&ObjectMeta> {
        metadata_of(self.object.as_deref()?)
    }

    /// The metadata of what is there.
    pub fn old_metadata(&self) -> Option<&ObjectMeta> {
        metadata_of(self.old?)
    }

    /// That of the object, to change it.
    pub fn metadata_mut(&mut self) -> Option<&mut ObjectMeta> {
        managedfields::metadata(self.object.as_deref_mut()?.as_reflect_mut())
    }

    /// The object, if it is a `T`.
    pub fn typed<T: Reflect>(&self) -> Option<&T> {
        self.object.as_deref()?.as_any().downcast_ref()
    }

    /// The same, to change it.
    pub fn typed_mut<T: Reflect>(&mut self) -> Option<&mut T> {
        self.object.as_deref_mut()?.as_any_mut().downcast_mut()
    }

    /// What is there, if it is a `T`.
    pub fn old_typed<T: Reflect>(&self) -> Option<&T> {
        self.old?.as_any().downcast_ref()
    }

    /// 403 for this object. One without a name as yet is named by what its name will begin with.
    pub fn forbidden(&self, why: impl Display) -> StatusError {
        let own = self.metadata();
        let names = [
            self.requested_name(),
            own.map_or("", |metadata| &metadata.name),
            own.map_or("", |metadata| &metadata.generate_name),
            "Unknown",
        ];
        let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        StatusError::forbidden(&self.resource.group, &self.resource.plural, name, why)
    }

    /// Tells the client something, once the request succeeds.
    pub fn warn(&self, text: impl Into<String>) {
        self.context.warn(text);
    }

    /// Adds an annotation to what is recorded of the request; see [`Context::annotate`].
    pub fn annotate(&self, name: impl Into<Cow<'static, str>>, text: impl FnOnce() -> String) {
        self.context.annotate(name, text);
    }

    /// As [`Attributes::annotate`], where objects that are sent are recorded too; see [`Context::annotate_request`].
    pub fn annotate_request(&self, name: impl Into<Cow<'static, str>>, text: impl FnOnce() -> String) {
        self.context.annotate_request(name, text);
    }

    /// Keeps a reservation until it is known what becomes of this attempt.
    pub fn reserve(&self, guard: Box<dyn Reservation>) {
        self.reserved.hold(guard);
    }
}

/// The metadata of a kind that has such, be it an object or not.
fn metadata_of(kind: &dyn Kind) -> Option<&ObjectMeta> {
    let (index, _) = kind.desc().field("metadata")?;
    match kind.get(index) {
        Value::Message(metadata) => metadata.as_any().downcast_ref(),
        _ => None,
    }
}
