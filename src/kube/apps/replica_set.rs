//! Replica sets.

use keelson_api::apps::v1::{ReplicaSet, ReplicaSetSpec};
use keelson_machinery::field::{ErrorList, Path};
use keelson_registry::{Context, KindCode, Strategy};

use super::workload;
use crate::cells;
use crate::core::pod_spec;
use crate::faults::{self, Faults};
use crate::metadata;
use crate::typed::is_new_generation;

const NAMES: workload::Names = workload::Names {
    selector: "deployment",
    kind: "ReplicaSet",
    unreadable: "invalid label selector",
};

/// Registers the rules of replica sets.
pub fn register(code: &mut KindCode) {
    code.kind::<ReplicaSet>()
        .strategy(ReplicaSetStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::workload::REPLICA_SET);
}

/// The rules of replica sets.
struct ReplicaSetStrategy;

impl Strategy for ReplicaSetStrategy {
    type Object = ReplicaSet;

    fn warnings(&self, new: &ReplicaSet, old: Option<&ReplicaSet>) -> Vec<String> {
        if !is_new_generation(new, old) {
            return Vec::new();
        }
        let mut found = pod_spec::warnings::of_owner(&new.metadata, old.is_none());
        found.extend(pod_spec::warnings::of_template(
            &new.spec.template,
            &Path::new("spec").child("template"),
        ));
        found
    }

    fn prepare_for_create(&self, _context: &Context, object: &mut ReplicaSet) {
        pod_spec::disabled::drop_from_template(&mut object.spec.template, None);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut ReplicaSet, old: &ReplicaSet) {
        pod_spec::disabled::drop_from_template(&mut new.spec.template, Some(&old.spec.template));
    }

    fn fill_bookmark(&self, object: &mut ReplicaSet) {
        object.spec.replicas = Some(0);
    }

    fn validate(&self, _context: &Context, object: &ReplicaSet) -> ErrorList {
        faults::at(&Path::new("spec"), |f| check(f, &object.spec, None))
    }

    fn validate_update(&self, _context: &Context, new: &ReplicaSet, old: &ReplicaSet) -> ErrorList {
        faults::at(&Path::new("spec"), |f| {
            check(f, &new.spec, Some(&old.spec));
            workload::immutable_selector(f, new.spec.selector.as_deref(), old.spec.selector.as_deref());
        })
    }

    fn validate_status_update(&self, _context: &Context, new: &ReplicaSet, _old: &ReplicaSet) -> ErrorList {
        let status = &new.status;
        let (ready, available) = (status.ready_replicas, ("availableReplicas", status.available_replicas));
        let counts = [
            ("replicas", status.replicas.into()),
            ("fullyLabeledReplicas", status.fully_labeled_replicas.into()),
            ("readyReplicas", ready.into()),
            ("availableReplicas", status.available_replicas.into()),
            ("observedGeneration", status.observed_generation),
            ("terminatingReplicas", status.terminating_replicas.unwrap_or(0).into()),
        ];
        let labeled = ("fullyLabeledReplicas", status.fully_labeled_replicas);
        faults::at(&Path::new("status"), |f| {
            workload::counts(f, &counts);
            let parts = [labeled, ("readyReplicas", ready), available];
            workload::parts(f, (status.replicas, "status.replicas"), &parts);
            workload::parts(f, (ready, "readyReplicas"), &[available]);
        })
    }
}

/// Defaults in code of replica sets.
fn defaults(o: &mut ReplicaSet) {
    pod_spec::of_template(&mut o.spec.template);
}

fn check(f: &mut Faults<'_>, spec: &ReplicaSetSpec, old: Option<&ReplicaSetSpec>) {
    f.at("replicas").non_negative(spec.replicas.unwrap_or(0).into());
    f.at("minReadySeconds").non_negative(spec.min_ready_seconds.into());
    let old = old.map(|old| &old.template);
    workload::selector_and_template(f, spec.selector.as_deref(), &spec.template, old, &NAMES);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read_defaulted};

    #[test]
    fn the_template_of_a_replica_set_is_complete() {
        let o: ReplicaSet = read_defaulted(r#"{"spec":{"replicas":-1,"selector":{"matchLabels":{"a":"b"}}}}"#);
        assert_eq!(
            lines(&ReplicaSetStrategy.validate(&context(), &o)),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0\n\
             spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`\n\
             spec.template.spec.containers: Required value"
        );
    }
}
