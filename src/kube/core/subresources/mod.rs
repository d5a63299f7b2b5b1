//! Subresources of the core group that make or do something, and its kinds without storage.

mod binding;
mod component_status;
pub mod ephemeral;
mod eviction;
mod kubelet;
mod log;
mod log_options;
mod proxy;
pub mod resize;
mod stream;
mod token;

use keelson_machinery::equality;
use keelson_server::registry::KindCode;

use crate::api::core::v1::{Pod, PodSpec};

/// Registers them.
pub fn register(code: &mut KindCode) {
    code.resource("", "bindings", binding::Binder);
    code.resource("", "componentstatuses", component_status::Components);
    code.subresource("", "pods", "binding", binding::Binder);
    code.subresource("", "pods", "eviction", eviction::Evictor);
    code.subresource("", "pods", "log", log::Log);
    code.subresource("", "pods", "attach", stream::Attach);
    code.subresource("", "pods", "exec", stream::Exec);
    code.subresource("", "pods", "portforward", stream::PortForward);
    code.subresource("", "pods", "proxy", proxy::OfPod);
    code.subresource("", "services", "proxy", proxy::OfService);
    code.subresource("", "nodes", "proxy", proxy::OfNode);
    code.subresource("", "serviceaccounts", "token", token::Issue);
}

/// Makes the new pod the old one with its specification changed by `change`; that counts as a new generation.
fn only_spec(new: &mut Pod, old: &Pod, change: impl FnOnce(&mut PodSpec)) {
    let mut pod = old.clone();
    change(&mut pod.spec);
    if !equality::equal(&pod.spec, &old.spec) {
        pod.metadata.generation = old.metadata.generation + 1;
    }
    // Who changed what is kept by others than this rule, and so is the version that the change is of.
    pod.metadata.managed_fields = std::mem::take(&mut new.metadata.managed_fields);
    pod.metadata.resource_version = std::mem::take(&mut new.metadata.resource_version);
    *new = pod;
}
