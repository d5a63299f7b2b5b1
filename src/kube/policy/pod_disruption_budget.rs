//! Pod disruption budgets.

use keelson_server::registry::{Again, KindCode};

use crate::api::policy::v1::PodDisruptionBudget;
use crate::kube::cells;
use crate::kube::metadata;

/// Registers the rules of budgets.
pub fn register(code: &mut KindCode) {
    code.kind::<PodDisruptionBudget>()
        .metadata_checks(metadata::any_finalizer(Again::NOTHING))
        .cells(cells::access::POD_DISRUPTION_BUDGET);
}
