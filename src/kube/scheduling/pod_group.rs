//! Groups of pods that are scheduled together.

use keelson_api::scheduling_k8s_io::v1alpha2::PodGroup;
use keelson_registry::{Kept, KindCode};

use crate::cells;
use crate::status_alone::StatusAlone;

const KEPT: &[Kept] = &[
    Kept::at("spec.podGroupTemplateRef"),
    Kept::at("spec.schedulingPolicy"),
    Kept::at("spec.schedulingConstraints"),
    Kept::at("spec.resourceClaims"),
    Kept::at("spec.disruptionMode"),
    Kept::at("spec.priorityClassName"),
    Kept::at("spec.priority"),
];

/// Registers the rules of pod groups.
pub fn register(code: &mut KindCode) {
    code.kind::<PodGroup>()
        .any_strategy(StatusAlone)
        .kept(KEPT)
        .cells(cells::scheduling::POD_GROUP);
}
