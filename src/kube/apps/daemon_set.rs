//! Daemon sets.

use keelson_api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSet};
use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::intstr::IntOrString;
use keelson_machinery::object::Object;
use keelson_registry::{Context, KindCode, Strategy};

use super::{rollout, workload};
use crate::cells;
use crate::core::pod_spec;
use crate::faults::{self, Faults};
use crate::metadata;
use crate::typed::shown;

const NAMES: workload::Names = workload::Names {
    selector: "daemonset",
    kind: "DaemonSet",
    unreadable: "",
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
        pod_spec::disabled::drop_from_template(&mut object.spec.template, None);
        set_template_generation(object, 1);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut DaemonSet, old: &DaemonSet) {
        pod_spec::disabled::drop_from_template(&mut new.spec.template, Some(&old.spec.template));
        let changed = !equality::equal(&new.spec.template, &old.spec.template);
        set_template_generation(new, template_generation(old) + i64::from(changed));
    }

    fn prepare_for_status_update(&self, _context: &Context, new: &mut DaemonSet, old: &DaemonSet) {
        set_template_generation(new, template_generation(old));
    }

    fn versioned_annotations(&self) -> &'static [&'static str] {
        &[TEMPLATE_GENERATION]
    }

    fn validate(&self, _context: &Context, new: &DaemonSet, old: Option<&DaemonSet>) -> ErrorList {
        faults::of_spec(|f| check(f, &new.spec, old.map(|old| &old.spec)))
    }

    fn validate_status_update(&self, _context: &Context, new: &DaemonSet, old: &DaemonSet) -> ErrorList {
        faults::of_status(|f| {
            let status = &new.status;
            f.counts(status, &["currentNumberScheduled", "numberMisscheduled"]);
            f.counts(status, &["desiredNumberScheduled", "numberReady", "observedGeneration"]);
            f.counts(
                status,
                &["updatedNumberScheduled", "numberAvailable", "numberUnavailable"],
            );
            f.counts(status, &["collisionCount"]);
            workload::collisions(f, status.collision_count, old.status.collision_count);
        })
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
    let rolls = rollout.r#type == "RollingUpdate";
    if rolls {
        rollout.rolling_update.get_or_insert_default();
    }
    if let Some(bounds) = &mut rollout.rolling_update {
        bounds.max_unavailable.get_or_insert(IntOrString::Int(rolls.into()));
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

fn check(f: &mut Faults<'_>, spec: &DaemonSetSpec, old: Option<&DaemonSetSpec>) {
    let selector = spec.selector.as_deref();
    if let Some(old) = old {
        workload::immutable_selector(f, selector, old.selector.as_deref());
    }
    f.selector("selector", selector);
    workload::selects(f, selector, &spec.template);
    workload::not_everything(f, selector, &NAMES);
    let mut template = f.at("template");
    pod_spec::check_template(&mut template, &spec.template, old.map(|old| &old.template));
    workload::runs_for_ever(&mut template, &spec.template, NAMES.kind);
    f.at("minReadySeconds").non_negative(spec.min_ready_seconds);
    check_rollout(&mut f.at("updateStrategy"), &spec.update_strategy);
    f.at("revisionHistoryLimit").non_negative(spec.revision_history_limit);
}

fn check_rollout(f: &mut Faults<'_>, rollout: &DaemonSetUpdateStrategy) {
    match (rollout.r#type.as_str(), rollout.rolling_update.as_deref()) {
        ("OnDelete", _) => {}
        ("RollingUpdate", None) => f.at("rollingUpdate").required(""),
        ("RollingUpdate", Some(bounds)) => check_bounds(&mut f.at("rollingUpdate"), bounds),
        _ => f.not_supported(shown(rollout), &["RollingUpdate", "OnDelete"]),
    }
}

/// Pods are replaced either before or after the old ones go.
fn check_bounds(f: &mut Faults<'_>, bounds: &RollingUpdateDaemonSet) {
    let (unavailable, surge) = (bounds.max_unavailable.as_ref(), bounds.max_surge.as_ref());
    for check in [rollout::positive_or_percent, rollout::at_most_all] {
        f.some("maxUnavailable", unavailable, check);
        f.some("maxSurge", surge, check);
    }
    match (rollout::is_zero(unavailable), rollout::is_zero(surge)) {
        (true, true) => f.at("maxUnavailable").required("cannot be 0 when maxSurge is 0"),
        (false, false) => f
            .at("maxSurge")
            .invalid(rollout::shown(surge), "may not be set when maxUnavailable is non-zero"),
        _ => {}
    }
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
                "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
            ),
            (
                r#"{"maxSurge":2}"#,
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 2: may not be set when maxUnavailable is \
                 non-zero",
            ),
        ] {
            let o = daemon_set(&format!(r#","updateStrategy":{{"rollingUpdate":{bounds}}}"#));
            assert_eq!(lines(&DaemonSetStrategy.validate(&context(), &o, None)), expected);
        }
    }
}
