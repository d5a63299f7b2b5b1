//! Daemon sets.

use keelson_api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy};
use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::intstr::IntOrString;
use keelson_machinery::object::Object;
use keelson_registry::{Context, KindCode, Strategy};

use super::{rollout, workload};
use crate::cells;
use crate::core::pod_spec;
use crate::metadata;
use crate::typed::non_negative;

const NAMES: workload::Names = workload::Names {
    selector: "daemonset",
    kind: "DaemonSet",
};

/// Counts the changes of the template; older clients look at it.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Registers the rules of daemon sets.
pub fn register(code: &mut KindCode) {
    code.kind::<DaemonSet>()
        .strategy(DaemonSetStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::workload::DAEMON_SET);
}

/// The rules of daemon sets.
struct DaemonSetStrategy;

impl Strategy for DaemonSetStrategy {
    type Object = DaemonSet;

    fn warnings(&self, new: &DaemonSet, old: Option<&DaemonSet>) -> Vec<String> {
        if old.is_some_and(|old| template_generation(old) == template_generation(new)) {
            return Vec::new();
        }
        pod_spec::warnings::of_template(&new.spec.template, &Path::new("spec").child("template"))
    }

    fn fill_bookmark(&self, object: &mut DaemonSet) {
        set_template_generation(object, 0);
    }

    fn prepare_for_create(&self, _context: &Context, object: &mut DaemonSet) {
        set_template_generation(object, 1);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut DaemonSet, old: &DaemonSet) {
        let changed = !equality::equal(&new.spec.template, &old.spec.template);
        set_template_generation(new, template_generation(old) + i64::from(changed));
    }

    fn prepare_for_status_update(&self, _context: &Context, new: &mut DaemonSet, old: &DaemonSet) {
        set_template_generation(new, template_generation(old));
    }

    fn versioned_annotations(&self) -> &'static [&'static str] {
        &[TEMPLATE_GENERATION]
    }

    fn validate(&self, _context: &Context, object: &DaemonSet) -> ErrorList {
        validate(&object.spec)
    }

    fn validate_update(&self, _context: &Context, new: &DaemonSet, old: &DaemonSet) -> ErrorList {
        let mut errors = validate(&new.spec);
        let (now, was) = (new.spec.selector.as_deref(), old.spec.selector.as_deref());
        errors.extend(workload::immutable_selector(now, was, &Path::new("spec")));
        errors
    }

    fn validate_status_update(&self, _context: &Context, new: &DaemonSet, _old: &DaemonSet) -> ErrorList {
        let status = &new.status;
        let path = Path::new("status");
        let counts = [
            ("currentNumberScheduled", status.current_number_scheduled),
            ("numberMisscheduled", status.number_misscheduled),
            ("desiredNumberScheduled", status.desired_number_scheduled),
            ("numberReady", status.number_ready),
            ("updatedNumberScheduled", status.updated_number_scheduled),
            ("numberAvailable", status.number_available),
            ("numberUnavailable", status.number_unavailable),
        ];
        counts
            .into_iter()
            .flat_map(|(field, n)| non_negative(n.into(), &path.child(field)))
            .collect()
    }
}

/// Defaults in code of daemon sets.
fn defaults(o: &mut DaemonSet) {
    pod_spec::of_template(&mut o.spec.template);
    let annotations = &mut o.metadata.annotations;
    annotations
        .entry(TEMPLATE_GENERATION.to_owned())
        .or_insert_with(|| "0".to_owned());
    let rollout = &mut o.spec.update_strategy;
    if rollout.r#type == "RollingUpdate" {
        let bounds = rollout.rolling_update.get_or_insert_default();
        bounds.max_unavailable.get_or_insert(IntOrString::Int(1));
        bounds.max_surge.get_or_insert(IntOrString::Int(0));
    }
}

fn template_generation(o: &DaemonSet) -> i64 {
    o.metadata
        .annotations
        .get(TEMPLATE_GENERATION)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

fn set_template_generation(object: &mut dyn Object, generation: i64) {
    object
        .meta_mut()
        .annotations
        .insert(TEMPLATE_GENERATION.to_owned(), generation.to_string());
}

fn validate(spec: &DaemonSetSpec) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = workload::selector_and_template(spec.selector.as_deref(), &spec.template, &NAMES, &path);
    errors.extend(non_negative(
        spec.min_ready_seconds.into(),
        &path.child("minReadySeconds"),
    ));
    errors.extend(validate_rollout(&spec.update_strategy, &path.child("updateStrategy")));
    if let Some(limit) = spec.revision_history_limit {
        errors.extend(non_negative(limit.into(), &path.child("revisionHistoryLimit")));
    }
    errors
}

fn validate_rollout(rollout: &DaemonSetUpdateStrategy, path: &Path) -> ErrorList {
    let Some(bounds) = rollout
        .rolling_update
        .as_ref()
        .filter(|_| rollout.r#type == "RollingUpdate")
    else {
        return ErrorList::default();
    };
    let path = path.child("rollingUpdate");
    let (unavailable, surge) = (bounds.max_unavailable.as_ref(), bounds.max_surge.as_ref());
    let mut errors = ErrorList::default();
    for (bound, path) in [
        (unavailable, path.child("maxUnavailable")),
        (surge, path.child("maxSurge")),
    ] {
        let Some(bound) = bound else { continue };
        errors.extend(rollout::positive_or_percent(bound, &path));
        errors.extend(rollout::above_all(bound, &path));
    }
    let at = path.child("maxUnavailable");
    match (rollout::is_zero(unavailable), rollout::is_zero(surge)) {
        (true, true) => {
            errors.push(FieldError::invalid(
                &at,
                rollout::shown(unavailable),
                "cannot be 0 when maxSurge is 0",
            ));
        }
        (false, false) => {
            let text = "may not be set when maxUnavailable is non-zero";
            errors.push(FieldError::invalid(
                &path.child("maxSurge"),
                rollout::shown(surge),
                text,
            ));
        }
        _ => {}
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read_defaulted, text};

    fn daemon_set(more: &str) -> DaemonSet {
        let mut o = read_defaulted(&format!(
            r#"{{"spec":{{"selector":{{"matchLabels":{{"f":"z"}}}},"template":{{"metadata":{{"labels":{{"f":"z"}}}},
            "spec":{{"containers":[{{"image":"x","name":"c"}}]}}}}{more}}}}}"#
        ));
        defaults(&mut o);
        o
    }

    #[test]
    fn changes_of_the_template_are_counted() {
        let (mut old, mut new) = (daemon_set(""), daemon_set(""));
        DaemonSetStrategy.prepare_for_create(&context(), &mut old);
        assert_eq!(old.metadata.annotations[TEMPLATE_GENERATION], "1");
        DaemonSetStrategy.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new.metadata.annotations[TEMPLATE_GENERATION], "1");
        new.spec.template.spec.containers[0].image = "y".to_owned();
        DaemonSetStrategy.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new.metadata.annotations[TEMPLATE_GENERATION], "2");
    }

    #[test]
    fn a_rollout_moves_by_one_bound() {
        assert_eq!(
            text(&daemon_set("").spec.update_strategy),
            r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"maxSurge":0}}"#
        );
        for (bounds, expected) in [
            ("{}", ""),
            (
                r#"{"maxUnavailable":0}"#,
                "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0 when maxSurge is 0",
            ),
            (
                r#"{"maxSurge":2}"#,
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 2: may not be set when maxUnavailable is \
                 non-zero",
            ),
        ] {
            let o = daemon_set(&format!(r#","updateStrategy":{{"rollingUpdate":{bounds}}}"#));
            assert_eq!(lines(&DaemonSetStrategy.validate(&context(), &o)), expected);
        }
    }
}
