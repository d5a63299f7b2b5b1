//! The matrix of second decisions: an identity with exactly one right tries every write to the same resource and its
//! subresources that might reach more than that.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use http::Method;
use keelson_machinery::scheme::{KindDesc, SubresourceDesc};
use serde_json::{Value, json};

use super::run;
use super::samples::{self, Sample};
use super::server::{Ask, Server};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// What is recorded: a line for each right, with what it comes to where that is no plain refusal.
const TABLE: &str = "oracle/decisions.txt";
/// Lines of ours that differ, and why.
const PENDING: &str = "oracle/decisions-pending.txt";
const HEAD: &str = "\
# Who has one right, and the writes that are not refused to them at once. `made` needs another right as well: it was
# refused when the object was about to be made. Recorded: see tests/oracle/main.rs.
";

/// A verb on a resource or subresource.
#[derive(Clone)]
struct Right {
    kind: &'static KindDesc,
    /// Empty: the resource itself.
    subresource: &'static str,
    verb: &'static str,
}

impl Right {
    fn resource(&self) -> String {
        joined(&self.kind.plural, self.subresource)
    }

    /// `apps/deployments/scale patch`.
    fn name(&self) -> String {
        format!(
            "{} {}",
            joined(&samples::resource(self.kind), self.subresource),
            self.verb
        )
    }
}

fn joined(resource: &str, subresource: &str) -> String {
    match subresource {
        "" => resource.to_owned(),
        subresource => format!("{resource}/{subresource}"),
    }
}

/// The verbs that write, or reach what writes: who may `get` a stream may ask for one.
fn rights(kind: &'static KindDesc) -> Vec<Right> {
    const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
    let right = |subresource, verb| Right {
        kind,
        subresource,
        verb,
    };
    let own = kind.verbs.iter().filter(|verb| WRITES.contains(verb));
    let mut all: Vec<Right> = own.map(|verb| right("", verb)).collect();
    for sub in &kind.subresources {
        let verbs = sub.verbs.iter().filter(|verb| sub.connect || WRITES.contains(verb));
        all.extend(verbs.map(|verb| right(&sub.name, verb)));
    }
    all
}

/// Something that is tried.
struct Attempt {
    name: String,
    ask: Ask,
}

/// Every write to an object of the sample that is there, and to one that is not.
fn attempts(sample: &Sample, there: &Value, absent: &Value) -> Vec<Attempt> {
    let kind = sample.kind;
    let mut all = Vec::new();
    let has = |verb: &str| kind.verbs.contains(verb);
    if has("create") {
        all.push(attempt("POST", sample, "", absent, "POST"));
    }
    if has("deletecollection") {
        all.push(attempt("DELETE all", sample, "", absent, "DELETE"));
    }
    for (which, object) in [("", there), (" absent", absent)] {
        let named = |what: &str| format!("{what}{which}");
        if has("update") {
            all.push(attempt(&named("PUT"), sample, "one", object, "PUT"));
        }
        if has("patch") {
            all.push(attempt(&named("PATCH"), sample, "one", object, "PATCH"));
            all.push(attempt(&named("APPLY"), sample, "one", object, "APPLY"));
        }
        if has("delete") {
            all.push(attempt(&named("DELETE"), sample, "one", object, "DELETE"));
        }
        for sub in &kind.subresources {
            for (what, method) in ways(sub) {
                let name = named(&format!("{what} {}", sub.name));
                all.push(attempt(&name, sample, &sub.name, object, method));
            }
        }
    }
    all
}

/// The methods of a subresource that write or connect, and what they are called here.
fn ways(sub: &SubresourceDesc) -> Vec<(&'static str, &'static str)> {
    let of = |verb: &str| match verb {
        "create" => vec![("POST", "POST")],
        "update" => vec![("PUT", "PUT")],
        "patch" if sub.connect => vec![("PATCH", "PATCH")],
        "patch" => vec![("PATCH", "PATCH"), ("APPLY", "APPLY")],
        "delete" => vec![("DELETE", "DELETE")],
        "get" if sub.connect => vec![("GET", "GET"), ("UPGRADE", "UPGRADE")],
        _ => Vec::new(),
    };
    sub.verbs.iter().flat_map(of).collect()
}

/// `below`: empty for the collection, `one` for the object, else its subresource.
fn attempt(name: &str, sample: &Sample, below: &str, object: &Value, method: &str) -> Attempt {
    let own = object["metadata"]["name"].as_str().unwrap();
    let path = match below {
        "" => sample.collection(),
        "one" => format!("{}/{own}", sample.collection()),
        sub => format!("{}/{own}/{sub}", sample.collection()),
    };
    let http = match method {
        "APPLY" => "PATCH",
        "UPGRADE" => "GET",
        method => method,
    };
    let streams = matches!(method, "GET" | "UPGRADE");
    let query = if streams {
        "?command=a&container=c&ports=1"
    } else {
        "?dryRun=All&fieldManager=oracle&force=true"
    };
    // What clients say of patches and deletions alone is wrong elsewhere.
    let query = if method == "APPLY" {
        query
    } else {
        query.trim_end_matches("&force=true")
    };
    let mut ask = Ask::new(http, format!("{path}{query}"));
    ask.upgrade = method == "UPGRADE";
    match method {
        "PATCH" => {
            ask.content_type = "application/merge-patch+json";
            ask = ask.body(&json!({"metadata": {"labels": {"a": "b"}}}));
        }
        "APPLY" => {
            ask.content_type = "application/apply-patch+yaml";
            let mut document = object.clone();
            let meta = document["metadata"].as_object_mut().unwrap();
            for key in [
                "managedFields",
                "resourceVersion",
                "uid",
                "creationTimestamp",
                "generation",
            ] {
                meta.remove(key);
            }
            ask = ask.body(&document);
        }
        "POST" | "PUT" => ask = ask.body(object),
        _ => {}
    }
    Attempt {
        name: name.to_owned(),
        ask,
    }
}

/// What came of an attempt: `None` for the plain refusal.
fn outcome(status: u16, told: &Value) -> Option<&'static str> {
    if status != 403 {
        return Some("may");
    }
    let message = told["message"].as_str().unwrap_or_default();
    let verb = message
        .split_once(" cannot ")
        .map(|(_, rest)| rest.split(' ').next().unwrap_or_default());
    match verb {
        Some("create") => Some("made"),
        Some(_) => None,
        None => Some("other"),
    }
}

/// The line of a right: what it comes to in each attempt that was not refused for want of another right.
async fn line(server: &Server, user: &str, attempts: &[Attempt]) -> String {
    let mut line = String::new();
    for attempt in attempts {
        let mut ask = attempt.ask.clone();
        ask.user = Some(user.to_owned());
        let (status, told) = server.ask(&ask).await;
        let found = outcome(status, &told);
        // A POST is refused at once in the words in which others are when the object is about to be made.
        let plain = found == Some("made") && ask.method == Method::POST;
        if let Some(found) = found.filter(|_| !plain) {
            write!(line, "; {} {found}", attempt.name).unwrap();
        }
    }
    line.trim_start_matches("; ").to_owned()
}

/// Gives each of the users one right, and waits until the last has it.
async fn grant(server: &Server, rights: &[Right]) {
    for (place, right) in rights.iter().enumerate() {
        let name = user(server, place);
        let role = json!({"metadata": {"name": name}, "rules": [
            {"apiGroups": [right.kind.group.as_str()], "resources": [right.resource()], "verbs": [right.verb]}]});
        let binding = json!({"metadata": {"name": name}, "subjects": [{"kind": "User", "name": name}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}});
        server
            .must(Ask::new("POST", format!("{RBAC}/clusterroles")).body(&role))
            .await;
        server
            .must(Ask::new("POST", format!("{RBAC}/clusterrolebindings")).body(&binding))
            .await;
    }
    let Some(last) = rights.last() else { return };
    let (resource, subresource) = (last.kind.plural.as_str(), last.subresource);
    let review = json!({"spec": {"user": user(server, rights.len() - 1), "resourceAttributes":
        {"group": last.kind.group.as_str(), "resource": resource, "subresource": subresource, "verb": last.verb}}});
    let review = Ask::new("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews").body(&review);
    while server.must(review.clone()).await["status"]["allowed"] != true {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn revoke(server: &Server, rights: &[Right]) {
    for place in 0..rights.len() {
        for plural in ["clusterroles", "clusterrolebindings"] {
            server
                .must(Ask::new("DELETE", format!("{RBAC}/{plural}/{}", user(server, place))))
                .await;
        }
    }
}

fn user(server: &Server, place: usize) -> String {
    format!("right-{place}-{}", server.mark("x"))
}

/// What a server says of every right to a resource.
async fn asked(server: &Server, sample: &Sample) -> BTreeMap<String, String> {
    let rights = rights(sample.kind);
    grant(server, &rights).await;
    let [there, absent] = ["there", "absent"].map(|name| sample.object(&server.mark(name)));
    let there = server.must(Ask::new("POST", sample.collection()).body(&there)).await;
    let attempts = attempts(sample, &there, &absent);
    let mut lines = BTreeMap::new();
    for (place, right) in rights.iter().enumerate() {
        lines.insert(right.name(), line(server, &user(server, place), &attempts).await);
    }
    samples::remove(server, sample, &there).await;
    revoke(server, &rights).await;
    lines
}

/// Every resource that the server has.
async fn matrix(server: &Server) -> BTreeMap<String, String> {
    samples::prepare(server).await;
    let mut all = BTreeMap::new();
    for sample in samples::all() {
        let kind = sample.kind;
        if server.serves(&kind.group, &kind.version, &kind.plural).await {
            all.extend(asked(server, &sample).await);
        }
    }
    all
}

#[test]
fn one_right_reaches_what_it_reaches_in_kubernetes() {
    run(async {
        let server = Server::start().await;
        let found = matrix(&server).await;
        super::compare(&server, &found, (TABLE, PENDING, HEAD), 400);
        server.stop().await;
    });
}
