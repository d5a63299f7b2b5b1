//! New pods, changes and ends of pods.

use super::change::CHANGEABLE;
use super::*;
use crate::testing::{context, lines, read, read_defaulted};

#[test]
fn a_new_pod_waits() {
    let mut pod: Pod = read(
        r#"{"spec":{"containers":[{"name":"a"}],"schedulingGates":[{"name":"g"}]},"status":{"phase":"Running","podIP":"1.2.3.4"}}"#,
    );
    PodStrategy.prepare_for_create(&context(), &mut pod);
    assert_eq!(
        (pod.status.phase.as_str(), pod.status.qos_class.as_str()),
        ("Pending", "BestEffort")
    );
    assert_eq!(pod.status.conditions[0].reason, "SchedulingGated");
    assert!(pod.status.pod_ip.is_empty());
}

#[test]
fn grace_is_for_pods_that_run() {
    let bound = r#""nodeName":"n","terminationGracePeriodSeconds":30"#;
    for (spec, phase, asked, expected) in [
        ("", "Running", None, 0),
        (bound, "Pending", None, 30),
        (bound, "Running", Some(5), 5),
        (bound, "Running", Some(0), 0),
        (bound, "Running", Some(-7), 1),
        (bound, "Succeeded", Some(5), 0),
        (bound, "Failed", None, 0),
        (r#""nodeName":"n""#, "Running", None, 0),
        (
            r#""nodeName":"n","terminationGracePeriodSeconds":-1"#,
            "Running",
            None,
            1,
        ),
    ] {
        let pod: Pod = read(&format!(r#"{{"spec":{{{spec}}},"status":{{"phase":"{phase}"}}}}"#));
        let options = DeleteOptions {
            grace_period_seconds: asked,
            ..DeleteOptions::default()
        };
        assert_eq!(
            PodStrategy.grace_seconds(&pod, &options),
            Some(expected),
            "{spec} {phase} {asked:?}"
        );
    }
}

const OLD: &str = r#"{"containers":[{"name":"a","image":"x:1"}],"initContainers":[{"name":"i","image":"x:1"}],
    "activeDeadlineSeconds":50,"tolerations":[{"key":"k","operator":"Exists","effect":"NoExecute"}],
    "schedulingGates":[{"name":"g"},{"name":"h"}],"nodeSelector":{"a":"b"}}"#;

fn change(replace: &[(&str, &str)]) -> String {
    let mut new = OLD.to_owned();
    for (from, to) in replace {
        assert!(new.contains(from), "{from}");
        new = new.replacen(from, to, 1);
    }
    let object = |spec: &str| read_defaulted::<Pod>(&format!(r#"{{"spec":{spec}}}"#));
    lines(&PodStrategy.validate(&context(), &object(&new), Some(&object(OLD))))
}

#[test]
fn some_changes_are_allowed() {
    for replace in [
        vec![],
        vec![(r#""image":"x:1""#, r#""image":"x:2""#)],
        vec![(
            r#""initContainers":[{"name":"i","image":"x:1""#,
            r#""initContainers":[{"name":"i","image":"y""#,
        )],
        vec![("50", "40")],
        vec![(
            r#""effect":"NoExecute""#,
            r#""effect":"NoExecute","tolerationSeconds":9"#,
        )],
        vec![(
            r#""tolerations":["#,
            r#""tolerations":[{"key":"new","operator":"Exists"},"#,
        )],
        vec![(r#"{"name":"g"},"#, "")],
        vec![(r#"{"a":"b"}"#, r#"{"a":"b","c":"d"}"#)],
    ] {
        assert_eq!(change(&replace), "", "{replace:?}");
    }
}

#[test]
fn all_others_are_not() {
    let other =
        |fields: &str| format!("spec: Forbidden: pod updates may not change fields other than {CHANGEABLE}\n{fields}");
    for (replace, expected) in [
        (
            vec![("50", "60")],
            "spec.activeDeadlineSeconds: Invalid value: 60: must be less than or equal to previous value",
        ),
        (
            vec![(r#""activeDeadlineSeconds":50,"#, "")],
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
        ),
        (
            vec![(r#""key":"k""#, r#""key":"l""#)],
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
        ),
        (
            vec![(r#"{"name":"g"}"#, r#"{"name":"z"}"#)],
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'z'",
        ),
        (
            vec![(r#""containers":["#, r#""containers":[{"name":"b","image":"x"},"#)],
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        (
            vec![(
                r#""name":"a","image":"x:1""#,
                r#""name":"a","image":"x:1","command":["c"]"#,
            )],
            &other("spec.containers[0]"),
        ),
        (
            vec![(r#"{"a":"b"}"#, r#"{"c":"d"},"nodeName":"""#)],
            "spec.nodeSelector: Invalid value: {\"c\":\"d\"}: only additions to spec.nodeSelector are allowed (no \
             mutations or deletions)",
        ),
    ] {
        assert_eq!(change(&replace), expected, "{replace:?}");
    }
}
