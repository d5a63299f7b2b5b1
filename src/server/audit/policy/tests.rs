//! Tests of policies: which rule fits which request, as kube-apiserver decides, and faults of policies.

use keelson_access::request_info::Query;
use serde_json::Value;

use super::super::level::Stage;
use super::*;

/// Rules, requests, and for each rule whether kube-apiserver recorded each request (of a member of `system:masters`) by
/// it.
const MATCHING: &str = include_str!("matching.json");

fn policy(rules: &str) -> Policy {
    let (policy, warnings) = Policy::read(document(rules).as_bytes()).unwrap();
    assert_eq!(warnings, [""; 0]);
    policy
}

fn document(rules: &str) -> String {
    format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}\n")
}

fn asks(method: &str, target: &str) -> RequestInfo {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    RequestInfo::parse(method, path, &Query::parse(query)).unwrap()
}

#[test]
fn rules_fit_what_they_fit_in_kube_apiserver() {
    let table: Value = serde_json::from_str(MATCHING).unwrap();
    let user = User {
        name: "ann".into(),
        groups: vec!["system:masters".into(), "system:authenticated".into()],
        ..User::default()
    };
    let requests = table["requests"].as_array().unwrap();
    let requests = requests
        .iter()
        .map(|r| asks(r[0].as_str().unwrap(), r[1].as_str().unwrap()));
    let requests: Vec<RequestInfo> = requests.collect();
    for row in table["rules"].as_array().unwrap() {
        let mut rule = row[0].clone();
        rule["level"] = "Metadata".into();
        let policy = policy(&format!("[{rule}]"));
        let fits = requests
            .iter()
            .map(|info| match policy.decide(Some(&user), info).level {
                Level::Metadata => '1',
                _ => '0',
            });
        assert_eq!(fits.collect::<String>(), row[1].as_str().unwrap(), "{rule}");
    }
}

#[test]
fn the_first_rule_decides() {
    let policy = policy(
        "[{level: None, users: [eve]}, {level: Request, userGroups: [devs]}, {level: RequestResponse, verbs: [get]}, \
         {level: Metadata, nonResourceURLs: [/version]}]",
    );
    let level = |name: &str, group: &str, method: &str, path: &str| {
        let user = User {
            name: name.into(),
            groups: vec![group.into()],
            ..User::default()
        };
        policy.decide(Some(&user), &asks(method, path)).level
    };
    for (name, group, method, path, want) in [
        ("eve", "devs", "GET", "/version", Level::None),
        ("bob", "devs", "POST", "/api/v1/nodes", Level::Request),
        ("bob", "", "GET", "/version", Level::RequestResponse),
        ("bob", "", "POST", "/version", Level::Metadata),
        ("bob", "", "POST", "/api/v1/nodes", Level::None),
    ] {
        assert_eq!(level(name, group, method, path), want, "{name} {group} {method} {path}");
    }
    let unknown = policy.decide(None, &asks("GET", "/version")).level;
    assert_eq!(unknown, Level::RequestResponse, "rules about users fit nobody unknown");
}

#[test]
fn omissions_of_policy_and_rule_add_up() {
    let text = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], omitManagedFields: true, \
                rules: [{level: Metadata, verbs: [get], omitStages: [Panic], omitManagedFields: false}, {level: Request}]}";
    let (policy, _) = Policy::read(text.as_bytes()).unwrap();
    let get = policy.decide(None, &asks("GET", "/version"));
    assert_eq!(
        get.omitted,
        [Stage::RequestReceived, Stage::Panic].into_iter().collect()
    );
    assert!(!get.omit_managed_fields);
    let post = policy.decide(None, &asks("POST", "/version"));
    assert_eq!(post.omitted, [Stage::RequestReceived].into_iter().collect());
    assert!(post.omit_managed_fields);
}

#[test]
fn policies_that_make_no_sense_are_refused() {
    for (text, why) in [
        (
            String::new(),
            "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy",
        ),
        (
            "rules: [{level: None}]".into(),
            "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy",
        ),
        (document("[]"), "loaded illegal policy with 0 rules"),
        (
            document("[{level: None}]").replace("k8s.io/v1", "k8s.io/v1beta1"),
            r#"failed decoding: no kind "Policy" is registered for version "audit.k8s.io/v1beta1" in scheme "pkg/runtime/scheme.go:111""#,
        ),
        (
            document("{level: None}"),
            "failed decoding: json: cannot unmarshal object into Go struct field Policy.rules of type []v1.PolicyRule",
        ),
        (
            document(
                "[{level: Foo}, {level: ''}, {level: None, resources: [{resources: [pods]}], nonResourceURLs: [/x]}]",
            ),
            r#"[rules[0].level: Unsupported value: "Foo": supported values: "None", "Metadata", "Request", "RequestResponse", rules[1].level: Required value, rules[2].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs]"#,
        ),
        (
            document("[{level: None, nonResourceURLs: [x, /a*b, '*', /a/*]}]"),
            r#"[rules[0].nonResourceURLs[0]: Invalid value: "x": non-resource URL rules must begin with a '/' character, rules[0].nonResourceURLs[1]: Invalid value: "/a*b": non-resource URL wildcards '*' must be the final character of the rule]"#,
        ),
        (
            document("[{level: None, resources: [{resourceNames: [a]}]}]"),
            r#"rules[0].resources.resourceNames: Invalid value: ["a"]: using resourceNames requires at least one resource"#,
        ),
        (
            document("[{level: None, omitStages: [Bar, RequestReceived]}]"),
            r#"rules[0].omitStages[0]: Invalid value: "Bar": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic"#,
        ),
    ] {
        assert_eq!(Policy::read(text.as_bytes()).unwrap_err().to_string(), why, "{text}");
    }
    let group = Policy::read(document("[{level: None, resources: [{group: a/b}]}]").as_bytes()).unwrap_err();
    let group = group.to_string();
    assert!(group.starts_with(r#"rules[0].resources.group: Invalid value: "a/b": a lowercase RFC 1123 subdomain"#));
}

#[test]
fn unknown_keys_are_told_and_passed_over() {
    let text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrulez: 1\nrules: [{level: None, foo: 1, level: Metadata}]\n";
    let (policy, warnings) = Policy::read(text.as_bytes()).unwrap();
    assert_eq!(policy.decide(None, &asks("GET", "/")).level, Level::Metadata);
    assert_eq!(
        warnings,
        [
            r#"line 4: key "level" already set in map"#,
            r#"unknown field "rules[0].foo""#,
            r#"unknown field "rulez""#
        ]
    );
}
