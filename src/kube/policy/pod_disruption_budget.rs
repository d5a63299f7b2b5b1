//! Pod disruption budgets.

use keelson_api::policy::v1::PodDisruptionBudget;
use keelson_registry::{KindCode, RepeatedChecks};

use crate::cells;
use crate::metadata;

/// Registers the rules of budgets.
pub fn register(code: &mut KindCode) {
    code.kind::<PodDisruptionBudget>()
        .metadata_checks(metadata::any_finalizer(RepeatedChecks::NONE))
        .cells(cells::access::POD_DISRUPTION_BUDGET);
}
