//! Rules, scopes, selectors and match conditions of policies and webhooks, with requests of many kinds.

use serde_json::{Value, json};

use super::draft::{Draft, marker_policy, marker_webhook, policy_with, review, webhooks};
use super::random::Random;

/// Configurations of one case.
const CONFIGURED: usize = 8;
const CORE: &str = "/api/v1/namespaces/{ns}";
const OPERATIONS: [&str; 5] = ["CREATE", "UPDATE", "DELETE", "CONNECT", "*"];
const GROUPS: [&str; 6] = ["", "apps", "autoscaling", "*", "events.k8s.io", "policy"];
const VERSIONS: [&str; 5] = ["v1", "v2", "*", "v1beta1", "v1"];
const RESOURCES: [&str; 16] = [
    "configmaps",
    "pods",
    "*",
    "*/*",
    "pods/*",
    "*/status",
    "*/scale",
    "deployments",
    "deployments/scale",
    "pods/eviction",
    "horizontalpodautoscalers",
    "namespaces",
    "events",
    "serviceaccounts/token",
    "pods/binding",
    "clusterroles",
];
const REVIEWS: [&[&str]; 3] = [&["v1"], &["v1beta1", "v1"], &["x", "v1"]];
const NAMES: [&[&str]; 2] = [&["kept"], &["kept", "{ns}"]];
const CONDITIONS: [&str; 12] = [
    "true",
    "object != null",
    "request.operation == 'CREATE'",
    "request.resource.resource == 'pods'",
    "request.userInfo.username == 'admin'",
    "has(object.metadata.labels)",
    "object.metadata.labels['a'] == '1'",
    "oldObject != null && has(oldObject.data)",
    "request.dryRun",
    "request.subResource == ''",
    "authorizer.requestResource.check('get').allowed()",
    "namespaceObject.metadata.labels.team == 'x'",
];

/// A case of policies that warn.
pub fn policies(random: &mut Random, name: String) -> Value {
    let mut draft = drafted(name, "which requests policies mean");
    for number in 0..CONFIGURED {
        let mut spec = json!({
            "failurePolicy": random.pick(&["Fail", "Ignore"]),
            "validations": [{"expression": "false", "message": format!("m{number}")}],
            "matchConstraints": constraints(random, true),
        });
        if random.once_in(2) {
            spec["matchConditions"] = conditions(random);
        }
        let name = format!("{{uniq}}-{number}");
        let mut binding = json!({"policyName": name, "validationActions": ["Warn"]});
        if random.once_in(2) {
            let mut meant = constraints(random, true);
            if random.once_in(2) {
                meant.as_object_mut().unwrap().remove("resourceRules");
            }
            binding["matchResources"] = meant;
        }
        policy_with(&mut draft, "validating", &name, spec, binding);
    }
    marker_policy(&mut draft);
    requests(&mut draft, random);
    draft.value()
}

/// A case of webhooks that warn, and what they were asked.
pub fn hooks(random: &mut Random, name: String) -> Value {
    let mut draft = drafted(name, "which requests webhooks mean");
    let mut all = Vec::new();
    for number in 0..CONFIGURED {
        let path = format!("/w{number}");
        draft.stub(
            &path,
            review(json!({"allowed": true, "warnings": [format!("w{number}")]})),
        );
        let mut hook = constraints(random, false);
        hook["name"] = format!("w{number}.example.com").into();
        hook["clientConfig"] = json!({"url": format!("{{stub}}{path}"), "caBundle": "{stubCA}"});
        hook["sideEffects"] = random.pick(&["None", "NoneOnDryRun"]).into();
        hook["admissionReviewVersions"] = json!(random.pick(&REVIEWS));
        hook["failurePolicy"] = random.pick(&["Fail", "Ignore"]).into();
        hook["reinvocationPolicy"] = random.pick(&["Never", "IfNeeded"]).into();
        if random.once_in(2) {
            hook["matchConditions"] = conditions(random);
        }
        all.push(hook);
    }
    all.push(marker_webhook(&mut draft));
    webhooks(&mut draft, "mutating", "{uniq}", all);
    draft.wait(400);
    requests(&mut draft, random);
    for number in 0..CONFIGURED {
        // What the server itself writes is seen too, at any time.
        let own = json!({"request.userInfo.username": "^admin$"});
        draft.step(json!({"stubRequests": format!("/w{number}"), "match": own, "within": 1}));
    }
    draft.value()
}

/// Others would see what is meant of cluster-wide objects.
fn drafted(name: String, about: &str) -> Draft {
    let mut draft = Draft::new(name, about);
    draft.serial();
    draft.labels(json!({"team": "x", "tier": "1"}));
    draft
}

fn conditions(random: &mut Random) -> Value {
    let expressions = random.some(&CONDITIONS, 2);
    let named = expressions.into_iter().enumerate();
    named
        .map(|(number, expression)| json!({"name": format!("c{number}"), "expression": expression}))
        .collect()
}

/// What is meant: of policies (`named`) under their names, with objects of some names, and without others.
fn constraints(random: &mut Random, named: bool) -> Value {
    let mut constraints = json!({});
    let rules: Vec<Value> = (0..1 + random.below(2)).map(|_| rule(random, named)).collect();
    constraints[if named { "resourceRules" } else { "rules" }] = rules.into();
    if named && random.once_in(3) {
        constraints["excludeResourceRules"] = json!([rule(random, true)]);
    }
    if random.once_in(2) {
        constraints["matchPolicy"] = random.pick(&["Exact", "Equivalent"]).into();
    }
    if random.once_in(3) {
        constraints["namespaceSelector"] = selector(random, "team", "x");
    }
    if random.once_in(3) {
        constraints["objectSelector"] = selector(random, "a", "1");
    }
    constraints
}

fn selector(random: &mut Random, key: &str, value: &str) -> Value {
    match random.below(6) {
        0 => json!({}),
        1 => json!({"matchLabels": {key: value}}),
        2 => json!({"matchLabels": {key: "other"}}),
        3 => json!({"matchExpressions": [{"key": key, "operator": "NotIn", "values": ["2", "y"]}]}),
        4 => json!({"matchExpressions": [{"key": key, "operator": random.pick(&["Exists", "DoesNotExist"])}]}),
        _ => json!({"matchLabels": {key: value}, "matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}),
    }
}

/// Words of a rule: where all are meant, no other is named beside.
fn words(random: &mut Random, of: &[&'static str], most: usize) -> Vec<&'static str> {
    let mut some = random.some(of, most);
    some.dedup();
    match some.contains(&"*") {
        true => vec!["*"],
        false => some,
    }
}

fn rule(random: &mut Random, named: bool) -> Value {
    let resources = match random.some(&RESOURCES, 4) {
        all if all.contains(&"*/*") => vec!["*/*"],
        all if all.contains(&"*") => all.into_iter().filter(|one| one.contains('/') || *one == "*").collect(),
        all if all.contains(&"pods/*") => all.into_iter().filter(|one| !one.starts_with("pods/e")).collect(),
        all => all,
    };
    let mut rule = json!({
        "operations": words(random, &OPERATIONS, 3), "apiGroups": words(random, &GROUPS, 3),
        "apiVersions": words(random, &VERSIONS, 2), "resources": resources,
    });
    if random.once_in(3) {
        rule["scope"] = random.pick(&["*", "Namespaced", "Cluster"]).into();
    }
    if named && random.once_in(4) {
        rule["resourceNames"] = json!(random.pick(&NAMES));
    }
    rule
}

fn labelled(random: &mut Random, api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    match random.below(3) {
        0 => object["metadata"]["labels"] = json!({"a": "1"}),
        1 => object["metadata"]["labels"] = json!({"a": "2", "b": ""}),
        _ => {}
    }
    for (key, value) in rest.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    object
}

fn pod_spec() -> Value {
    json!({"containers": [{"name": "a", "image": "i"}]})
}

fn deployment(random: &mut Random, name: &str) -> Value {
    let template = json!({"metadata": {"labels": {"x": "y"}}, "spec": pod_spec()});
    let spec = json!({"selector": {"matchLabels": {"x": "y"}}, "template": template});
    labelled(random, "apps/v1", "Deployment", name, json!({"spec": spec}))
}

/// Requests of many kinds; those that are told of are compared as a whole by what they warn of.
fn requests(draft: &mut Draft, random: &mut Random) {
    let apps = "/apis/apps/v1/namespaces/{ns}/deployments";
    let only = ["metadata.name"];
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "kept"});
    let objects = [
        (
            format!("{CORE}/configmaps"),
            labelled(random, "v1", "ConfigMap", "kept", json!({"data": {"x": "1"}})),
        ),
        (
            format!("{CORE}/pods"),
            labelled(random, "v1", "Pod", "kept", json!({"spec": pod_spec()})),
        ),
        (apps.to_owned(), deployment(random, "kept")),
        (
            "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers".to_owned(),
            labelled(
                random,
                "autoscaling/v1",
                "HorizontalPodAutoscaler",
                "kept",
                json!({"spec": {"maxReplicas": 2, "scaleTargetRef": target}}),
            ),
        ),
        (
            "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers".to_owned(),
            labelled(
                random,
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                "second",
                json!({"spec": {"maxReplicas": 2, "scaleTargetRef": target}}),
            ),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles?dryRun=All".to_owned(),
            labelled(
                random,
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                "{uniq}",
                json!({}),
            ),
        ),
    ];
    for (path, object) in objects {
        draft.ask("POST", path, object, &only);
    }
    let label = json!({"metadata": {"labels": {"a": random.pick(&["1", "3"])}}});
    for path in [
        "configmaps/kept",
        "pods/kept",
        "pods/kept/status",
        "serviceaccounts/default",
    ] {
        draft.ask("PATCH", format!("{CORE}/{path}"), label.clone(), &only);
    }
    draft.ask("PATCH", CORE, json!({"metadata": {"labels": {"c": "d"}}}), &only);
    draft.ask(
        "PATCH",
        format!("{apps}/kept/scale"),
        json!({"spec": {"replicas": 2}}),
        &["spec"],
    );
    draft.ask("PATCH", format!("{apps}/kept"), label, &only);
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["a"]}});
    draft.ask(
        "POST",
        format!("{CORE}/serviceaccounts/default/token?dryRun=All"),
        token,
        &["kind"],
    );
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "kept"}});
    draft.ask(
        "POST",
        format!("{CORE}/pods/kept/eviction?dryRun=All"),
        eviction,
        &["kind"],
    );
    draft.ask(
        "DELETE",
        format!("{CORE}/pods/kept?gracePeriodSeconds=0"),
        Value::Null,
        &only,
    );
    draft.ask(
        "DELETE",
        format!("{CORE}/configmaps?labelSelector=a"),
        Value::Null,
        &["kind"],
    );
    draft.ask("DELETE", format!("{apps}/kept"), Value::Null, &["kind"]);
}
