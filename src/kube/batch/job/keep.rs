//! Immutable fields of jobs: whose pods are its own, how it counts them, and what they are made from. Of a suspended
//! job without pods, where they run and what they need may still change.

use keelson_api::batch::v1::{Job, JobSpec};
use keelson_api::core::v1::{Affinity, Container, PodSpec, PodTemplateSpec};
use keelson_machinery::equality;
use keelson_machinery::reflect::Reflect;
use keelson_registry::Kept;

use crate::faults::Faults;
use crate::typed::{self, IMMUTABLE};

const SUSPENDED: &str = "Suspended";
const INDEXED: &str = "Indexed";
/// Fields that never change, in the order in which faults are told.
const KEPT: [Kept; 5] = [
    Kept::at("spec.completionMode"),
    Kept::at("spec.podFailurePolicy"),
    Kept::at("spec.backoffLimitPerIndex"),
    Kept::at("spec.managedBy"),
    Kept::at("spec.successPolicy"),
];

/// Checks a changed specification. `f` stands at it.
pub fn check(f: &mut Faults<'_>, new: &Job, old: &Job) {
    completions(&mut f.at("completions"), &new.spec, &old.spec);
    f.extend(Kept::at("spec.selector").fault(new, old));
    template(f, new, old);
    f.extend(KEPT.iter().filter_map(|field| field.fault(new, old)));
}

/// Of a job that counts its pods by index, the number may grow and shrink with that of its pods.
fn completions(f: &mut Faults<'_>, new: &JobSpec, old: &JobSpec) {
    let (now, is_indexed) = (new.completions, new.completion_mode.as_deref() == Some(INDEXED));
    let is_apart = now.is_some() && now != new.parallelism;
    match is_indexed {
        _ if now == old.completions => {}
        false => f.invalid(now.map(i64::from), IMMUTABLE),
        true => f.invalid_if(
            is_apart,
            now.map(i64::from),
            "can only be modified in tandem with spec.parallelism",
        ),
    }
}

fn template(f: &mut Faults<'_>, new: &Job, old: &Job) {
    let (now, mut was) = (&new.spec.template, old.spec.template.clone());
    let is_suspended = old.spec.suspend == Some(true);
    let is_noted = |c: &keelson_api::batch::v1::JobCondition| c.r#type == SUSPENDED && c.status == "True";
    let has_stopped = old.status.start_time.is_none() || old.status.conditions.iter().any(is_noted);
    if !is_suspended || !has_stopped || old.status.active != 0 {
        return same(&mut f.at("template"), now, &was);
    }
    take_places(&mut was, now);
    // Nothing outside of the specification of the pods is looked at.
    take_needs(&mut was.spec.containers, &now.spec.containers);
    take_needs(&mut was.spec.init_containers, &now.spec.init_containers);
    same(&mut f.at("template.spec"), &now.spec, &was.spec);
}

fn same<T: Reflect>(f: &mut Faults<'_>, now: &T, was: &T) {
    if !equality::equal(now, was) {
        f.invalid(typed::shown(now), IMMUTABLE);
    }
}

/// Where pods may run.
fn take_places(was: &mut PodTemplateSpec, now: &PodTemplateSpec) {
    take_node_affinity(&mut was.spec, &now.spec);
    was.spec.node_selector.clone_from(&now.spec.node_selector);
    was.spec.tolerations.clone_from(&now.spec.tolerations);
    was.spec.scheduling_gates.clone_from(&now.spec.scheduling_gates);
    was.metadata.annotations.clone_from(&now.metadata.annotations);
    was.metadata.labels.clone_from(&now.metadata.labels);
}

fn take_node_affinity(was: &mut PodSpec, now: &PodSpec) {
    match (&mut was.affinity, &now.affinity) {
        (Some(was), Some(now)) => was.node_affinity.clone_from(&now.node_affinity),
        (Some(affinity), None) => {
            affinity.node_affinity = None;
            if equality::is_zero(&**affinity) {
                was.affinity = None;
            }
        }
        (None, Some(now)) => {
            was.affinity = Some(Box::new(Affinity {
                node_affinity: now.node_affinity.clone(),
                ..Affinity::default()
            }));
        }
        (None, None) => {}
    }
}

fn take_needs(was: &mut [Container], now: &[Container]) {
    if was.len() != now.len() {
        return;
    }
    for (was, now) in was.iter_mut().zip(now).filter(|(was, now)| was.name == now.name) {
        was.resources.clone_from(&now.resources);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::of_spec;
    use crate::testing::{lines, read};

    fn changed(old: &str, new: &str) -> String {
        let fields = lines(&of_spec(|f| check(f, &read(new), &read(old))));
        fields
            .lines()
            .map(|line| line.split(": Invalid").next().unwrap())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn pods_and_their_count_stay() {
        for (old, new, expected) in [
            ("{}", r#"{"selector":{"matchLabels":{"a":"b"}}}"#, "spec.selector"),
            (r#"{"completions":1}"#, r#"{"completions":2}"#, "spec.completions"),
            ("{}", r#"{"completionMode":"Indexed"}"#, "spec.completionMode"),
            ("{}", r#"{"managedBy":"a/b"}"#, "spec.managedBy"),
            ("{}", r#"{"parallelism":3,"backoffLimit":1,"suspend":true}"#, ""),
            (
                "{}",
                r#"{"template":{"spec":{"serviceAccountName":"x"}}}"#,
                "spec.template",
            ),
            (
                "{}",
                r#"{"template":{"metadata":{"labels":{"a":"b"}}}}"#,
                "spec.template",
            ),
            (
                r#"{"completionMode":"Indexed","completions":1}"#,
                r#"{"completionMode":"Indexed","completions":2,"parallelism":2}"#,
                "",
            ),
            (
                r#"{"completionMode":"Indexed","completions":1}"#,
                r#"{"completionMode":"Indexed","completions":2,"parallelism":1}"#,
                "spec.completions",
            ),
        ] {
            let job = |spec: &str| format!(r#"{{"spec":{spec}}}"#);
            assert_eq!(changed(&job(old), &job(new)), expected, "{old} {new}");
        }
    }

    #[test]
    fn a_suspended_job_may_still_move() {
        let job = |template: &str, status: &str| {
            format!(r#"{{"spec":{{"suspend":true,"template":{template}}},"status":{status}}}"#)
        };
        let plain = r#"{"spec":{"containers":[{"name":"c"}]}}"#;
        let affinity = r#"{"spec":{"containers":[{"name":"c"}],"affinity":{"nodeAffinity":{}}}}"#;
        let pods = r#"{"spec":{"containers":[{"name":"c"}],"affinity":{"podAffinity":{}}}}"#;
        for (new, expected) in [
            (
                r#"{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c"}],"nodeSelector":{"a":"b"}}}"#,
                "",
            ),
            (
                r#"{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}"#,
                "",
            ),
            (affinity, ""),
            (pods, "spec.template.spec"),
            (
                r#"{"spec":{"containers":[{"name":"c","image":"i"}]}}"#,
                "spec.template.spec",
            ),
            (
                r#"{"spec":{"containers":[{"name":"c"}],"serviceAccountName":"x"}}"#,
                "spec.template.spec",
            ),
        ] {
            assert_eq!(changed(&job(plain, "{}"), &job(new, "{}")), expected, "{new}");
        }
        assert_eq!(changed(&job(affinity, "{}"), &job(plain, "{}")), "");
        let started = r#"{"startTime":"2020-01-01T00:00:00Z"}"#;
        assert_eq!(changed(&job(plain, started), &job(affinity, started)), "spec.template");
        let stopped = r#"{"startTime":"2020-01-01T00:00:00Z","conditions":[{"type":"Suspended","status":"True"}]}"#;
        assert_eq!(changed(&job(plain, stopped), &job(affinity, stopped)), "");
        let active = stopped.replacen('{', r#"{"active":1,"#, 1);
        assert_eq!(changed(&job(plain, &active), &job(affinity, &active)), "spec.template");
    }
}
