//! Statuses that kube-controller-manager v1.36.3 wrote to some dozens of policies: a line each in
//! `tests/data/type-checking/policies.jsonl`, the numbers in the names of types as `#`.

use keelson_machinery::json;
use keelson_machinery::reflect::Reflect;
use keelson_registry::RuntimeConfig;

use super::*;

const RECORDED: &str = include_str!("../../../../tests/data/type-checking/policies.jsonl");

fn checking() -> PolicyTypeChecking {
    let served = Served::new(&[&keelson_api::SCHEME], &RuntimeConfig::default());
    PolicyTypeChecking::new(served.fixed())
}

fn spec(text: &Value) -> ValidatingAdmissionPolicySpec {
    let mut spec = ValidatingAdmissionPolicySpec::default();
    let unknown = json::read(text.to_string().as_bytes(), &mut spec as &mut dyn Reflect).unwrap();
    assert_eq!(unknown.len(), 0, "{text}");
    spec
}

#[test]
fn warnings_are_those_of_kube_controller_manager() {
    let checking = checking();
    let (mut policies, mut differences) = (0, Vec::new());
    for line in RECORDED.lines() {
        let recorded: Value = serde_json::from_str(&line.replace('#', "7")).unwrap();
        let told = checking.warnings(&spec(&recorded["spec"]), 7).unwrap();
        let told = told
            .iter()
            .map(|one| json!({"fieldRef": one.field_ref, "warning": one.warning}));
        let told: Value = told.collect();
        if told != recorded["warnings"] {
            differences.push(format!("{told:#}\nrecorded: {:#}", recorded["warnings"]));
        }
        policies += 1;
    }
    assert!(policies > 50);
    assert!(
        differences.is_empty(),
        "{} of {policies}:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn rules_name_few_kinds() {
    let rule = |groups: &[&str], versions: &[&str], resources: &[&str]| {
        let spec = spec(&json!({"matchConstraints": {"resourceRules": [
            {"apiGroups": groups, "apiVersions": versions, "resources": resources, "operations": ["*"]},
            {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"], "operations": ["*"]},
        ]}}));
        let kinds = checking().kinds(&spec);
        kinds.into_iter().map(|gvk| gvk.kind.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        rule(&["apps"], &["v1", "v2"], &["Deployments", "pods"]),
        ["Deployment", "Job"]
    );
    assert_eq!(
        rule(&[""], &["v1"], &["deployments", "deployments/scale"]),
        ["Deployment", "Job"]
    );
    assert_eq!(rule(&["*"], &["v1"], &["deployments"]), ["Job"]);
    assert_eq!(rule(&["apps"], &["*"], &["deployments"]), ["Job"]);
    assert_eq!(rule(&["apps"], &["v1"], &["*", "*/*"]), ["Job"]);
    let many = [
        "configmaps",
        "endpoints",
        "events",
        "limitranges",
        "namespaces",
        "nodes",
        "persistentvolumes",
        "pods",
        "secrets",
        "services",
    ];
    // With the events of another group there are eleven; the rule behind is not looked at.
    assert_eq!(rule(&[""], &["v1"], &many).len(), MOST);
}

#[test]
fn a_policy_is_left_alone_for_a_while() {
    let checking = checking();
    let key = NamespacedName {
        name: "a".to_owned(),
        ..NamespacedName::default()
    };
    let mut policy = ValidatingAdmissionPolicy::default();
    for (version, settled) in [("1", false), ("2", false), ("2", true), ("2", false)] {
        policy.metadata.resource_version = version.to_owned();
        assert_eq!(checking.has_settled(&key, &policy), settled, "{version}");
    }
}
