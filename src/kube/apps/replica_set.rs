//! Replica sets.

use keelson_api::apps::v1::{ReplicaSet, ReplicaSetSpec};
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_registry::{Context, KindCode, Strategy};

use super::workload;
use crate::cells;
use crate::core::pod_spec;
use crate::metadata;
use crate::typed::{is_new_generation, non_negative};

const NAMES: workload::Names = workload::Names {
    selector: "deployment",
    kind: "ReplicaSet",
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

    fn fill_bookmark(&self, object: &mut ReplicaSet) {
        object.spec.replicas = Some(0);
    }

    fn validate(&self, _context: &Context, object: &ReplicaSet) -> ErrorList {
        validate(&object.spec)
    }

    fn validate_update(&self, _context: &Context, new: &ReplicaSet, old: &ReplicaSet) -> ErrorList {
        let mut errors = validate(&new.spec);
        let (now, was) = (new.spec.selector.as_deref(), old.spec.selector.as_deref());
        errors.extend(workload::immutable_selector(now, was, &Path::new("spec")));
        errors
    }

    fn validate_status_update(&self, _context: &Context, new: &ReplicaSet, _old: &ReplicaSet) -> ErrorList {
        let status = &new.status;
        let path = Path::new("status");
        let counts = [
            ("replicas", status.replicas),
            ("fullyLabeledReplicas", status.fully_labeled_replicas),
            ("readyReplicas", status.ready_replicas),
            ("availableReplicas", status.available_replicas),
        ];
        let mut errors: ErrorList = counts
            .into_iter()
            .flat_map(|(field, n)| non_negative(n.into(), &path.child(field)))
            .collect();
        for (field, count) in counts.into_iter().filter(|(_, count)| *count > status.replicas) {
            errors.push(FieldError::invalid(
                &path.child(field),
                count,
                "cannot be greater than status.replicas",
            ));
        }
        if status.available_replicas > status.ready_replicas {
            let text = "cannot be greater than readyReplicas";
            errors.push(FieldError::invalid(
                &path.child("availableReplicas"),
                status.available_replicas,
                text,
            ));
        }
        errors
    }
}

/// Defaults in code of replica sets.
fn defaults(o: &mut ReplicaSet) {
    pod_spec::of_template(&mut o.spec.template);
}

fn validate(spec: &ReplicaSetSpec) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = non_negative(spec.replicas.unwrap_or(0).into(), &path.child("replicas"));
    errors.extend(non_negative(
        spec.min_ready_seconds.into(),
        &path.child("minReadySeconds"),
    ));
    errors.extend(workload::selector_and_template(
        spec.selector.as_deref(),
        &spec.template,
        &NAMES,
        &path,
    ));
    errors
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
