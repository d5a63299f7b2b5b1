//! Workloads: what pod groups are made of.

use keelson_api::scheduling_k8s_io::v1alpha2::Workload;
use keelson_registry::{Kept, KindCode};

/// Registers the rules of workloads.
pub fn register(code: &mut KindCode) {
    code.kind::<Workload>()
        .kept([Kept::at("spec.controllerRef"), Kept::at("spec.podGroupTemplates")]);
}
