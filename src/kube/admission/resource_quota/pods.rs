//! Pods in quotas: themselves, and what they ask for and may use.

use std::collections::{BTreeMap, BTreeSet};

use keelson_api::core::v1::{
    Container, Pod, PodAffinityTerm, ResourceRequirements, ScopedResourceSelectorRequirement as Selector,
};
use keelson_machinery::time::Time;

use super::amounts::{Amounts, count};
use super::devices::CLASS;
use super::evaluator::{OperatorError, is_extended_request, selects};
use crate::core::pod_resources::{LIMITS, REQUESTS, limits_of, requests_of, states_whole};
use crate::core::pod_spec;
use crate::core::resource_name::{is_extended, is_huge_pages};

const COUNT: &str = "count/pods";
const PODS: &str = "pods";
/// Counted by their own name and as requests and limits.
const COUNTED: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// What every container has to say something of, where a quota bounds it.
const STATED: [&str; 6] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];

/// Whether pods use a resource of this name.
pub fn concerns(name: &str) -> bool {
    let request = name.strip_prefix("requests.");
    let base = request.or(name.strip_prefix("limits.")).unwrap_or(name);
    matches!(name, COUNT | PODS)
        || COUNTED.contains(&base)
        || is_huge_pages(request.unwrap_or(name))
        || is_extended_request(name)
}

/// What a pod uses. One that has ended, or should have by `now`, takes its place and nothing else.
pub fn usage(pod: &Pod, now: Time) -> Amounts {
    let mut amounts = Amounts::from([(COUNT.to_owned(), count(1))]);
    if !has_ended(pod, now) {
        amounts.extend(amounts_of(&requests_of(pod), &limits_of(pod)));
    }
    amounts
}

fn has_ended(pod: &Pod, now: Time) -> bool {
    if matches!(pod.status.phase.as_str(), "Failed" | "Succeeded") {
        return true;
    }
    let deleted = pod
        .metadata
        .deletion_timestamp
        .zip(pod.metadata.deletion_grace_period_seconds);
    deleted.is_some_and(|(at, grace)| now.unix_seconds() > at.unix_seconds().saturating_add(grace))
}

/// Amounts under the names that quotas have for them.
fn amounts_of(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut amounts = Amounts::from([(PODS.to_owned(), count(1))]);
    for name in COUNTED {
        if let Some(request) = requests.get(name) {
            amounts.insert(name.to_owned(), request.clone());
            amounts.insert(format!("requests.{name}"), request.clone());
        }
        if let Some(limit) = limits.get(name) {
            amounts.insert(format!("limits.{name}"), limit.clone());
        }
    }
    for (name, request) in requests {
        if is_huge_pages(name) {
            amounts.insert(name.clone(), request.clone());
        }
        if is_huge_pages(name) || is_extended(name) || name.starts_with(CLASS) {
            amounts.insert(format!("requests.{name}"), request.clone());
        }
    }
    amounts
}

/// Why a pod can't be counted: containers that don't say what they want of what is bounded.
pub fn constraint(required: &[&String], pod: &Pod) -> Option<String> {
    if states_whole(&pod.spec, REQUESTS) || states_whole(&pod.spec, LIMITS) {
        return None;
    }
    let required = required.iter().filter(|name| STATED.contains(&name.as_str()));
    let required: BTreeSet<&str> = required.map(|name| name.as_str()).collect();
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Container { name, resources, .. } in pod.spec.containers.iter().chain(&pod.spec.init_containers) {
        for resource in required.iter().filter(|resource| !states(resources, resource)) {
            missing.entry(resource).or_default().insert(name);
        }
    }
    let text = |(resource, names): (&&str, &BTreeSet<&str>)| {
        let names: Vec<&str> = names.iter().copied().collect();
        format!("{resource} for: {}", names.join(","))
    };
    let texts: Vec<String> = missing.iter().map(text).collect();
    (!texts.is_empty()).then(|| format!("must specify {}", texts.join("; ")))
}

fn states(resources: &ResourceRequirements, name: &str) -> bool {
    match name.strip_prefix("limits.") {
        Some(name) => resources.limits.contains_key(name),
        None => resources
            .requests
            .contains_key(name.strip_prefix("requests.").unwrap_or(name)),
    }
}

/// Whether a pod ends by itself.
pub fn is_terminating(pod: &Pod) -> bool {
    pod.spec.active_deadline_seconds.is_some_and(|seconds| seconds >= 0)
}

/// Whether a pod is in a scope.
pub fn is_in_scope(selector: &Selector, pod: &Pod) -> Result<bool, OperatorError> {
    let is_best_effort = || pod_spec::class(&pod.spec) == "BestEffort";
    Ok(match selector.scope_name.as_str() {
        "Terminating" => is_terminating(pod),
        "NotTerminating" => !is_terminating(pod),
        "BestEffort" => is_best_effort(),
        "NotBestEffort" => !is_best_effort(),
        "PriorityClass" => {
            let name = pod.spec.priority_class_name.as_str();
            return selects(selector, &[name][..usize::from(!name.is_empty())]);
        }
        "CrossNamespacePodAffinity" => looks_beyond_its_namespace(pod),
        _ => false,
    })
}

fn looks_beyond_its_namespace(pod: &Pod) -> bool {
    let Some(affinity) = pod.spec.affinity.as_deref() else {
        return false;
    };
    let mut terms: Vec<&PodAffinityTerm> = Vec::new();
    if let Some(towards) = affinity.pod_affinity.as_deref() {
        terms.extend(&towards.required_during_scheduling_ignored_during_execution);
        let preferred = &towards.preferred_during_scheduling_ignored_during_execution;
        terms.extend(preferred.iter().map(|weighted| &weighted.pod_affinity_term));
    }
    if let Some(away) = affinity.pod_anti_affinity.as_deref() {
        terms.extend(&away.required_during_scheduling_ignored_during_execution);
        let preferred = &away.preferred_during_scheduling_ignored_during_execution;
        terms.extend(preferred.iter().map(|weighted| &weighted.pod_affinity_term));
    }
    terms
        .iter()
        .any(|term| !term.namespaces.is_empty() || term.namespace_selector.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::resource_quota::amounts::text;
    use crate::testing::read;

    const NOW: i64 = 1_700_000_000;

    fn pod(spec: &str) -> Pod {
        read(&format!(r#"{{"spec":{spec}}}"#))
    }

    #[test]
    fn pods_are_counted_under_all_names() {
        let one = r#"{"containers":[{"name":"c","resources":{
            "requests":{"cpu":"1","hugepages-2Mi":"2Mi","example.com/gpu":"2","x":"1"},"limits":{"memory":"1Gi"}}}]}"#;
        let usage_of = |pod: &Pod| usage(pod, Time::from_unix(NOW, 0));
        assert_eq!(
            text(&usage_of(&pod(one))),
            "count/pods=1,cpu=1,hugepages-2Mi=2Mi,limits.memory=1Gi,pods=1,requests.cpu=1,requests.example.com/gpu=2,\
             requests.hugepages-2Mi=2Mi"
        );
        assert!(usage_of(&pod(one)).keys().all(|name| concerns(name)));
        let ended: Pod = read(r#"{"status":{"phase":"Failed"}}"#);
        assert_eq!(text(&usage_of(&ended)), "count/pods=1");
        let mut going = pod(one);
        going.metadata.deletion_timestamp = Some(Time::from_unix(NOW - 31, 0));
        going.metadata.deletion_grace_period_seconds = Some(30);
        assert_eq!(text(&usage_of(&going)), "count/pods=1");
        going.metadata.deletion_grace_period_seconds = Some(60);
        assert!(usage_of(&going).len() > 1);
        assert!(!concerns("services") && !concerns("storage") && concerns("limits.ephemeral-storage"));
    }

    #[test]
    fn containers_say_what_they_want_of_what_is_bounded() {
        let spec = r#"{"containers":[{"name":"b"},{"name":"a","resources":{"requests":{"cpu":"1"}}}],
                       "initContainers":[{"name":"i","resources":{"limits":{"memory":"1"}}}]}"#;
        let required = ["limits.memory", "cpu", "pods"].map(str::to_owned);
        let required: Vec<&String> = required.iter().collect();
        assert_eq!(
            constraint(&required, &pod(spec)).as_deref(),
            Some("must specify cpu for: b,i; limits.memory for: a,b")
        );
        assert_eq!(constraint(&required[2..], &pod(spec)), None);
        let whole = r#"{"containers":[{"name":"b"}],"resources":{"limits":{"cpu":"1"}}}"#;
        assert_eq!(constraint(&required, &pod(whole)), None);
    }

    #[test]
    fn pods_are_in_scopes() {
        let beyond = r#"{"affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
            {"weight":1,"podAffinityTerm":{"topologyKey":"a","namespaceSelector":{}}}]}}}"#;
        let within = r#"{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
            {"topologyKey":"a"}]}}}"#;
        for (scope, spec, expected) in [
            ("Terminating", r#"{"activeDeadlineSeconds":0}"#, true),
            ("Terminating", "{}", false),
            ("NotTerminating", "{}", true),
            ("BestEffort", "{}", true),
            (
                "NotBestEffort",
                r#"{"containers":[{"name":"c","resources":{"limits":{"cpu":"1"}}}]}"#,
                true,
            ),
            ("PriorityClass", r#"{"priorityClassName":"a"}"#, true),
            ("PriorityClass", "{}", false),
            ("CrossNamespacePodAffinity", beyond, true),
            ("CrossNamespacePodAffinity", within, false),
            ("Other", "{}", false),
        ] {
            let selector = Selector {
                scope_name: scope.to_owned(),
                operator: "Exists".to_owned(),
                values: Vec::new(),
            };
            assert_eq!(is_in_scope(&selector, &pod(spec)), Ok(expected), "{scope} {spec}");
        }
    }
}
