//! Stateful sets.

use keelson_api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};
use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_registry::{Context, KindCode, Strategy};

use super::workload;
use crate::cells;
use crate::core::{persistent_volume_claim, pod_spec};
use crate::metadata;
use crate::typed::{is_new_generation, non_negative, shown};

const NAMES: workload::Names = workload::Names {
    selector: "statefulset",
    kind: "StatefulSet",
};

const FIXED: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
    'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

/// Registers the rules of stateful sets.
pub fn register(code: &mut KindCode) {
    code.kind::<StatefulSet>()
        .strategy(StatefulSetStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::workload::STATEFUL_SET);
}

/// The rules of stateful sets.
struct StatefulSetStrategy;

impl Strategy for StatefulSetStrategy {
    type Object = StatefulSet;

    fn warnings(&self, new: &StatefulSet, old: Option<&StatefulSet>) -> Vec<String> {
        if !is_new_generation(new, old) {
            return Vec::new();
        }
        let path = Path::new("spec");
        let mut found = pod_spec::warnings::of_template(&new.spec.template, &path.child("template"));
        for (place, claim) in new.spec.volume_claim_templates.iter().enumerate() {
            let path = path.child("volumeClaimTemplates").index(place);
            found.extend(persistent_volume_claim::warnings_of(claim, &path));
        }
        found
    }

    fn prepare_for_create(&self, _context: &Context, object: &mut StatefulSet) {
        drop_disabled(object, None);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut StatefulSet, old: &StatefulSet) {
        drop_disabled(new, Some(old));
    }

    fn fill_bookmark(&self, object: &mut StatefulSet) {
        object.spec.replicas = Some(0);
    }

    fn validate(&self, _context: &Context, object: &StatefulSet) -> ErrorList {
        validate(&object.spec)
    }

    fn validate_update(&self, _context: &Context, new: &StatefulSet, old: &StatefulSet) -> ErrorList {
        let mut errors = validate(&new.spec);
        if !equality::equal(&with_allowed_changes_undone(&new.spec, &old.spec), &old.spec) {
            errors.push(FieldError::forbidden(&Path::new("spec"), FIXED));
        }
        errors
    }

    fn validate_status_update(&self, _context: &Context, new: &StatefulSet, _old: &StatefulSet) -> ErrorList {
        let status = &new.status;
        let path = Path::new("status");
        let counts = [
            ("replicas", status.replicas),
            ("readyReplicas", status.ready_replicas),
            ("currentReplicas", status.current_replicas),
            ("updatedReplicas", status.updated_replicas),
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
        errors
    }
}

/// Defaults in code of stateful sets.
fn defaults(o: &mut StatefulSet) {
    pod_spec::of_template(&mut o.spec.template);
    let rollout = &mut o.spec.update_strategy;
    if rollout.r#type.is_empty() {
        rollout.r#type = "RollingUpdate".to_owned();
        rollout.rolling_update.get_or_insert_default();
    }
    if let Some(rolling) = rollout
        .rolling_update
        .as_mut()
        .filter(|_| rollout.r#type == "RollingUpdate")
    {
        rolling.partition.get_or_insert(0);
    }
}

fn with_allowed_changes_undone(new: &StatefulSetSpec, old: &StatefulSetSpec) -> StatefulSetSpec {
    let kept = new.clone();
    StatefulSetSpec {
        selector: kept.selector,
        volume_claim_templates: kept.volume_claim_templates,
        service_name: kept.service_name,
        pod_management_policy: kept.pod_management_policy,
        ..old.clone()
    }
}

fn validate(spec: &StatefulSetSpec) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = validate_rollout(&spec.update_strategy, &path.child("updateStrategy"));
    errors.extend(non_negative(spec.replicas.unwrap_or(0).into(), &path.child("replicas")));
    errors.extend(non_negative(
        spec.min_ready_seconds.into(),
        &path.child("minReadySeconds"),
    ));
    if let Some(ordinals) = &spec.ordinals {
        errors.extend(non_negative(
            ordinals.start.into(),
            &path.child("ordinals").child("start"),
        ));
    }
    errors.extend(workload::selector_and_template(
        spec.selector.as_deref(),
        &spec.template,
        &NAMES,
        &path,
    ));
    errors
}

fn validate_rollout(rollout: &StatefulSetUpdateStrategy, path: &Path) -> ErrorList {
    let Some(rolling) = &rollout.rolling_update else {
        return ErrorList::default();
    };
    let path = path.child("rollingUpdate");
    if rollout.r#type == "OnDelete" {
        let text = "only allowed for updateStrategy 'RollingUpdate'";
        return FieldError::invalid(&path, shown(&**rolling), text).into();
    }
    non_negative(rolling.partition.unwrap_or(0).into(), &path.child("partition"))
}

/// How many pods may be away at once is told by a feature that is not enabled; what was stored stays.
fn drop_disabled(o: &mut StatefulSet, old: Option<&StatefulSet>) {
    let rolling = |o: &StatefulSet| o.spec.update_strategy.rolling_update.clone();
    if old.and_then(rolling).is_some_and(|r| r.max_unavailable.is_some()) {
        return;
    }
    if let Some(rolling) = &mut o.spec.update_strategy.rolling_update {
        rolling.max_unavailable = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read_defaulted, text};

    fn stateful_set(more: &str) -> StatefulSet {
        let mut o = read_defaulted(&format!(
            r#"{{"spec":{{"selector":{{"matchLabels":{{"f":"z"}}}},"template":{{"metadata":{{"labels":{{"f":"z"}}}},
            "spec":{{"containers":[{{"image":"x","name":"c"}}]}}}}{more}}}}}"#
        ));
        defaults(&mut o);
        o
    }

    #[test]
    fn the_rollout_has_a_partition() {
        let partition = r#"{"type":"RollingUpdate","rollingUpdate":{"partition":0}}"#;
        for (given, expected) in [
            ("{}", partition),
            (r#"{"type":"OnDelete"}"#, r#"{"type":"OnDelete"}"#),
            (r#"{"type":"RollingUpdate"}"#, r#"{"type":"RollingUpdate"}"#),
            (
                r#"{"rollingUpdate":{"partition":2}}"#,
                r#"{"type":"RollingUpdate","rollingUpdate":{"partition":2}}"#,
            ),
        ] {
            let o = stateful_set(&format!(r#","updateStrategy":{given}"#));
            assert_eq!(text(&o.spec.update_strategy), expected);
        }
    }

    #[test]
    fn few_fields_change() {
        let old = stateful_set("");
        let check = |new: &StatefulSet| lines(&StatefulSetStrategy.validate_update(&context(), new, &old));
        let mut new = stateful_set(r#","replicas":3,"minReadySeconds":5,"ordinals":{"start":1}"#);
        new.spec.template.spec.containers[0].image = "y".to_owned();
        assert_eq!(check(&new), "");
        assert_eq!(
            check(&stateful_set(r#","serviceName":"a""#)),
            format!("spec: Forbidden: {FIXED}")
        );
        let new = stateful_set(r#","updateStrategy":{"type":"OnDelete","rollingUpdate":{"partition":1}}"#);
        assert_eq!(
            check(&new),
            "spec.updateStrategy.rollingUpdate: Invalid value: {\"partition\":1}: only allowed for updateStrategy \
             'RollingUpdate'"
        );
    }
}
