//! Pods: what a new one starts with, which of its fields may change, how long it gets to end.

mod annotations;
mod status;

use std::collections::HashSet;

use keelson_api::core::v1::{Container, Pod, PodCondition, PodSpec, PodStatus, Toleration};
use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_machinery::reflect::Reflect;
use keelson_registry::write::Part;
use keelson_registry::{Context, KindCode, Strategy};

use super::pod_spec;
use super::subresources::{binding, ephemeral, eviction, log, proxy, resize, stream};
use crate::cells;

/// What an update may change, in the words of the API.
const CHANGEABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be \
    set to 1 if it was previously negative)";

/// Registers the rules of pods.
pub fn register(code: &mut KindCode) {
    code.kind::<Pod>()
        .strategy(PodStrategy)
        .defaults(defaults)
        .subresource("attach", stream::Attach)
        .subresource("binding", binding::Binder)
        .subresource("eviction", eviction::Evictor)
        .subresource("exec", stream::Exec)
        .subresource("log", log::Log)
        .subresource("portforward", stream::PortForward)
        .subresource("proxy", proxy::OfPod)
        .cells(cells::pod::POD)
        .row_condition(cells::pod::completed)
        .row_reads(cells::pod::READS);
}

/// The rules of pods.
struct PodStrategy;

impl Strategy for PodStrategy {
    type Object = Pod;

    /// Pods are changed by programs, which read no warnings.
    fn warnings(&self, new: &Pod, old: Option<&Pod>) -> Vec<String> {
        match old {
            None => pod_spec::warnings::of_pod(new),
            Some(_) => Vec::new(),
        }
    }

    /// Every kubelet lists the pods of its node.
    fn is_indexed(&self) -> bool {
        true
    }

    fn prepare_for_create(&self, _context: &Context, pod: &mut Pod) {
        pod.status = PodStatus {
            phase: "Pending".to_owned(),
            qos_class: pod_spec::class(&pod.spec).to_owned(),
            ..PodStatus::default()
        };
        if !pod.spec.scheduling_gates.is_empty() {
            pod.status.conditions.push(PodCondition {
                r#type: "PodScheduled".to_owned(),
                status: "False".to_owned(),
                reason: "SchedulingGated".to_owned(),
                message: "Scheduling is blocked due to non-empty scheduling gates".to_owned(),
                ..PodCondition::default()
            });
        }
    }

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        match part {
            Part::Status => &[&["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
            _ => &[],
        }
    }

    fn prepare_for_status_update(&self, _context: &Context, new: &mut Pod, old: &Pod) {
        new.metadata.owner_references.clone_from(&old.metadata.owner_references);
        // Of a feature that is switched off.
        if old.status.node_allocatable_resource_claim_statuses.is_empty() {
            new.status.node_allocatable_resource_claim_statuses.clear();
        }
        if new.status.qos_class.is_empty() {
            new.status.qos_class.clone_from(&old.status.qos_class);
        }
    }

    fn validate(&self, _context: &Context, pod: &Pod) -> ErrorList {
        let path = Path::new("spec");
        let mut errors = annotations::validate(pod, &Path::new("metadata").child("annotations"));
        errors.extend(pod_spec::validate(&pod.spec, &path));
        if !pod.spec.ephemeral_containers.is_empty() {
            errors.push(FieldError::forbidden(
                &path.child("ephemeralContainers"),
                "cannot be set on create",
            ));
        }
        errors
    }

    fn validate_update(&self, _context: &Context, new: &Pod, old: &Pod) -> ErrorList {
        let path = Path::new("spec");
        let mut errors = annotations::validate_change(new, old);
        if !equality::equal(&new.spec, &old.spec) {
            errors.extend(pod_spec::validate(&new.spec, &path));
            errors.extend(validate_change(&new.spec, &old.spec, &path));
        }
        errors
    }

    fn prepare_for_subresource(&self, _context: &Context, name: &str, new: &mut Pod, old: &Pod) {
        match name {
            "ephemeralcontainers" => ephemeral::prepare(new, old),
            "resize" => resize::prepare(new, old),
            _ => {}
        }
    }

    fn validate_subresource(&self, context: &Context, name: &str, new: &Pod, old: &Pod) -> ErrorList {
        if let Some(fault) = annotations::unfit_for(name, old) {
            return fault.into();
        }
        let mut errors = annotations::validate_change(new, old);
        errors.extend(match name {
            "ephemeralcontainers" => ephemeral::validate(new, old),
            "resize" => resize::validate(new, old),
            _ => return self.validate_update(context, new, old),
        });
        errors
    }

    fn validate_status_update(&self, _context: &Context, new: &Pod, old: &Pod) -> ErrorList {
        let mut errors = annotations::validate_change(new, old);
        errors.extend(status::validate(new, old));
        errors
    }

    /// Someone has to end the containers of a pod that is bound to a node and not over; all others go at once.
    fn grace_seconds(&self, pod: &Pod, options: &DeleteOptions) -> Option<i64> {
        if pod.spec.node_name.is_empty() || matches!(pod.status.phase.as_str(), "Succeeded" | "Failed") {
            return Some(0);
        }
        let seconds = options
            .grace_period_seconds
            .or(pod.spec.termination_grace_period_seconds)
            .unwrap_or(0);
        Some(if seconds < 0 { 1 } else { seconds })
    }
}

/// Defaults in code of pods.
fn defaults(pod: &mut Pod) {
    pod_spec::of_pod(&mut pod.spec);
    // Of a pod, unlike its templates, a negative time is not kept.
    if let Some(seconds) = pod.spec.termination_grace_period_seconds.as_mut().filter(|s| **s < 0) {
        *seconds = 1;
    }
    // The one address and the list of addresses say the same.
    let status = &mut pod.status;
    if status.pod_ips.is_empty() && !status.pod_ip.is_empty() {
        status.pod_ips.push(keelson_api::core::v1::PodIP {
            ip: status.pod_ip.clone(),
        });
    } else if let Some(first) = status.pod_ips.first() {
        status.pod_ip.clone_from(&first.ip);
    }
}

fn validate_change(new: &PodSpec, old: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    let lists = [
        ("containers", &new.containers, &old.containers),
        ("initContainers", &new.init_containers, &old.init_containers),
    ];
    for (field, new, old) in lists {
        if new.len() != old.len() {
            errors.push(FieldError::forbidden(
                &path.child(field),
                "pod updates may not add or remove containers",
            ));
            return errors;
        }
        let path = path.child(field);
        // The images of a change are looked at a second time.
        errors.extend(
            new.iter()
                .enumerate()
                .flat_map(|(i, c)| pod_spec::image_fault(&c.image, &path.index(i))),
        );
    }
    errors.extend(deadline_change(new, old, &path.child("activeDeadlineSeconds")));
    errors.extend(tolerations_change(new, old, &path.child("tolerations")));
    errors.extend(gates_change(new, old, &path.child("schedulingGates")));
    let allowed = with_allowed_changes_undone(new, old);
    let changed = changed_fields(&allowed, old);
    if !changed.is_empty() {
        let text = format!(
            "pod updates may not change fields other than {CHANGEABLE}\n{}",
            changed.join("\n")
        );
        errors.push(FieldError::forbidden(path, text));
    }
    errors
}

/// A deadline may be set, and may come nearer.
fn deadline_change(new: &PodSpec, old: &PodSpec, path: &Path) -> Option<FieldError> {
    match (new.active_deadline_seconds, old.active_deadline_seconds) {
        (Some(new), Some(old)) if new > old => Some(FieldError::invalid(
            path,
            new,
            "must be less than or equal to previous value",
        )),
        (None, Some(_)) => Some(FieldError::invalid(
            path,
            None::<i64>,
            "must not update from a positive integer to nil value",
        )),
        _ => None,
    }
}

/// Tolerations may be added; of those there are only the seconds may change.
fn tolerations_change(new: &PodSpec, old: &PodSpec, path: &Path) -> Option<FieldError> {
    fn lasting(t: &Toleration) -> [&str; 4] {
        [&t.key, &t.operator, &t.value, &t.effect]
    }
    let now: HashSet<[&str; 4]> = new.tolerations.iter().map(lasting).collect();
    let kept = old.tolerations.iter().all(|before| now.contains(&lasting(before)));
    let text = "existing toleration can not be modified except its tolerationSeconds";
    (!kept).then(|| FieldError::forbidden(path, text))
}

/// Gates may only be taken away.
fn gates_change(new: &PodSpec, old: &PodSpec, path: &Path) -> ErrorList {
    let known: HashSet<&str> = old.scheduling_gates.iter().map(|g| g.name.as_str()).collect();
    let added = new.scheduling_gates.iter().enumerate();
    let added = added.filter(|(_, gate)| !known.contains(gate.name.as_str()));
    added
        .map(|(place, gate)| {
            let text = format!(
                "only deletion is allowed, but found new scheduling gate '{}'",
                gate.name
            );
            FieldError::forbidden(&path.index(place).child("name"), text)
        })
        .collect()
}

/// The new specification with everything put back that may change, so that it must be equal to the old one.
fn with_allowed_changes_undone(new: &PodSpec, old: &PodSpec) -> PodSpec {
    let mut spec = new.clone();
    let undo = |new: &mut [Container], old: &[Container]| {
        for (new, old) in new.iter_mut().zip(old) {
            new.image.clone_from(&old.image);
        }
    };
    undo(&mut spec.containers, &old.containers);
    undo(&mut spec.init_containers, &old.init_containers);
    spec.active_deadline_seconds = old.active_deadline_seconds;
    spec.scheduling_gates.clone_from(&old.scheduling_gates);
    spec.tolerations.clone_from(&old.tolerations);
    if old.termination_grace_period_seconds.is_some_and(|s| s < 0) && spec.termination_grace_period_seconds == Some(1) {
        spec.termination_grace_period_seconds = old.termination_grace_period_seconds;
    }
    if !old.scheduling_gates.is_empty()
        && old
            .node_selector
            .iter()
            .all(|(k, v)| spec.node_selector.get(k) == Some(v))
    {
        // A pod that is held back may still be narrowed down to fewer nodes.
        spec.node_selector.clone_from(&old.node_selector);
    }
    spec
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

#[cfg(test)]
mod tests;
