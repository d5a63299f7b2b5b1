//! NamespaceLifecycle: nothing is made in a namespace that is absent or going, and the namespaces that the system needs
//! stay.
//!
//! Whether a namespace is there is looked up in the store's memory first, so that a create costs one request to a store
//! that lies elsewhere. What this server has done to a namespace holds at once; what another has done, a moment later:
//! whoever clears a namespace that goes waits for longer than that.

use keelson_machinery::status::{Cause, StatusError};
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};

const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The plug-in.
pub struct NamespaceLifecycle;

impl Plugin for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    /// What is deleted or changed in a namespace is no matter of its own.
    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let handled = match scope.operation {
            Operation::Create => scope.namespaced && scope.needs_namespace,
            Operation::Delete => scope.is("", "namespaces"),
            Operation::Update | Operation::Connect => false,
        };
        Handles::MUTATES.when(handled)
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[("", "namespaces")]
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        match attributes.operation {
            Operation::Delete => now(deletion(attributes)),
            _ => later(creation(attributes)),
        }
    }
}

fn deletion(attributes: &Attributes<'_>) -> Result<(), StatusError> {
    let name = attributes.name();
    match IMMORTAL.contains(&name) {
        true => Err(StatusError::forbidden(
            "",
            "namespaces",
            name,
            "this namespace may not be deleted",
        )),
        false => Ok(()),
    }
}

async fn creation(attributes: &Attributes<'_>) -> Result<(), StatusError> {
    let namespace = attributes.namespace();
    // A server without namespaces as objects has nothing to check them against.
    let Some(namespaces) = attributes
        .registry()
        .and_then(|registry| registry.resource("", "namespaces"))
    else {
        return Ok(());
    };
    match namespaces.find_deleted("", namespace).await? {
        None => Err(StatusError::not_found("", "namespaces", namespace)),
        Some(false) => Ok(()),
        Some(true) => Err(terminating(attributes)),
    }
}

fn terminating(attributes: &Attributes<'_>) -> StatusError {
    let (namespace, kind) = (attributes.namespace(), attributes.kind);
    let generated = || attributes.metadata().map_or("", |metadata| &*metadata.generate_name);
    let name = match attributes.name() {
        "" => generated(),
        name => name,
    };
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut error = StatusError::forbidden(&kind.group, &kind.plural, name, why);
    error.details_mut().causes.push(Cause {
        reason: "NamespaceTerminating".into(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    });
    error
}
