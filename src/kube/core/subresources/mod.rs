//! Subresources of the core group that make or do something, and its kinds without storage.

pub mod binding;
mod component_status;
pub mod ephemeral;
pub mod eviction;
mod kubelet;
pub mod log;
mod log_options;
pub mod proxy;
pub mod resize;
pub mod stream;
pub mod token;

use keelson_api::core::v1::{Binding, ComponentStatus, Pod, PodSpec};
use keelson_machinery::equality;
use keelson_registry::KindCode;

use crate::cells;

/// Registers what answers for the kinds without storage. The subresources stand with their kinds.
pub fn register(code: &mut KindCode) {
    code.kind::<Binding>().resource(binding::Binder);
    code.kind::<ComponentStatus>()
        .resource(component_status::Components)
        .cells(cells::quota::COMPONENT_STATUS);
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
