//! Cells of disruption budgets.

use keelson_api::policy::v1::PodDisruptionBudget;
use keelson_machinery::intstr::IntOrString;

cells! { pub const POD_DISRUPTION_BUDGET: PodDisruptionBudget =
    "pod_disruption_budget_allowed_disruptions" => |o| o.status.disruptions_allowed,
    "pod_disruption_budget_max_unavailable" => |o| number(o.spec.max_unavailable.as_ref()),
    "pod_disruption_budget_min_available" => |o| number(o.spec.min_available.as_ref()),
}

/// A count or a percentage.
fn number(value: Option<&IntOrString>) -> String {
    value.map_or_else(|| "N/A".to_owned(), ToString::to_string)
}
