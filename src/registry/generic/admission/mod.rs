//! Admission: plug-ins that change and check what is written, deleted and connected to.
//!
//! The verbs ([`super::verbs`]) call the chain and nobody else does: inside each attempt to write, first every plug-in
//! that mutates, then, when the object is prepared and known to be valid, every one that validates. So a plug-in sees
//! what will be stored, and an attempt that loses to another writer is looked at again on what is there by then. Which
//! plug-ins handle which operation of which resource is asked once, when the resource is made: where none does, a write
//! pays for one look at an empty list.

mod attributes;
mod chain;
mod metrics;
mod reinvocation;

pub use attributes::{Attributes, Options, WriteOptions};
pub use chain::{Admission, PluginError, UnknownPlugin};
pub(crate) use chain::{Chain, Chains};
pub use reinvocation::Reinvocation;

use std::sync::Arc;

use keelson_access::lister::Listers;

use prometheus_client::registry::Registry as MetricRegistry;

use super::Verbs;
use super::outcome::{Outcome, now};

/// Why a plug-in can't do with its configuration: an error of its own.
pub type ConfigureError = Box<dyn std::error::Error + Send + Sync>;

/// What is about to be done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// An object is made.
    Create,
    /// One that is there is changed.
    Update,
    /// It is deleted, or its deletion begins.
    Delete,
    /// A stream or a proxy is opened.
    Connect,
}

impl Operation {
    /// All of them, in the order of their declaration.
    pub const ALL: [Operation; 4] = [
        Operation::Create,
        Operation::Update,
        Operation::Delete,
        Operation::Connect,
    ];

    /// The word for it: `CREATE`.
    pub fn word(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

/// An operation of a resource or of one of its subresources, whatever the object.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// What is done.
    pub operation: Operation,
    /// "" for the legacy group.
    pub group: &'a str,
    /// `pods`.
    pub plural: &'a str,
    /// "": the resource itself.
    pub subresource: &'a str,
    /// Objects lie in namespaces.
    pub namespaced: bool,
    /// The namespace of a new object has to be there; questions about a namespace are answered without it.
    pub needs_namespace: bool,
}

impl Scope<'_> {
    /// Whether this is the resource itself, and of this name.
    pub fn is(&self, group: &str, plural: &str) -> bool {
        self.subresource.is_empty() && (self.group, self.plural) == (group, plural)
    }
}

/// What a plug-in does about a [`Scope`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handles {
    /// It is called among the plug-ins that may change the object.
    pub mutates: bool,
    /// It is called among those that see the object as it will be stored.
    pub validates: bool,
}

impl Handles {
    /// It is not called.
    pub const NOTHING: Handles = Handles {
        mutates: false,
        validates: false,
    };
    /// It is called among the plug-ins that may change the object.
    pub const MUTATES: Handles = Handles {
        mutates: true,
        validates: false,
    };
    /// It is called among those that see the object as it will be stored.
    pub const VALIDATES: Handles = Handles {
        mutates: false,
        validates: true,
    };
    /// It is called twice.
    pub const BOTH: Handles = Handles {
        mutates: true,
        validates: true,
    };

    /// `self` where `condition` holds, else nothing.
    #[must_use]
    pub fn when(self, condition: bool) -> Handles {
        match condition {
            true => self,
            false => Handles::NOTHING,
        }
    }
}

/// An admission plug-in. A refusal is an error, mostly 403; it ends the request.
pub trait Plugin: Send + Sync {
    /// The name by which it is switched on and off: `NamespaceLifecycle`.
    fn name(&self) -> &'static str;

    /// Whether it is on where nobody says anything.
    fn enabled_by_default(&self) -> bool {
        true
    }

    /// What it does about this. Asked once for each resource, subresource and operation.
    fn handles(&self, scope: &Scope<'_>) -> Handles;

    /// Resources, by group and plural, that it looks at with each request: the store holds them in memory.
    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Takes its part of the file that configures plug-ins; `None`: the file does not name it. Called once, before
    /// anything else, where the plug-in is on.
    ///
    /// # Errors
    /// What is wrong with it: the server does not start.
    fn configure(&self, _configuration: Option<&str>) -> Result<(), ConfigureError> {
        Ok(())
    }

    /// Hands over the objects of the server, once, before any request. What it holds of `verbs` must not keep them
    /// alive.
    fn attach(&self, _listers: &dyn Listers, _verbs: &Arc<Verbs>) {}

    /// Shows its metrics.
    fn register(&self, _registry: &mut MetricRegistry) {}

    /// Changes the object, or refuses. What it sets has no owner in `managedFields`.
    fn admit<'a>(&'a self, _attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        now(Ok(()))
    }

    /// Refuses, or lets pass.
    fn validate<'a>(&'a self, _attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        now(Ok(()))
    }
}
