//! NamespaceLifecycle: nothing is made in a namespace that is absent or going, and the namespaces that the system needs
//! stay.
//!
//! Whether a namespace is there is looked up in the store's memory first, so that a create costs one request to a store
//! that lies elsewhere. What this server has done to a namespace holds at once; what another has done, a moment later:
//! whoever clears a namespace that goes waits for longer than that.

use keelson_machinery::status::{Cause, StatusError};

use super::Operation;
use crate::registry::{Endpoint, Registry};

const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) async fn admit(
    registry: &Registry,
    endpoint: &Endpoint,
    operation: Operation,
    namespace: &str,
    name: &str,
) -> Result<(), StatusError> {
    let kind = endpoint.kind;
    let is_namespace = kind.group.is_empty() && kind.plural == "namespaces";
    if is_namespace && operation == Operation::Delete && IMMORTAL.contains(&name) {
        return Err(StatusError::forbidden(
            "",
            "namespaces",
            name,
            "this namespace may not be deleted",
        ));
    }
    if operation != Operation::Create || !kind.namespaced {
        return Ok(());
    }
    // A server without namespaces as objects has nothing to check them against.
    let Some(namespaces) = registry.resource("", "namespaces") else {
        return Ok(());
    };
    match namespaces.find_deleted("", namespace).await? {
        None => return Err(StatusError::not_found("", "namespaces", namespace)),
        Some(false) => return Ok(()),
        Some(true) => {}
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut error = StatusError::forbidden(kind.group, kind.plural, name, why);
    error.details_mut().causes.push(Cause {
        reason: "NamespaceTerminating",
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    });
    Err(error)
}
