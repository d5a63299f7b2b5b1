//! Pod disruption budgets.

use keelson_api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use keelson_machinery::field::ErrorList;
use keelson_registry::{Context, KindCode, Strategy};

use crate::apps::rollout;
use crate::cells;
use crate::conditions;
use crate::faults::{self, Faults};
use crate::metadata;
use crate::typed::shown_internal;

/// Registers the rules of budgets.
pub fn register(code: &mut KindCode) {
    code.kind::<PodDisruptionBudget>()
        .strategy(PodDisruptionBudgetStrategy)
        .metadata_checks(metadata::NONE)
        .cells(cells::policy::POD_DISRUPTION_BUDGET);
}

/// The rules of budgets.
struct PodDisruptionBudgetStrategy;

impl Strategy for PodDisruptionBudgetStrategy {
    type Object = PodDisruptionBudget;

    fn validate(&self, _context: &Context, new: &PodDisruptionBudget, old: Option<&PodDisruptionBudget>) -> ErrorList {
        let was = old.and_then(|old| old.spec.selector.as_deref());
        let is_odd = faults::are_in(|f| f.selector("", was));
        faults::of_spec(|f| check(f, &new.spec, is_odd))
    }

    fn validate_status_update(
        &self,
        _context: &Context,
        new: &PodDisruptionBudget,
        _old: &PodDisruptionBudget,
    ) -> ErrorList {
        faults::of_status(|f| {
            conditions::check(f, &new.status.conditions);
            f.counts(&new.status, &["disruptionsAllowed", "currentHealthy"]);
            f.counts(&new.status, &["desiredHealthy", "expectedPods"]);
        })
    }
}

/// One bound, and the pods that it is for. Odd values of labels are let through if there are some already.
fn check(f: &mut Faults<'_>, spec: &PodDisruptionBudgetSpec, is_odd: bool) {
    let bounds = [
        ("minAvailable", spec.min_available.as_ref()),
        ("maxUnavailable", spec.max_unavailable.as_ref()),
    ];
    if bounds.iter().all(|(_, bound)| bound.is_some()) {
        f.invalid(
            shown_internal(spec),
            "minAvailable and maxUnavailable cannot be both set",
        );
    }
    for (name, bound) in bounds {
        f.some(name, bound, rollout::positive_or_percent);
        f.some(name, bound, rollout::at_most_all);
    }
    f.selector_as_stored("selector", spec.selector.as_deref(), is_odd);
    f.some(
        "unhealthyPodEvictionPolicy",
        spec.unhealthy_pod_eviction_policy.as_ref(),
        |f, policy| f.one_of(policy, &["AlwaysAllow", "IfHealthyBudget"]),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn a_budget_has_one_bound() {
        for (spec, expected) in [
            (r#""minAvailable":"50%""#, ""),
            (r#""maxUnavailable":0"#, ""),
            (
                r#""minAvailable":"a","maxUnavailable":1"#,
                "spec: Invalid value: {\"MinAvailable\":\"a\",\"Selector\":null,\"MaxUnavailable\":1,\
                 \"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both set\n\
                 spec.minAvailable: Invalid value: \"a\": a valid percent string must be a numeric string followed by an \
                 ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
            ),
            (
                r#""maxUnavailable":"150%""#,
                "spec.maxUnavailable: Invalid value: \"150%\": must not be greater than 100%",
            ),
        ] {
            let budget: PodDisruptionBudget = read(&format!(r#"{{"spec":{{{spec}}}}}"#));
            let found = PodDisruptionBudgetStrategy.validate(&context(), &budget, None);
            assert_eq!(lines(&found), expected, "{spec}");
        }
    }

    #[test]
    fn odd_labels_stay() {
        let odd: PodDisruptionBudget =
            read(r#"{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"In","values":["b!"]}]}}}"#);
        let rules = PodDisruptionBudgetStrategy;
        assert_eq!(rules.validate(&context(), &odd, None).len(), 1);
        assert_eq!(rules.validate(&context(), &odd, Some(&odd)).len(), 0);
    }

    #[test]
    fn counts_are_not_below_zero() {
        let budget: PodDisruptionBudget =
            read(r#"{"status":{"currentHealthy":-1,"conditions":[{"type":"","status":"x"}]}}"#);
        let found = lines(&PodDisruptionBudgetStrategy.validate_status_update(&context(), &budget, &budget));
        assert!(found.starts_with("status.conditions[0].type: "), "{found}");
        assert!(
            found.ends_with("status.currentHealthy: Invalid value: -1: must be greater than or equal to 0"),
            "{found}"
        );
    }
}
