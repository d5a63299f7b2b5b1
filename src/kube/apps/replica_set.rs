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

    fn validate(&self, _context: &Context, new: &ReplicaSet, old: Option<&ReplicaSet>) -> ErrorList {
        faults::of_spec(|f| check(f, &new.spec, old.map(|old| &old.spec)))
    }

    fn validate_status_update(&self, _context: &Context, new: &ReplicaSet, _old: &ReplicaSet) -> ErrorList {
        faults::of_status(|f| {
            let status = &new.status;
            f.counts(status, &["replicas", "fullyLabeledReplicas", "readyReplicas"]);
            f.counts(
                status,
                &["availableReplicas", "observedGeneration", "terminatingReplicas"],
            );
            let of_all = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
            workload::parts(f, status, ("replicas", "status.replicas"), &of_all);
            workload::parts(f, status, ("readyReplicas", "readyReplicas"), &["availableReplicas"]);
        })
    }
}

/// Defaults in code of replica sets.
fn defaults(o: &mut ReplicaSet) {
    pod_spec::of_template(&mut o.spec.template);
}

fn check(f: &mut Faults<'_>, spec: &ReplicaSetSpec, old: Option<&ReplicaSetSpec>) {
    f.counts(spec, &["replicas", "minReadySeconds"]);
    let template = old.map(|old| &old.template);
    workload::selector_and_template(f, spec.selector.as_deref(), &spec.template, template, &NAMES);
    if let Some(old) = old {
        workload::immutable_selector(f, spec.selector.as_deref(), old.selector.as_deref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read_defaulted};

    #[test]
    fn the_template_of_a_replica_set_is_complete() {
        let o: ReplicaSet = read_defaulted(r#"{"spec":{"replicas":-1,"selector":{"matchLabels":{"a":"b"}}}}"#);
        assert_eq!(
            lines(&ReplicaSetStrategy.validate(&context(), &o, None)),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0\n\
             spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`\n\
             spec.template.spec.containers: Required value"
        );
    }
}
