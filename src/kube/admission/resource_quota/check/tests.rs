//! Tests of the check of requests against quotas.

use std::sync::Arc;

use keelson_api::core::v1::{ConfigMap, Pod};
use keelson_machinery::quantity::Quantity;

use super::*;
use crate::admission::resource_quota::devices::Classes;
use crate::testing::read;

fn quota(name: &str, spec: &str, hard: &str, used: &str) -> Arc<ResourceQuota> {
    Arc::new(read(&format!(
        r#"{{"metadata":{{"name":"{name}"}},"spec":{spec},"status":{{"hard":{hard},"used":{used}}}}}"#
    )))
}

fn pod(spec: &str) -> Pod {
    read(&format!(r#"{{"spec":{spec}}}"#))
}

fn checked(
    quotas: &[Arc<ResourceQuota>],
    limited: &[LimitedResource],
    (object, old): (&dyn Kind, Option<&dyn Kind>),
    plural: &str,
) -> String {
    let classes = Classes::default();
    let request = Request {
        group: "",
        plural,
        object,
        old,
        now: Time::from_unix(0, 0),
    };
    let taken = check(&Evaluator::of("", plural, &classes), quotas, limited, &request);
    let short = |taken: &Taken| format!("{}: {}", taken.quota, text(&taken.amounts));
    match taken {
        Ok(taken) => taken.iter().map(short).collect::<Vec<_>>().join("; "),
        Err(Refusal::Forbidden(why)) => format!("forbidden: {why}"),
        Err(Refusal::Other(why)) => format!("other: {why}"),
    }
}

const CPU: &str = r#"{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"2"}}}]}"#;

#[test]
fn what_a_request_takes_is_what_quotas_bound() {
    let quotas = [
        quota(
            "a",
            "{}",
            r#"{"pods":"5","requests.cpu":"3"}"#,
            r#"{"pods":"1","requests.cpu":"1"}"#,
        ),
        quota("b", "{}", r#"{"configmaps":"5"}"#, r#"{"configmaps":"0"}"#),
        quota(
            "c",
            r#"{"scopes":["Terminating"]}"#,
            r#"{"pods":"5"}"#,
            r#"{"pods":"0"}"#,
        ),
        quota("d", "{}", "{}", "{}"),
    ];
    let unknown = [quota("a", "{}", r#"{"pods":"5","cpu":"1"}"#, r#"{"cpu":"1"}"#)];
    let terminating = r#"{"activeDeadlineSeconds":1,"containers":[]}"#;
    for (quotas, spec, expected) in [
        (&quotas[..], CPU, "a: pods=1,requests.cpu=2"),
        (
            &quotas,
            r#"{"containers":[{"name":"c"}]}"#,
            "forbidden: failed quota: a: must specify requests.cpu for: c",
        ),
        (&quotas, terminating, "a: pods=1; c: pods=1"),
        (
            &unknown,
            CPU,
            "forbidden: status unknown for quota: a, resources: cpu,pods",
        ),
        (&[], CPU, ""),
    ] {
        assert_eq!(checked(quotas, &[], (&pod(spec), None), "pods"), expected, "{spec}");
    }
    assert_eq!(
        checked(&quotas, &[], (&ConfigMap::default(), None), "configmaps"),
        "b: configmaps=1"
    );
}

#[test]
fn an_update_takes_what_it_adds() {
    let quotas = [quota("a", "{}", r#"{"requests.cpu":"3"}"#, r#"{"requests.cpu":"1"}"#)];
    let half = CPU.replace(r#""cpu":"2""#, r#""cpu":"1500m""#);
    let (more, less) = (pod(CPU), pod(&half));
    assert_eq!(
        checked(&quotas, &[], (&more, Some(&less)), "pods"),
        "a: requests.cpu=500m"
    );
    assert_eq!(checked(&quotas, &[], (&less, Some(&more)), "pods"), "");
    let scoped = [quota(
        "a",
        r#"{"scopes":["Terminating"]}"#,
        r#"{"pods":"3"}"#,
        r#"{"pods":"1"}"#,
    )];
    let mut ends = pod(CPU);
    ends.spec.active_deadline_seconds = Some(1);
    assert_eq!(
        checked(&scoped, &[], (&ends, Some(&more)), "pods"),
        "a: pods=1",
        "it was not counted before"
    );
    assert_eq!(checked(&scoped, &[], (&more, Some(&ends)), "pods"), "");
}

#[test]
fn what_is_limited_needs_a_quota() {
    let scoped = |operator: &str| LimitedResource {
        group: String::new(),
        resource: "pods".to_owned(),
        match_contains: Vec::new(),
        match_scopes: vec![Selector {
            scope_name: "PriorityClass".to_owned(),
            operator: operator.to_owned(),
            values: vec!["high".to_owned()],
        }],
    };
    let contains = LimitedResource {
        match_contains: vec!["cpu".to_owned()],
        match_scopes: Vec::new(),
        ..scoped("In")
    };
    let covering = [quota(
        "a",
        "{}",
        r#"{"requests.cpu":"3","limits.cpu":"3","cpu":"3"}"#,
        r#"{"requests.cpu":"0","limits.cpu":"0","cpu":"0"}"#,
    )];
    let none = "forbidden: insufficient quota to consume: cpu,limits.cpu,requests.cpu";
    assert_eq!(
        checked(&[], std::slice::from_ref(&contains), (&pod(CPU), None), "pods"),
        none
    );
    assert_eq!(
        checked(&covering, &[contains], (&pod(CPU), None), "pods"),
        "a: cpu=2,limits.cpu=2,requests.cpu=2"
    );
    let mut high = pod(CPU);
    high.spec.priority_class_name = "high".to_owned();
    assert_eq!(
        checked(&[], &[scoped("In")], (&high, None), "pods"),
        "other: insufficient quota to match these scopes: [{PriorityClass In [high]}]"
    );
    assert_eq!(checked(&[], &[scoped("In")], (&pod(CPU), None), "pods"), "");
    assert_eq!(
        checked(&[], &[scoped("Is")], (&high, None), "pods"),
        "",
        "no such operator"
    );
}

#[test]
fn no_more_is_taken_than_there_is() {
    let amounts = |number: i64| Amounts::from([("pods".to_owned(), Quantity::from_int(number))]);
    let one = quota("a", "{}", r#"{"pods":"2","cpu":"1"}"#, r#"{"pods":"1","cpu":"5"}"#);
    assert_eq!(
        take(&one, &amounts(1), true).map(|used| text(&used)),
        Ok("cpu=5,pods=2".to_owned())
    );
    let exceeded = "exceeded quota: a, requested: pods=2, used: pods=1, limited: pods=2";
    assert_eq!(take(&one, &amounts(2), true).unwrap_err().to_string(), exceeded);
    assert!(take(&one, &amounts(2), false).is_ok());
}
