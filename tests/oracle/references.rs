//! Writes whose verb is allowed, but which name something that the sender has no right to: what the writer gives or
//! reads by way of an object needs a right of its own.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::run;
use super::samples::{self, NAMESPACE, Sample};
use super::server::{Ask, Server};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const TABLE: &str = "oracle/references.txt";
const PENDING: &str = "oracle/references-pending.txt";
const HEAD: &str = "\
# Writes that name something, by who may write the object and nothing else, and by who has the right to what is named too:
# status, and the field that is refused. Recorded: see tests/oracle/main.rs.
";

/// A write that names something.
struct Row {
    name: &'static str,
    /// `apps/deployments`; its sample is what is written.
    resource: &'static str,
    /// Status, or empty for the object itself.
    subresource: &'static str,
    /// What is merged into the sample.
    change: Value,
    /// Rules of the right to what is named.
    right: Value,
}

fn rule(group: &str, resource: &str, verb: &str) -> Value {
    json!([{"apiGroups": [group], "resources": [resource], "verbs": [verb]}])
}

fn row(name: &'static str, resource: &'static str, change: Value, right: Value) -> Row {
    Row {
        name,
        resource,
        subresource: "",
        change,
        right,
    }
}

const ADMISSION: [(&str, &str); 2] = [
    (
        "admissionregistration.k8s.io/validatingadmissionpolicies",
        "admissionregistration.k8s.io/validatingadmissionpolicybindings",
    ),
    (
        "admissionregistration.k8s.io/mutatingadmissionpolicies",
        "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
    ),
];

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (policies, bindings) in ADMISSION {
        let kind = json!({"spec": {"paramKind": {"apiVersion": "v1", "kind": "Secret"}}});
        rows.push(row("paramKind", policies, kind, rule("", "secrets", "get")));
        let reference = json!({"spec": {"paramRef": {"name": "victim", "namespace": NAMESPACE, "selector": null,
            "parameterNotFoundAction": "Deny"}}});
        rows.push(row("paramRef", bindings, reference, rule("*", "*", "get")));
    }
    let rules = json!({"rules": rule("", "secrets", "get"), "aggregationRule": null});
    let everything = json!({"rules": [], "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    let roles = "rbac.authorization.k8s.io/clusterroles";
    rows.push(row("rules", roles, rules.clone(), rule("", "secrets", "get")));
    rows.push(row(
        "rules escalated",
        roles,
        rules.clone(),
        rule("rbac.authorization.k8s.io", "clusterroles", "escalate"),
    ));
    rows.push(row("aggregationRule", roles, everything, rule("*", "*", "*")));
    rows.push(row(
        "rules",
        "rbac.authorization.k8s.io/roles",
        rules,
        rule("", "secrets", "get"),
    ));
    let reference =
        json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    for bindings in [
        "rbac.authorization.k8s.io/clusterrolebindings",
        "rbac.authorization.k8s.io/rolebindings",
    ] {
        let bind = rule("rbac.authorization.k8s.io", "clusterroles", "bind");
        rows.push(row("roleRef", bindings, reference.clone(), bind));
    }
    let claims = "resource.k8s.io/resourceclaims";
    let request = json!({"name": "r", "exactly": {"deviceClassName": "c", "adminAccess": true}});
    let asked = json!({"spec": {"devices": {"requests": [request], "constraints": null, "config": null}}});
    rows.push(row("adminAccess", claims, asked, rule("*", "*", "*")));
    let result = json!({"request": "a", "driver": "d.e", "pool": "p", "device": "x"});
    rows.push(Row {
        subresource: "status",
        ..row(
            "allocation",
            claims,
            json!({"status": {"allocation": {"devices": {"results": [result]}}}}),
            rule("resource.k8s.io", "resourceclaims/binding", "*"),
        )
    });
    rows
}

/// What a merge patch makes of a document.
fn merged(document: &mut Value, change: &Value) {
    let Value::Object(changes) = change else {
        *document = change.clone();
        return;
    };
    for (key, change) in changes {
        if change.is_null() {
            document.as_object_mut().map(|object| object.remove(key));
        } else {
            merged(&mut document[key.as_str()], change);
        }
    }
}

/// Gives a user the right to write the resource, and `more`.
async fn grant(server: &Server, user: &str, sample: &Sample, more: &[&Value]) {
    let plural = sample.kind.plural.as_str();
    let status = format!("{plural}/status");
    let mut rules = vec![
        json!({"apiGroups": [sample.kind.group.as_str()], "resources": [plural, status],
        "verbs": ["create", "update", "patch"]}),
    ];
    rules.extend(more.iter().flat_map(|rules| rules.as_array().unwrap().clone()));
    let role = json!({"metadata": {"name": user}, "rules": rules});
    let binding = json!({"metadata": {"name": user}, "subjects": [{"kind": "User", "name": user}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user}});
    server
        .must(Ask::new("POST", format!("{RBAC}/clusterroles")).body(&role))
        .await;
    server
        .must(Ask::new("POST", format!("{RBAC}/clusterrolebindings")).body(&binding))
        .await;
    let review = json!({"spec": {"user": user, "resourceAttributes":
        {"group": sample.kind.group.as_str(), "resource": plural, "verb": "update"}}});
    let review = Ask::new("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews").body(&review);
    while server.must(review.clone()).await["status"]["allowed"] != true {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// `201`, `422 spec.paramKind`, `403`.
async fn asked(server: &Server, user: &str, mut ask: Ask) -> String {
    ask.user = Some(user.to_owned());
    let (status, told) = server.ask(&ask).await;
    match told["details"]["causes"][0]["field"].as_str() {
        Some(field) => format!("{status} {field}"),
        None => status.to_string(),
    }
}

async fn outcomes(server: &Server, row: &Row, sample: &Sample, place: usize) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let there = server
        .must(Ask::new("POST", sample.collection()).body(&sample.object(&server.mark("there"))))
        .await;
    let path = format!(
        "{}/{}",
        sample.collection(),
        there["metadata"]["name"].as_str().unwrap()
    );
    for (who, more) in [("without", vec![]), ("with", vec![&row.right])] {
        let user = format!("{who}-{place}-{}", server.mark("x"));
        grant(server, &user, sample, &more).await;
        let mut absent = sample.object(&server.mark("absent"));
        merged(&mut absent, &row.change);
        let mut changed = there.clone();
        merged(&mut changed, &row.change);
        let target = match row.subresource {
            "" => path.clone(),
            sub => format!("{path}/{sub}"),
        };
        let create = Ask::new("POST", format!("{}?dryRun=All", sample.collection())).body(&absent);
        let update = Ask::new("PUT", format!("{target}?dryRun=All")).body(&changed);
        let mut patch = Ask::new("PATCH", format!("{target}?dryRun=All")).body(&row.change);
        patch.content_type = "application/merge-patch+json";
        let mut line = Vec::new();
        if row.subresource.is_empty() {
            line.push(format!("POST {}", asked(server, &user, create).await));
        }
        line.push(format!("PUT {}", asked(server, &user, update).await));
        line.push(format!("PATCH {}", asked(server, &user, patch).await));
        found.insert(format!("{} {} {who}", row.resource, row.name), line.join("; "));
    }
    samples::remove(server, sample, &there).await;
    found
}

#[test]
fn what_an_object_names_its_writer_has_a_right_to() {
    run(async {
        let server = Server::start().await;
        samples::prepare(&server).await;
        let all = samples::all();
        let mut found = BTreeMap::new();
        for (place, row) in rows().iter().enumerate() {
            let sample = all.iter().find(|sample| sample.resource() == row.resource).unwrap();
            found.extend(outcomes(&server, row, sample, place).await);
        }
        super::compare(&server, &found, (TABLE, PENDING, HEAD), 20);
        server.stop().await;
    });
}
