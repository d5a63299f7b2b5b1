//! Pods: what a new one starts with, which of its fields may change, how long it gets to end.

mod annotations;
mod change;
mod container_status;
mod status;

use keelson_api::core::v1::{Pod, PodCondition, PodIP, PodSpec, PodStatus};
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_registry::write::Part;
use keelson_registry::{Context, KindCode, Strategy};

use super::pod_spec;
use super::subresources::{binding, ephemeral, eviction, log, proxy, resize, stream};
use crate::cells;
use crate::faults::{self, Faults};

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

    fn prepare_for_create(&self, context: &Context, pod: &mut Pod) {
        pod_spec::disabled::drop_from(&mut pod.spec, None);
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
                last_transition_time: context.now.truncate_to_seconds(),
                ..PodCondition::default()
            });
        }
        pod_spec::merge_label_keys(pod);
        for key in pod_spec::annotations::profiles_to_fields(pod) {
            let path = Path::new("metadata").child("annotations").key(key);
            let instead = "use the \"appArmorProfile\" field instead";
            context.warn(format!("{path}: deprecated since v1.30; {instead}"));
        }
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut Pod, old: &Pod) {
        pod_spec::disabled::drop_from(&mut new.spec, Some(&old.spec));
    }

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        match part {
            Part::Status => &[&["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
            _ => &[],
        }
    }

    fn prepare_for_status_update(&self, _context: &Context, new: &mut Pod, old: &Pod) {
        new.metadata.owner_references.clone_from(&old.metadata.owner_references);
        status::keep_generations(&mut new.status, &old.status);
        status::drop_disabled(&mut new.status, &old.status);
        if new.status.qos_class.is_empty() {
            new.status.qos_class.clone_from(&old.status.qos_class);
        }
    }

    fn validate(&self, _context: &Context, new: &Pod, old: Option<&Pod>) -> ErrorList {
        let Some(old) = old else {
            return new_pod_faults(new);
        };
        let mut errors = whole(new, Some(old));
        errors.extend(annotations::validate_change(new, old));
        errors.extend(change::faults(&new.spec, &old.spec));
        errors
    }

    fn prepare_for_subresource(&self, _context: &Context, name: &str, new: &mut Pod, old: &Pod) {
        pod_spec::disabled::drop_from(&mut new.spec, Some(&old.spec));
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
        let mut errors = whole(new, Some(old));
        match name {
            "ephemeralcontainers" => {
                errors.extend(annotations::validate_change(new, old));
                errors.extend(ephemeral::validate(new, old));
            }
            "resize" => {
                let faulty = !errors.is_empty();
                errors.extend(resize::validate(new, old, faulty));
            }
            _ => return self.validate(context, new, Some(old)),
        }
        errors
    }

    fn validate_status_update(&self, context: &Context, new: &Pod, old: &Pod) -> ErrorList {
        let mut errors = annotations::validate_change(new, old);
        errors.extend(faults::of_status(|f| status::check(f, new, old)));
        // A refusal says enough.
        if errors.is_empty() {
            let told = status::warnings(&new.status);
            told.into_iter().for_each(|text| context.warn(text));
        }
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
    // The one address and the list of addresses say the same; the one counts, since old nodes know no other.
    let status = &mut pod.status;
    match status.pod_ips.first() {
        Some(first) if status.pod_ip.is_empty() => status.pod_ip.clone_from(&first.ip),
        Some(first) if first.ip == status.pod_ip => {}
        _ if status.pod_ip.is_empty() => {}
        _ => {
            let ip = status.pod_ip.clone();
            status.pod_ips = vec![PodIP { ip }];
        }
    }
}

/// What is wrong with a pod that is to be made, beside what its definition says.
pub fn new_pod_faults(pod: &Pod) -> ErrorList {
    let mut errors = whole(pod, None);
    errors.extend(faults::of_spec(|f| {
        f.at("ephemeralContainers")
            .forbidden_if(!pod.spec.ephemeral_containers.is_empty(), "cannot be set on create");
        if !pod.spec.node_name.is_empty() && !pod.spec.scheduling_gates.is_empty() {
            let text = "cannot be set until all schedulingGates have been cleared";
            f.at("nodeName").forbidden(text);
        }
        pod_spec::annotations::check_profiles(f, &pod.metadata, &pod.spec);
        pod_spec::check_label_keys(f, pod);
    }));
    errors
}

/// Faults of a pod as it is, but for its metadata. What `old` has is let through.
fn whole(pod: &Pod, old: Option<&Pod>) -> ErrorList {
    let (meta, spec) = (&pod.metadata, &pod.spec);
    faults::of_object(|f| {
        let old_meta = old.map(|old| &old.metadata);
        pod_spec::annotations::check(&mut f.at("metadata"), meta, spec, old_meta);
        let mut f = f.at("spec");
        pod_spec::check(&mut f, spec, Some(meta), old.map(|old| &old.spec));
        if spec.service_account_name.is_empty() {
            tokens_of_nobody(&mut f, spec);
        }
        for (list, containers) in [
            ("containers", &spec.containers),
            ("initContainers", &spec.init_containers),
        ] {
            f.each(list, containers, |f, container| {
                pod_spec::plain_image(f, &container.image)
            });
        }
    })
}

/// A token is that of an account.
fn tokens_of_nobody(f: &mut Faults<'_>, spec: &PodSpec) {
    f.each("volumes", &spec.volumes, |f, volume| {
        let projected = volume.volume_source.projected.iter();
        let mut f = f.at("projected");
        f.each("sources", projected.flat_map(|p| &p.sources), |f, source| {
            let text = "must not be specified when serviceAccountName is not set";
            f.at("serviceAccountToken")
                .forbidden_if(source.service_account_token.is_some(), text);
        });
    });
}

#[cfg(test)]
mod tests;
