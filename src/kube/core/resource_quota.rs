//! Resource quotas.

use std::collections::BTreeSet;

use keelson_api::core::v1::{ResourceQuota, ResourceQuotaSpec, ResourceQuotaStatus, ScopedResourceSelectorRequirement};
use keelson_machinery::field::ErrorList;
use keelson_machinery::quantity::Quantity;
use keelson_registry::{Context, KindCode, Strategy};

use super::resource_check;
use super::resource_list::round;
use crate::cells;
use crate::faults::{self, Faults};
use crate::metadata;
use crate::typed::{self, IMMUTABLE};

const OTHER_RESOURCE: &str = "unsupported scope applied to resource";
const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];
/// Scopes that something is in or not, without a value.
const PLAIN_SCOPES: [&str; 5] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "Terminating",
];
/// Of these there are bounds of requests and bounds of limits.
const REQUESTED: [&str; 4] = ["cpu", "memory", "storage", "ephemeral-storage"];
const POD_RESOURCES: [&str; 6] = [
    "cpu",
    "memory",
    "limits.cpu",
    "limits.memory",
    "requests.cpu",
    "requests.memory",
];

/// Registers the rules of quotas.
pub fn register(code: &mut KindCode) {
    code.kind::<ResourceQuota>()
        .strategy(ResourceQuotaStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::quota::RESOURCE_QUOTA);
}

/// The rules of quotas.
struct ResourceQuotaStrategy;

impl Strategy for ResourceQuotaStrategy {
    type Object = ResourceQuota;

    /// More is requested than there may be of limits.
    fn warnings(&self, new: &ResourceQuota, old: Option<&ResourceQuota>) -> Vec<String> {
        match old {
            None => REQUESTED
                .iter()
                .filter_map(|name| beyond_limit(&new.spec, name))
                .collect(),
            Some(_) => Vec::new(),
        }
    }

    /// What a quota counts stays, in whatever order it is said.
    fn validate(&self, _context: &Context, new: &ResourceQuota, old: Option<&ResourceQuota>) -> ErrorList {
        let scopes = |quota: &ResourceQuota| quota.spec.scopes.iter().cloned().collect::<BTreeSet<_>>();
        faults::of_object(|f| {
            check(&mut f.at("spec"), &new.spec);
            match old {
                None => status(f, &new.status),
                Some(old) if scopes(new) != scopes(old) => f
                    .at("spec")
                    .at("scopes")
                    .invalid(typed::shown_texts(&new.spec.scopes), IMMUTABLE),
                Some(_) => {}
            }
        })
    }

    fn validate_status_update(&self, _context: &Context, new: &ResourceQuota, _old: &ResourceQuota) -> ErrorList {
        faults::of_object(|f| status(f, &new.status))
    }
}

/// What is said of a bound of requests that is larger than that of limits. `cpu` and `memory` bound requests too.
fn beyond_limit(spec: &ResourceQuotaSpec, resource: &str) -> Option<String> {
    let long = format!("requests.{resource}");
    let requested = match spec.hard.get_key_value(&long) {
        None if matches!(resource, "cpu" | "memory") => spec.hard.get_key_value(resource),
        found => found,
    };
    let (name, request) = requested?;
    let (limit_name, limit) = spec.hard.get_key_value(&format!("limits.{resource}"))?;
    let text = format!("ResourceQuota {name} ({request}) should be less than {limit_name} ({limit})");
    (request > limit).then_some(text)
}

fn status(f: &mut Faults<'_>, status: &ResourceQuotaStatus) {
    let mut f = f.at("status");
    f.each_key("hard", &status.hard, bound);
    f.each_key("used", &status.used, bound);
}

fn bound(f: &mut Faults<'_>, name: &str, amount: &Quantity) {
    resource_check::of_quota(f, name);
    resource_check::amount(f, name, amount);
}

fn check(f: &mut Faults<'_>, spec: &ResourceQuotaSpec) {
    f.each_key("hard", &spec.hard, bound);
    let shown = spec.scopes.as_slice();
    let outside = SCOPES.map(|scope| not_in_scope(spec, scope));
    // Of a scope that there is not nothing is out.
    let outside = |scope: &str| {
        SCOPES
            .iter()
            .position(|known| *known == scope)
            .map_or(0, |place| outside[place])
    };
    f.at("scopes").while_room(&spec.scopes, |f, scope| {
        if !SCOPES.contains(&scope.as_str()) {
            f.invalid(shown, "unsupported scope");
        }
        f.while_room(0..outside(scope), |f, _| f.invalid(shown, OTHER_RESOURCE));
    });
    conflicts(
        &mut f.at("scopes"),
        spec.scopes.iter().map(String::as_str).collect(),
        shown,
    );
    if let Some(selector) = spec.scope_selector.as_deref() {
        let mut f = f.at("scopeSelector");
        let mut f = f.at("matchExpressions");
        f.while_room(&selector.match_expressions, |f, condition| {
            if !SCOPES.contains(&condition.scope_name.as_str()) {
                f.at("scopeName").invalid(&condition.scope_name, "unsupported scope");
            }
            f.while_room(0..outside(&condition.scope_name), |f, _| {
                f.invalid(typed::shown_internal(selector), OTHER_RESOURCE);
            });
            scope_condition(f, condition);
        });
        let scopes = selector.match_expressions.iter();
        conflicts(&mut f, scopes.map(|c| c.scope_name.as_str()).collect(), shown);
    }
}

/// How many of the bounded resources things in a scope don't have. Scopes and resources may be very many, so it is
/// counted once for each scope that there is.
fn not_in_scope(spec: &ResourceQuotaSpec, scope: &str) -> usize {
    let fits = |name: &str| match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        _ => name == "pods" || POD_RESOURCES.contains(&name),
    };
    let others = spec
        .hard
        .keys()
        .filter(|name| !fits(name) && resource_check::is_of_quota(name));
    others.count()
}

fn conflicts(f: &mut Faults<'_>, scopes: BTreeSet<&str>, shown: &[String]) {
    for (one, other) in [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")] {
        if scopes.contains(one) && scopes.contains(other) {
            f.invalid(shown, "conflicting scopes");
        }
    }
}

/// A condition on a scope; the API tells no place in the list.
fn scope_condition(f: &mut Faults<'_>, condition: &ScopedResourceSelectorRequirement) {
    let (scope, operator) = (condition.scope_name.as_str(), condition.operator.as_str());
    if PLAIN_SCOPES.contains(&scope) && operator != "Exists" {
        let scopes = "ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                      ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
        let text = format!("must be 'Exists' when scope is any of {scopes}");
        f.at("operator").invalid(operator, text);
    }
    let values = condition.values.as_slice();
    match operator {
        "In" | "NotIn" if values.is_empty() => f
            .at("values")
            .required("must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"),
        "Exists" | "DoesNotExist" if !values.is_empty() => f.at("values").invalid(
            values,
            "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
        ),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => f.at("operator").invalid(other, "not a valid selector operator"),
    }
}

/// Defaults in code of resource quotas.
fn defaults(o: &mut ResourceQuota) {
    round(&mut o.spec.hard);
    round(&mut o.status.hard);
    round(&mut o.status.used);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn requests_are_not_larger_than_limits() {
        for (hard, expected) in [
            (
                r#""requests.cpu":"2","limits.cpu":"1""#,
                "requests.cpu (2) should be less than limits.cpu (1)",
            ),
            (
                r#""memory":"2Gi","limits.memory":"1Gi""#,
                "memory (2Gi) should be less than limits.memory (1Gi)",
            ),
            (r#""cpu":"9","requests.cpu":"1","limits.cpu":"1""#, ""),
            (r#""storage":"2","limits.storage":"1""#, ""),
        ] {
            let quota: ResourceQuota = read(&format!(r#"{{"spec":{{"hard":{{{hard}}}}}}}"#));
            let found = ResourceQuotaStrategy.warnings(&quota, None).join("\n");
            let expected = if expected.is_empty() {
                String::new()
            } else {
                format!("ResourceQuota {expected}")
            };
            assert_eq!(found, expected, "{hard}");
            assert!(ResourceQuotaStrategy.warnings(&quota, Some(&quota)).is_empty());
        }
    }

    #[test]
    fn scopes_stay() {
        let changed = |new: &str| {
            let read = |scopes: &str| read::<ResourceQuota>(&format!(r#"{{"spec":{{"scopes":[{scopes}]}}}}"#));
            let old = read(r#""BestEffort","PriorityClass""#);
            lines(&ResourceQuotaStrategy.validate(&context(), &read(new), Some(&old)))
        };
        assert_eq!(changed(r#""PriorityClass","BestEffort","PriorityClass""#), "");
        assert_eq!(
            changed(r#""BestEffort""#),
            "spec.scopes: Invalid value: [\"BestEffort\"]: field is immutable"
        );
    }

    #[test]
    fn scopes_are_known_and_of_what_is_bounded() {
        for (spec, expected) in [
            (
                r#"{"hard":{"cpu":"1","pods":"2","a.b/c":"1"},"scopes":["NotBestEffort"]}"#,
                "",
            ),
            (
                r#"{"hard":{"pods":"1500m","foo":"-1"}}"#,
                "spec.hard[foo] spec.hard[foo] spec.hard[foo] spec.hard[pods]",
            ),
            (r#"{"hard":{"cpu":"1"},"scopes":["BestEffort"]}"#, "spec.scopes"),
            (
                r#"{"scopes":["Terminating","x","NotTerminating"]}"#,
                "spec.scopes spec.scopes",
            ),
            (
                r#"{"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["a"]}]}}"#,
                "",
            ),
            (
                r#"{"scopeSelector":{"matchExpressions":[{"scopeName":"x","operator":"In"},
                    {"scopeName":"Terminating","operator":"NotIn","values":["a"]},{"scopeName":"NotTerminating","operator":"y"}]}}"#,
                "scopeName values operator operator operator ",
            ),
        ] {
            let quota: ResourceQuota = read(&format!(r#"{{"spec":{spec}}}"#));
            let found = lines(&ResourceQuotaStrategy.validate(&context(), &quota, None));
            let fields: Vec<&str> = found.lines().filter_map(|line| line.split(": ").next()).collect();
            let told = fields.join(" ").replace("spec.scopeSelector.matchExpressions.", "");
            assert_eq!(
                told.replace("spec.scopeSelector.matchExpressions", ""),
                expected,
                "{spec}"
            );
        }
    }
}
