//! Changes of a pod: of its specification hardly anything may be another.

use std::collections::{HashMap, HashSet};

use keelson_api::core::v1::{Affinity, Container, NodeAffinity, NodeSelectorTerm, PodSpec, Toleration};
use keelson_machinery::equality;
use keelson_machinery::field::ErrorList;
use keelson_machinery::reflect::Reflect;
use keelson_machinery::validation::list_value;

use crate::core::pod_spec::{Options, affinity, plain_image};
use crate::faults::{self, Faults};
use crate::typed;

/// What an update may change, in the words of the API.
pub const CHANGEABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be \
    set to 1 if it was previously negative)";

const OTHER_CONTAINERS: &str = "pod updates may not add or remove containers";
const OTHER_NODES: &str = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
const OTHER_TERMS: &str = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
const OTHER_TERM: &str = "only additions are allowed (no mutations or deletions)";
const OTHER_TOLERATION: &str = "existing toleration can not be modified except its tolerationSeconds";

/// Faults of a change of the specification.
pub fn faults(new: &PodSpec, old: &PodSpec) -> ErrorList {
    faults::of_spec(|f| {
        let lists = [
            ("containers", &new.containers, &old.containers),
            ("initContainers", &new.init_containers, &old.init_containers),
        ];
        for (list, new, old) in lists {
            if new.len() != old.len() {
                return f.at(list).forbidden(OTHER_CONTAINERS);
            }
            // The images of a change are looked at a second time.
            f.each(list, new, |f, container| {
                f.at("image").filled(&container.image);
                plain_image(f, &container.image);
            });
        }
        if !deadline(&mut f.at("activeDeadlineSeconds"), new, old) {
            return;
        }
        tolerations(f, new, old);
        gates(f, new, old);
        if !equality::equal(new, old) {
            others(f, new, old);
        }
    })
}

/// A deadline may be set, and may come nearer. False: nothing else is looked at.
fn deadline(f: &mut Faults<'_>, new: &PodSpec, old: &PodSpec) -> bool {
    let most = i64::from(i32::MAX);
    let before = f.count();
    match (new.active_deadline_seconds, old.active_deadline_seconds) {
        (Some(new), _) if !(0..=most).contains(&new) => f.within(new, (0, most)),
        (Some(new), Some(old)) if new > old => f.invalid(new, "must be less than or equal to previous value"),
        (None, Some(_)) => {
            f.invalid(None::<i64>, "must not update from a positive integer to nil value");
            return true;
        }
        _ => {}
    }
    f.count() == before
}

/// Tolerations may be added; of those there are only the seconds may change.
fn tolerations(f: &mut Faults<'_>, new: &PodSpec, old: &PodSpec) {
    fn lasting(t: &Toleration) -> [&str; 4] {
        [&t.key, &t.operator, &t.value, &t.effect]
    }
    let now: HashSet<[&str; 4]> = new.tolerations.iter().map(lasting).collect();
    if !old.tolerations.iter().all(|before| now.contains(&lasting(before))) {
        return f.at("tolerations").forbidden(OTHER_TOLERATION);
    }
    let options = Options {
        comparing_tolerations: old.tolerations.iter().any(|t| matches!(&*t.operator, "Lt" | "Gt")),
        ..Options::default()
    };
    affinity::tolerations(f, "tolerations", &new.tolerations, &options);
}

/// Gates may only be taken away.
fn gates(f: &mut Faults<'_>, new: &PodSpec, old: &PodSpec) {
    let known: HashSet<&str> = old.scheduling_gates.iter().map(|gate| gate.name.as_str()).collect();
    let places = new.scheduling_gates.iter().enumerate();
    // Of gates of one name the last is told.
    let added: HashMap<&str, usize> = places.map(|(place, gate)| (gate.name.as_str(), place)).collect();
    let mut added: Vec<(usize, &str)> = added.into_iter().map(|(name, place)| (place, name)).collect();
    added.sort_unstable();
    for (place, name) in added.into_iter().filter(|(_, name)| !known.contains(name)) {
        let text = format!("only deletion is allowed, but found new scheduling gate '{name}'");
        let mut gates = f.at("schedulingGates");
        gates.index(place).at("name").forbidden(text);
    }
}

/// All that is left when what may change is put back must be as it was.
fn others(f: &mut Faults<'_>, new: &PodSpec, old: &PodSpec) {
    let mut spec = new.clone();
    let images = |new: &mut [Container], old: &[Container]| {
        for (new, old) in new.iter_mut().zip(old) {
            new.image.clone_from(&old.image);
        }
    };
    images(&mut spec.containers, &old.containers);
    images(&mut spec.init_containers, &old.init_containers);
    spec.active_deadline_seconds = old.active_deadline_seconds;
    spec.scheduling_gates.clone_from(&old.scheduling_gates);
    spec.tolerations.clone_from(&old.tolerations);
    if old.termination_grace_period_seconds.is_some_and(|s| s < 0) && spec.termination_grace_period_seconds == Some(1) {
        spec.termination_grace_period_seconds = old.termination_grace_period_seconds;
    }
    if !old.scheduling_gates.is_empty() {
        held_back(f, &mut spec, old);
    }
    let changed = changed_fields(&spec, old);
    if !changed.is_empty() {
        let text = format!(
            "pod updates may not change fields other than {CHANGEABLE}\n{}",
            changed.join("\n")
        );
        f.forbidden(text);
    }
}

/// A pod that is held back may still be narrowed down to fewer nodes.
fn held_back(f: &mut Faults<'_>, spec: &mut PodSpec, old: &PodSpec) {
    if spec.node_selector != old.node_selector {
        let keeps = |(key, value): (&String, &String)| spec.node_selector.get(key) == Some(value);
        if !old.node_selector.iter().all(keeps) {
            let shown = serde_json::to_string(&spec.node_selector).unwrap_or_default();
            f.at("nodeSelector")
                .invalid(keelson_machinery::field::BadValue::json(shown), OTHER_NODES);
        }
        spec.node_selector.clone_from(&old.node_selector);
    }
    fn nodes(affinity: Option<&Affinity>) -> Option<&NodeAffinity> {
        affinity.and_then(|affinity| affinity.node_affinity.as_deref())
    }
    let (now, was) = (nodes(spec.affinity.as_deref()), nodes(old.affinity.as_deref()));
    if typed::same(now, was) {
        return;
    }
    node_terms(&mut f.at("affinity").at("nodeAffinity"), now, was);
    let was = was.cloned().map(Box::new);
    let has_pods = |a: &Affinity| a.pod_affinity.is_some() || a.pod_anti_affinity.is_some();
    match spec.affinity.as_deref_mut() {
        None => spec.affinity.get_or_insert_with(Default::default).node_affinity = was,
        Some(affinity) if old.affinity.is_none() && !has_pods(affinity) => spec.affinity = None,
        Some(affinity) => affinity.node_affinity = was,
    }
}

fn node_terms(f: &mut Faults<'_>, new: Option<&NodeAffinity>, old: Option<&NodeAffinity>) {
    fn terms(of: Option<&NodeAffinity>) -> &[NodeSelectorTerm] {
        let required = of.and_then(|nodes| nodes.required_during_scheduling_ignored_during_execution.as_deref());
        required.map_or(&[], |selector| &selector.node_selector_terms)
    }
    let (new, old) = (terms(new), terms(old));
    let mut f = f.at("requiredDuringSchedulingIgnoredDuringExecution");
    if !old.is_empty() && old.len() != new.len() {
        let shown = list_value(new.iter().map(|term| term as _));
        return f.at("nodeSelectorTerms").invalid(shown, OTHER_TERMS);
    }
    let pairs = new.iter().zip(old).enumerate();
    for (place, (term, _)) in pairs.filter(|(_, (new, old))| !only_adds(new, old)) {
        f.at("nodeSelectorTerms")
            .index(place)
            .invalid(typed::shown(term), OTHER_TERM);
    }
}

/// Whether a term has all that it had, in the same places. One that was empty selects nothing, and stays so.
fn only_adds(new: &NodeSelectorTerm, old: &NodeSelectorTerm) -> bool {
    let is_empty = |term: &NodeSelectorTerm| term.match_expressions.is_empty() && term.match_fields.is_empty();
    if is_empty(old) && !is_empty(new) {
        return false;
    }
    [
        (&new.match_expressions, &old.match_expressions),
        (&new.match_fields, &old.match_fields),
    ]
    .iter()
    .all(|(new, old)| new.len() >= old.len() && old.iter().zip(*new).all(|(old, new)| equality::equal(old, new)))
}

/// Names of the fields that differ; of containers with their place.
fn changed_fields(new: &PodSpec, old: &PodSpec) -> Vec<String> {
    let fields = new.desc().fields.iter().enumerate();
    let mut names = Vec::new();
    for (_, field) in fields.filter(|(index, _)| !equality::equal_values(new.get(*index), old.get(*index))) {
        let (new, old) = match field.json.as_str() {
            "containers" => (&new.containers, &old.containers),
            "initContainers" => (&new.init_containers, &old.init_containers),
            json => {
                names.push(format!("spec.{json}"));
                continue;
            }
        };
        let places = new
            .iter()
            .zip(old)
            .enumerate()
            .filter(|(_, (new, old))| !equality::equal(*new, *old));
        names.extend(places.map(|(place, _)| format!("spec.{}[{place}]", field.json)));
    }
    names
}
