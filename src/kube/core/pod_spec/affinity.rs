//! Affinity and topology spread of a pod: nodes and other pods that it is drawn to, and how it is spread among domains.

use std::collections::{BTreeMap, HashMap, HashSet};

use keelson_api::core::v1::{
    Affinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodAffinityTerm, Toleration,
    TopologySpreadConstraint, WeightedPodAffinityTerm,
};
use keelson_machinery::meta::v1::{LabelSelector, LabelSelectorRequirement};
use keelson_machinery::validation::labels;

use super::Options;
use crate::faults::{self, Faults, given};

/// What taints do, in the order in which kube-apiserver lists it.
pub const TAINT_EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const IN_BOTH: &str = "exists in both matchLabelKeys and labelSelector";
const NO_VALUE: &str = "value must be empty when `operator` is 'Exists'";
/// Operators of tolerations, as the text that refuses one names them.
const OPERATORS: [&str; 4] = ["Equal", "Exists", "Lt", "Gt"];
const NO_SELECTOR: &str = "must not be specified when labelSelector is not set";

/// Checks the affinity of a pod.
pub fn check(f: &mut Faults<'_>, affinity: &Affinity, options: &Options) {
    if let Some(nodes) = affinity.node_affinity.as_deref() {
        let mut f = f.at("nodeAffinity");
        let required = nodes.required_during_scheduling_ignored_during_execution.as_deref();
        f.some(
            "requiredDuringSchedulingIgnoredDuringExecution",
            required,
            |f, selector| {
                node_selector(f, selector, options.bad_node_values);
            },
        );
        let preferred = &nodes.preferred_during_scheduling_ignored_during_execution;
        f.each(
            "preferredDuringSchedulingIgnoredDuringExecution",
            preferred,
            |f, term| {
                weight(f, term.weight);
                // What is only preferred need not be there.
                node_term(&mut f.at("preference"), &term.preference, true);
            },
        );
    }
    for (name, required, preferred) in pod_affinities(affinity) {
        pod_terms(&mut f.at(name), (required, preferred), options);
    }
}

/// Terms that have to be met, and those that had better be.
type PodTerms<'a> = (&'static str, &'a [PodAffinityTerm], &'a [WeightedPodAffinityTerm]);

/// The terms about other pods, of what draws to them and of what keeps away, by the names of the fields.
fn pod_affinities(affinity: &Affinity) -> impl Iterator<Item = PodTerms<'_>> {
    let together = affinity.pod_affinity.as_deref().map(|pods| {
        let required = &*pods.required_during_scheduling_ignored_during_execution;
        let preferred = &*pods.preferred_during_scheduling_ignored_during_execution;
        ("podAffinity", required, preferred)
    });
    let apart = affinity.pod_anti_affinity.as_deref().map(|pods| {
        let required = &*pods.required_during_scheduling_ignored_during_execution;
        let preferred = &*pods.preferred_during_scheduling_ignored_during_execution;
        ("podAntiAffinity", required, preferred)
    });
    together.into_iter().chain(apart)
}

/// All terms about other pods.
pub fn all_pod_terms(affinity: &Affinity) -> impl Iterator<Item = &PodAffinityTerm> {
    pod_affinities(affinity).flat_map(|(_, required, preferred)| {
        let preferred = preferred.iter().map(|term| &term.pod_affinity_term);
        required.iter().chain(preferred)
    })
}

fn weight(f: &mut Faults<'_>, weight: i32) {
    f.at("weight")
        .invalid_if(!(1..=100).contains(&weight), weight, "must be in the range 1-100");
}

/// Checks a selector of nodes. `lenient`: values of labels that are none are let through.
pub fn node_selector(f: &mut Faults<'_>, selector: &NodeSelector, lenient: bool) {
    if selector.node_selector_terms.is_empty() {
        f.at("nodeSelectorTerms")
            .required("must have at least one node selector term");
    }
    f.each("nodeSelectorTerms", &selector.node_selector_terms, |f, term| {
        node_term(f, term, lenient);
    });
}

/// Whether a term names a value of a label that is none.
pub fn has_bad_values(terms: &[NodeSelectorTerm]) -> bool {
    let mut values = terms
        .iter()
        .flat_map(|term| &term.match_expressions)
        .flat_map(|e| &e.values);
    values.any(|value| !labels::label_value(value).is_empty())
}

fn node_term(f: &mut Faults<'_>, term: &NodeSelectorTerm, lenient: bool) {
    f.each("matchExpressions", &term.match_expressions, |f, expression| {
        node_expression(f, expression, lenient);
    });
    f.each("matchFields", &term.match_fields, node_field);
}

fn node_expression(f: &mut Faults<'_>, expression: &NodeSelectorRequirement, lenient: bool) {
    const SOME: &str = "must be specified when `operator` is 'In' or 'NotIn'";
    const NONE: &str = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
    const ONE: &str = "must be specified single value when `operator` is 'Lt' or 'Gt'";
    let values = &expression.values;
    match expression.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => f.at("values").required(SOME),
        "Exists" | "DoesNotExist" if !values.is_empty() => f.at("values").forbidden(NONE),
        "Gt" | "Lt" if values.len() != 1 => f.at("values").required(ONE),
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => f.at("operator").invalid(other, "not a valid selector operator"),
    }
    f.at("key").qualified(&expression.key);
    if !lenient {
        f.each("values", values, |f, value| f.label_value(value));
    }
}

/// Of the fields of a node its name can be selected by.
fn node_field(f: &mut Faults<'_>, field: &NodeSelectorRequirement) {
    const ONE: &str = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    match field.operator.as_str() {
        "In" | "NotIn" if field.values.len() != 1 => f.at("values").required(ONE),
        "In" | "NotIn" => {}
        other => f.at("operator").invalid(other, "not a valid selector operator"),
    }
    match field.key.as_str() {
        "metadata.name" => f.each("values", &field.values, |f, name| f.subdomain(name)),
        other => f.at("key").invalid(other, "not a valid field selector key"),
    }
}

fn pod_terms(
    f: &mut Faults<'_>,
    (required, preferred): (&[PodAffinityTerm], &[WeightedPodAffinityTerm]),
    options: &Options,
) {
    f.each("requiredDuringSchedulingIgnoredDuringExecution", required, |f, term| {
        pod_term(f, term, options);
    });
    f.each(
        "preferredDuringSchedulingIgnoredDuringExecution",
        preferred,
        |f, term| {
            weight(f, term.weight);
            pod_term(&mut f.at("podAffinityTerm"), &term.pod_affinity_term, options);
        },
    );
}

fn pod_term(f: &mut Faults<'_>, term: &PodAffinityTerm, options: &Options) {
    let selector = term.label_selector.as_deref();
    f.selector_as_stored("labelSelector", selector, options.bad_selector_values);
    let namespaces = term.namespace_selector.as_deref();
    f.selector_as_stored("namespaceSelector", namespaces, options.bad_selector_values);
    for name in &term.namespaces {
        f.at("namespace").label(name);
    }
    label_keys(f, (&term.match_label_keys, &term.mismatch_label_keys), selector);
    f.at("topologyKey")
        .required_if(term.topology_key.is_empty(), "can not be empty");
    f.at("topologyKey").qualified(&term.topology_key);
}

/// Labels whose values are those of the pod itself, or others.
fn label_keys(f: &mut Faults<'_>, (same, other): (&[String], &[String]), selector: Option<&LabelSelector>) {
    for (name, keys) in [("matchLabelKeys", same), ("mismatchLabelKeys", other)] {
        if !keys.is_empty() && selector.is_none() {
            f.at(name).forbidden(NO_SELECTOR);
        } else {
            f.each(name, keys, |f, key| f.qualified(key));
        }
    }
    if let Some(selector) = selector.filter(|_| !same.is_empty()) {
        // The selector has a condition for each of the keys already, so only the second one is too many.
        let mut seen: HashSet<&str> = selector.match_labels.keys().map(String::as_str).collect();
        let places: HashMap<&str, usize> = same.iter().map(String::as_str).zip(0..).collect();
        f.while_room(&selector.match_expressions, |f, expression| {
            let key = expression.key.as_str();
            if let Some(place) = places.get(key)
                && seen.contains(key)
            {
                f.index(*place).invalid(key, IN_BOTH);
            }
            seen.insert(key);
        });
    }
    let other: HashSet<&String> = other.iter().collect();
    f.each("matchLabelKeys", same, |f, key| {
        if other.contains(key) {
            f.invalid(key, "exists in both matchLabelKeys and mismatchLabelKeys");
        }
    });
}

/// Bytes that the label keys of a pod may add to its selectors, with so many for each condition: as much as a request
/// may be. Many keys may name one label, whose value is as long as who sends it likes.
const MAX_MERGED: usize = 16 << 20;
const CONDITION: usize = 128;

/// Whether the label keys of a pod would add more than may be. They are not merged then, and the pod is refused.
fn are_too_many_keys(pod: &Pod) -> bool {
    let labels = &pod.metadata.labels;
    let value = |key: &String| Some(CONDITION + key.len() + labels.get(key)?.len());
    let affinity = pod.spec.affinity.as_deref();
    let terms = [
        affinity
            .and_then(|affinity| affinity.pod_affinity.as_deref())
            .map(|pods| {
                (
                    &pods.required_during_scheduling_ignored_during_execution,
                    &pods.preferred_during_scheduling_ignored_during_execution,
                )
            }),
        affinity
            .and_then(|affinity| affinity.pod_anti_affinity.as_deref())
            .map(|pods| {
                (
                    &pods.required_during_scheduling_ignored_during_execution,
                    &pods.preferred_during_scheduling_ignored_during_execution,
                )
            }),
    ];
    let terms = terms.iter().flatten().flat_map(|(required, preferred)| {
        let preferred = preferred.iter().map(|term| &term.pod_affinity_term);
        required.iter().chain(preferred)
    });
    let keys = terms.flat_map(|term| term.match_label_keys.iter().chain(&term.mismatch_label_keys));
    let spread = pod.spec.topology_spread_constraints.iter();
    let mut keys = keys.chain(spread.flat_map(|constraint| &constraint.match_label_keys));
    let left = keys.try_fold(MAX_MERGED, |left, key| left.checked_sub(value(key).unwrap_or(0)));
    left.is_none()
}

/// Refuses a new pod whose label keys come to more than may be. `f` stands at the specification.
pub fn check_label_keys(f: &mut Faults<'_>, pod: &Pod) {
    if are_too_many_keys(pod) {
        f.forbidden(format!(
            "label keys must not add more than {MAX_MERGED} bytes to the selectors of a pod"
        ));
    }
}

/// Writes the values that a pod has of the label keys it names into the selectors beside them.
pub fn merge_label_keys(pod: &mut Pod) {
    if are_too_many_keys(pod) {
        return;
    }
    let labels = &pod.metadata.labels;
    let merge_all = |required: &mut [PodAffinityTerm], preferred: &mut [WeightedPodAffinityTerm]| {
        let preferred = preferred.iter_mut().map(|term| &mut term.pod_affinity_term);
        let all = required.iter_mut().chain(preferred);
        all.for_each(|term| merge_into_term(term, labels));
    };
    if let Some(affinity) = pod.spec.affinity.as_deref_mut() {
        if let Some(pods) = affinity.pod_affinity.as_deref_mut() {
            let preferred = &mut pods.preferred_during_scheduling_ignored_during_execution;
            merge_all(&mut pods.required_during_scheduling_ignored_during_execution, preferred);
        }
        if let Some(pods) = affinity.pod_anti_affinity.as_deref_mut() {
            let preferred = &mut pods.preferred_during_scheduling_ignored_during_execution;
            merge_all(&mut pods.required_during_scheduling_ignored_during_execution, preferred);
        }
    }
    for constraint in &mut pod.spec.topology_spread_constraints {
        if let Some(selector) = constraint.label_selector.as_deref_mut() {
            merge(selector, &constraint.match_label_keys, "In", labels);
        }
    }
}

fn merge_into_term(term: &mut PodAffinityTerm, labels: &BTreeMap<String, String>) {
    if let Some(selector) = term.label_selector.as_deref_mut() {
        merge(selector, &term.match_label_keys, "In", labels);
        merge(selector, &term.mismatch_label_keys, "NotIn", labels);
    }
}

fn merge(selector: &mut LabelSelector, keys: &[String], operator: &str, labels: &BTreeMap<String, String>) {
    let values = keys.iter().filter_map(|key| Some((key, labels.get(key)?)));
    let conditions = values.map(|(key, value)| LabelSelectorRequirement {
        key: key.clone(),
        operator: operator.to_owned(),
        values: vec![value.clone()],
    });
    selector.match_expressions.extend(conditions);
}

/// Whether labels are named whose values can't be those of the pod, or a selector is none.
pub fn has_bad_keys(constraint: &TopologySpreadConstraint) -> bool {
    let (keys, selector) = (&constraint.match_label_keys, constraint.label_selector.as_deref());
    faults::are_in(|f| label_keys(f, (keys, &[]), selector))
}

/// Checks how a pod is spread.
pub fn spread(f: &mut Faults<'_>, constraints: &[TopologySpreadConstraint], options: &Options) {
    let mut place = 0;
    f.each("topologySpreadConstraints", constraints, |f, constraint| {
        place += 1;
        let (key, action) = (&constraint.topology_key, &constraint.when_unsatisfiable);
        f.at("maxSkew").positive(constraint.max_skew);
        f.at("topologyKey").required_if(key.is_empty(), "can not be empty");
        if action.is_empty() {
            let known = ["DoNotSchedule", "ScheduleAnyway"];
            f.at("whenUnsatisfiable").not_supported("", &known);
        }
        let is_same =
            |other: &TopologySpreadConstraint| other.topology_key == *key && other.when_unsatisfiable == *action;
        if constraints.get(place..).is_some_and(|rest| rest.iter().any(is_same)) {
            f.at("{topologyKey, whenUnsatisfiable}")
                .duplicate(format!("{{{key}, {action}}}"));
        }
        if let Some(domains) = constraint.min_domains {
            f.at("minDomains").positive(domains);
            if action != "DoNotSchedule" {
                let text = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                f.at("minDomains").invalid(domains, text);
            }
        }
        let selector = constraint.label_selector.as_deref();
        match options.bad_label_keys {
            true => old_label_keys(f, &constraint.match_label_keys, selector),
            false => label_keys(f, (&constraint.match_label_keys, &[]), selector),
        }
        if !options.bad_spread_selector {
            f.selector("labelSelector", selector);
        }
    });
}

/// What label keys had to be before selectors had a condition for each of them.
fn old_label_keys(f: &mut Faults<'_>, keys: &[String], selector: Option<&LabelSelector>) {
    f.at("matchLabelKeys")
        .forbidden_if(!keys.is_empty() && selector.is_none(), NO_SELECTOR);
    let named = selector.into_iter().flat_map(|selector| {
        let expressions = selector.match_expressions.iter().map(|expression| &expression.key);
        selector.match_labels.keys().chain(expressions)
    });
    let named: HashSet<&String> = named.collect();
    f.each("matchLabelKeys", keys, |f, key| {
        f.qualified(key);
        f.invalid_if(named.contains(key), key, IN_BOTH);
    });
}

/// Checks tolerations. Those that compare numbers are part of a feature that is switched off, but stay where they are.
pub fn tolerations(f: &mut Faults<'_>, name: &str, tolerations: &[Toleration], options: &Options) {
    f.each(name, tolerations, |f, toleration| {
        let (key, operator, value) = (&toleration.key, toleration.operator.as_str(), &toleration.value);
        if !key.is_empty() {
            f.at("key").qualified(key);
        } else if operator != "Exists" {
            let text = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            f.at("operator").invalid(operator, text);
        }
        if toleration.toleration_seconds.is_some() && toleration.effect != "NoExecute" {
            let text = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            f.at("effect").invalid(&toleration.effect, text);
        }
        match operator {
            "" | "Equal" => {
                let texts = labels::label_value(value);
                if !texts.is_empty() {
                    f.at("operator").invalid(value, texts.join(";"));
                }
            }
            "Exists" if !value.is_empty() => f.at("operator").invalid(value, NO_VALUE),
            "Lt" | "Gt" if !options.comparing_tolerations => f.at("operator").not_supported(operator, &OPERATORS),
            "Lt" | "Gt" => whole_number(&mut f.at("value"), value),
            "Exists" => {}
            other => f.at("operator").not_supported(other, &["Equal", "Exists"]),
        }
        f.at("effect").one_of(given(&toleration.effect), &TAINT_EFFECTS);
    });
}

fn whole_number(f: &mut Faults<'_>, text: &str) {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits.bytes().all(|b| b.is_ascii_digit());
    let has_zeros = digits.starts_with('0') && (digits.len() > 1 || text.starts_with('-'));
    if digits.is_empty() || !is_plain || has_zeros {
        f.invalid(text, "must be a valid decimal integer in canonical form");
    }
    if text.parse::<i64>().is_err() {
        let why = match !digits.is_empty() && is_plain {
            true => "value out of range",
            false => "invalid syntax",
        };
        f.invalid(text, format!("strconv.ParseInt: parsing {text:?}: {why}"));
    }
}
