//! Deployments.

use keelson_api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStatus, DeploymentStrategy as Rollout, RollingUpdateDeployment,
};
use keelson_machinery::field::{ErrorList, Path};
use keelson_registry::write::Part;
use keelson_registry::{Context, KindCode, Strategy};

use super::{rollout, workload};
use crate::cells;
use crate::core::pod_spec;
use crate::faults::{self, Faults};
use crate::metadata;
use crate::typed::{is_new_generation, shown};

const NAMES: workload::Names = workload::Names {
    selector: "deployment",
    kind: "ReplicaSet",
    unreadable: "invalid label selector",
};

/// Registers the rules of deployments.
pub fn register(code: &mut KindCode) {
    code.kind::<Deployment>()
        .strategy(DeploymentStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::workload::DEPLOYMENT);
}

/// The rules of deployments.
struct DeploymentStrategy;

impl Strategy for DeploymentStrategy {
    type Object = Deployment;

    fn warnings(&self, new: &Deployment, old: Option<&Deployment>) -> Vec<String> {
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

    fn fill_bookmark(&self, object: &mut Deployment) {
        object.spec.replicas = Some(0);
    }

    fn prepare_for_create(&self, _context: &Context, object: &mut Deployment) {
        pod_spec::disabled::drop_from_template(&mut object.spec.template, None);
    }

    /// Annotations go down to the replica sets, so that a change of them counts as one of the specification.
    fn prepare_for_update(&self, _context: &Context, new: &mut Deployment, old: &Deployment) {
        pod_spec::disabled::drop_from_template(&mut new.spec.template, Some(&old.spec.template));
        if new.metadata.annotations != old.metadata.annotations {
            new.metadata.generation = old.metadata.generation + 1;
        }
    }

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        match part {
            Part::Status => &[&["metadata", "labels"]],
            _ => &[],
        }
    }

    fn prepare_for_status_update(&self, _context: &Context, new: &mut Deployment, old: &Deployment) {
        new.metadata.labels.clone_from(&old.metadata.labels);
    }

    fn validate(&self, _context: &Context, new: &Deployment, old: Option<&Deployment>) -> ErrorList {
        faults::of_spec(|f| check(f, &new.spec, old.map(|old| &old.spec)))
    }

    fn validate_status_update(&self, _context: &Context, new: &Deployment, old: &Deployment) -> ErrorList {
        faults::of_status(|f| check_status(f, &new.status, &old.status))
    }
}

/// Defaults in code of deployments.
fn defaults(deployment: &mut Deployment) {
    pod_spec::of_template(&mut deployment.spec.template);
    let rollout = &mut deployment.spec.strategy;
    if rollout.r#type == "RollingUpdate" {
        let bounds = rollout.rolling_update.get_or_insert_default();
        bounds.max_unavailable.get_or_insert_with(|| "25%".into());
        bounds.max_surge.get_or_insert_with(|| "25%".into());
    }
}

fn check(f: &mut Faults<'_>, spec: &DeploymentSpec, old: Option<&DeploymentSpec>) {
    f.at("replicas").non_negative(spec.replicas);
    let template = old.map(|old| &old.template);
    workload::selector_and_template(f, spec.selector.as_deref(), &spec.template, template, &NAMES);
    check_rollout(&mut f.at("strategy"), &spec.strategy);
    f.counts(
        spec,
        &["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"],
    );
    let (deadline, least) = (spec.progress_deadline_seconds, i64::from(spec.min_ready_seconds));
    f.at("progressDeadlineSeconds").number(
        deadline,
        |seconds| seconds > least,
        "must be greater than minReadySeconds",
    );
    if let Some(old) = old {
        workload::immutable_selector(f, spec.selector.as_deref(), old.selector.as_deref());
    }
}

fn check_rollout(f: &mut Faults<'_>, rollout: &Rollout) {
    match (rollout.r#type.as_str(), rollout.rolling_update.as_deref()) {
        ("Recreate", None) => {}
        ("Recreate", Some(_)) => f
            .at("rollingUpdate")
            .forbidden("may not be specified when strategy `type` is 'Recreate'"),
        ("RollingUpdate", None) => f
            .at("rollingUpdate")
            .required("this should be defaulted and never be nil"),
        ("RollingUpdate", Some(bounds)) => check_bounds(&mut f.at("rollingUpdate"), bounds),
        _ => f.not_supported(shown(rollout), &["Recreate", "RollingUpdate"]),
    }
}

fn check_bounds(f: &mut Faults<'_>, bounds: &RollingUpdateDeployment) {
    let (unavailable, surge) = (bounds.max_unavailable.as_ref(), bounds.max_surge.as_ref());
    f.some("maxUnavailable", unavailable, rollout::positive_or_percent);
    f.some("maxSurge", surge, rollout::positive_or_percent);
    if rollout::is_zero(unavailable) && rollout::is_zero(surge) {
        f.at("maxUnavailable")
            .invalid(rollout::shown(unavailable), "may not be 0 when `maxSurge` is 0");
    }
    f.some("maxUnavailable", unavailable, rollout::at_most_all);
}

fn check_status(f: &mut Faults<'_>, status: &DeploymentStatus, old: &DeploymentStatus) {
    let of_all = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    f.counts(status, &["observedGeneration", "replicas"]);
    f.counts(status, &of_all);
    f.counts(
        status,
        &["unavailableReplicas", "terminatingReplicas", "collisionCount"],
    );
    workload::parts(f, status, ("replicas", "status.replicas"), &of_all);
    workload::parts(f, status, ("readyReplicas", "readyReplicas"), &["availableReplicas"]);
    workload::collisions(f, status.collision_count, old.collision_count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read_defaulted, text};

    const SPEC: &str = r#"{"selector":{"matchLabels":{"f":"z"}},"template":{"metadata":{"labels":{"f":"z"}},
        "spec":{"containers":[{"image":"busybox","name":"c"}]}}"#;

    fn deployment(more: &str) -> Deployment {
        let mut o = read_defaulted(&format!(r#"{{"metadata":{{"generation":1}},"spec":{SPEC}{more}}}}}"#));
        defaults(&mut o);
        o
    }

    #[test]
    fn a_rollout_has_bounds() {
        assert_eq!(
            text(&deployment("").spec.strategy),
            r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}"#
        );
        assert_eq!(
            text(&deployment(r#","strategy":{"type":"Recreate"}"#).spec.strategy),
            r#"{"type":"Recreate"}"#
        );
        let given = deployment(r#","strategy":{"rollingUpdate":{"maxSurge":3}}"#);
        assert_eq!(
            text(&given.spec.strategy),
            r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":3}}"#
        );
        assert_eq!(
            deployment("").spec.template.spec.containers[0].image_pull_policy,
            "Always"
        );
    }

    #[test]
    fn faults_have_the_texts_of_the_api() {
        for (more, expected) in [
            ("", ""),
            (
                r#","replicas":-1,"progressDeadlineSeconds":0"#,
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0\n\
                 spec.progressDeadlineSeconds: Invalid value: 0: must be greater than minReadySeconds",
            ),
            (
                r#","strategy":{"type":"Recreate","rollingUpdate":{}}"#,
                "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
            ),
            (
                r#","strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":"0%"}}"#,
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 when `maxSurge` is 0",
            ),
            (
                r#","strategy":{"rollingUpdate":{"maxUnavailable":"101%"}}"#,
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%",
            ),
        ] {
            assert_eq!(
                lines(&DeploymentStrategy.validate(&context(), &deployment(more), None)),
                expected,
                "{more}"
            );
        }
    }

    #[test]
    fn the_selector_matches_the_template() {
        let mut o = deployment("");
        o.spec.template.metadata.labels.clear();
        assert_eq!(
            lines(&DeploymentStrategy.validate(&context(), &o, None)),
            "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`"
        );
        let mut o = deployment("");
        o.spec.selector = None;
        assert_eq!(
            lines(&DeploymentStrategy.validate(&context(), &o, None)),
            "spec.template.metadata.labels: Invalid value: {\"f\":\"z\"}: `selector` does not match template `labels`"
        );
        o.spec.selector = Some(Box::default());
        assert_eq!(
            lines(&DeploymentStrategy.validate(&context(), &o, None)),
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment"
        );
        o.spec.template.spec.restart_policy = "Never".to_owned();
        let old = deployment("");
        assert_eq!(
            lines(&DeploymentStrategy.validate(&context(), &o, Some(&old))),
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment\n\
             spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"\n\
             spec.selector: Invalid value: {}: field is immutable"
        );
    }

    #[test]
    fn annotations_count_as_specification() {
        let (old, mut new) = (deployment(""), deployment(""));
        DeploymentStrategy.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new.metadata.generation, 1);
        new.metadata.annotations.insert("a".to_owned(), "b".to_owned());
        DeploymentStrategy.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new.metadata.generation, 2);
    }

    #[test]
    fn counts_fit_together() {
        let mut o = deployment("");
        o.status.replicas = 1;
        o.status.available_replicas = 2;
        assert_eq!(
            lines(&DeploymentStrategy.validate_status_update(&context(), &o, &o)),
            "status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas\n\
             status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"
        );
    }
}
