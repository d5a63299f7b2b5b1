//! Selectors as long as a request may be: in queries, up to the longest target of a request that is read, and in
//! bodies.

use serde_json::{Value, json};

use super::{JSON, MAPS, MAX, Run};

/// The longest query; a target has 65 534 bytes at most.
const QUERY: usize = 60 << 10;
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Numbered units with commas between them, as many as `size` bytes hold.
fn listed(size: usize, unit: impl Fn(usize) -> String) -> String {
    let mut out = unit(0);
    for n in 1.. {
        let next = unit(n);
        if out.len() + 1 + next.len() > size {
            break;
        }
        out.push(',');
        out.push_str(&next);
    }
    out
}

/// Selectors of lists and of deletions. Each is looked at for two hundred objects.
#[test]
fn selectors_in_queries_are_cheap() {
    let mut run = Run::new();
    let body = r#"{"metadata":{"generateName":"m-","labels":{"k":"v"}}}"#;
    for _ in 0..200 {
        let made = run.server.send("POST", MAPS, JSON, body);
        assert_eq!(made.status, 201);
    }
    let terms = |unit: &'static str| listed(QUERY, move |n| unit.replace('#', &n.to_string()));
    for (name, query, status) in [
        ("other labels", format!("labelSelector={}", terms("a#")), 200),
        ("absent labels", format!("labelSelector={}", terms("!a#")), 200),
        ("one label", format!("labelSelector={}", terms("k")), 200),
        ("other values", format!("labelSelector={}", terms("k!=v#")), 200),
        ("values", format!("labelSelector=k+in+({},v)", terms("v#")), 200),
        ("excluded", format!("labelSelector=k+notin+({})", terms("v#")), 200),
        ("brackets", format!("labelSelector={}", "(".repeat(QUERY)), 400),
        ("negations", format!("labelSelector={}", "!".repeat(QUERY)), 400),
        ("names", format!("fieldSelector={}", terms("metadata.name!=n#")), 200),
        ("unknown", format!("fieldSelector={}", terms("spec.x#=v")), 400),
        (
            "escapes",
            // Each is escaped again in the audit.
            format!("fieldSelector=metadata.name={}", "\\\\".repeat(QUERY / 10)),
            200,
        ),
    ] {
        for (method, path) in [("GET", MAPS.to_owned()), ("DELETE", format!("{MAPS}?dryRun=All"))] {
            let joint = if path.contains('?') { '&' } else { '?' };
            let name = format!("{method} {name}");
            run.request(&name, (method, &format!("{path}{joint}{query}")), JSON, "");
            let (cost, _) = &run.costs[run.costs.len() - 1];
            assert_eq!(cost.status, status, "{name}");
        }
    }
    run.finish();
}

fn review(attributes: &Value) -> String {
    let mut spec = json!({"verb": "list", "resource": "pods"});
    for (key, value) in attributes.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({"spec": {"resourceAttributes": spec}}).to_string()
}

/// Selectors that a review asks about, and those that objects have.
#[test]
fn selectors_in_bodies_are_cheap() {
    let mut run = Run::new();
    let room = MAX - 1024;
    let texts = |unit: &'static str| listed(room, move |n| unit.replace('#', &n.to_string()));
    for (name, place, text) in [
        ("labels", "labelSelector", texts("a#")),
        ("one label", "labelSelector", texts("a")),
        (
            "label values",
            "labelSelector",
            format!("a in ({})", "b,".repeat(room / 3)),
        ),
        ("so many labels", "labelSelector", vec!["a"; 1 << 16].join(",")),
        ("so many fields", "fieldSelector", vec!["a=b"; 1 << 16].join(",")),
        ("label brackets", "labelSelector", "(".repeat(room)),
        ("fields", "fieldSelector", texts("spec.x!=n#")),
        ("one field", "fieldSelector", texts("a=b")),
        (
            "field escapes",
            "fieldSelector",
            format!("a={}", "\\\\\\\\".repeat(room / 8)),
        ),
    ] {
        let body = review(&json!({place: {"rawSelector": text}}));
        run.request(&format!("review of {name}"), ("POST", REVIEWS), JSON, body);
    }
    let keys = |each: usize| -> Vec<Value> {
        let one = |n: usize| json!({"key": format!("k{n}"), "operator": "In", "values": ["a"]});
        (0..room / each).map(one).collect()
    };
    let values: Vec<String> = (0..room / 16).map(|n| format!("v{n}")).collect();
    let one = json!([{"key": "k", "operator": "In", "values": values}]);
    for (name, requirements) in [("keys", json!(keys(64))), ("values", one)] {
        for place in ["labelSelector", "fieldSelector"] {
            let body = review(&json!({place: {"requirements": requirements}}));
            run.request(&format!("review of {name}, {place}"), ("POST", REVIEWS), JSON, body);
        }
        let selector = json!({"matchExpressions": requirements});
        for (path, spec) in [
            (
                "networking.k8s.io/v1/namespaces/default/networkpolicies",
                json!({"podSelector": selector}),
            ),
            (
                "policy/v1/namespaces/default/poddisruptionbudgets",
                json!({"selector": selector}),
            ),
            ("apps/v1/namespaces/default/deployments", deployment(&selector)),
        ] {
            let body = json!({"metadata": {"generateName": "x-"}, "spec": spec}).to_string();
            run.request(
                &format!("{name} of {path}"),
                ("POST", &format!("/apis/{path}")),
                JSON,
                body,
            );
        }
    }
    run.finish();
}

fn deployment(selector: &Value) -> Value {
    let containers = json!([{"name": "a", "image": "b"}]);
    json!({
        "selector": selector,
        "template": {"metadata": {"labels": {"k": "v1"}}, "spec": {"containers": containers}},
    })
}
