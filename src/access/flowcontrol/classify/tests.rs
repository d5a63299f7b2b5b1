//! Requests and the schemas that take them: the schemas of a fresh server and some of the test. The rows were compared
//! with a kube-apiserver where it has such senders.

use super::*;
use crate::request_info::Query;

const ROWS: &str = include_str!("tests.tsv");

fn list(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn subjects(text: &str) -> Vec<Subject> {
    let subject = |word: &str| {
        let (kind, name) = word.split_once('=').unwrap();
        match kind {
            "user" => Subject::User(name.to_owned()),
            "group" => Subject::Group(name.to_owned()),
            _ => {
                let (namespace, name) = name.split_once('/').unwrap();
                Subject::ServiceAccount {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                }
            }
        }
    };
    text.split_whitespace().map(subject).collect()
}

/// `cluster_scope` is said by a namespace `-`.
fn resources(verbs: &str, groups: &str, resources: &str, namespaces: &str) -> ResourceRule {
    let mut namespaces = list(namespaces);
    let cluster_scope = namespaces.iter().any(|namespace| namespace == "-");
    namespaces.retain(|namespace| namespace != "-");
    ResourceRule {
        verbs: list(verbs),
        groups: groups.split(' ').map(|group| group.replace("core", "")).collect(),
        resources: list(resources),
        cluster_scope,
        namespaces,
    }
}

fn schema(name: &str, precedence: i32, who: &str, resources: Vec<ResourceRule>, paths: &[(&str, &str)]) -> Schema {
    Schema {
        name: name.to_owned(),
        precedence,
        rules: vec![Rule {
            subjects: subjects(who),
            resources,
            paths: paths
                .iter()
                .map(|(verbs, paths)| PathRule {
                    verbs: list(verbs),
                    paths: list(paths),
                })
                .collect(),
        }],
        ..Schema::default()
    }
}

fn schemas() -> Vec<Schema> {
    let all = || vec![resources("*", "*", "*", "* -")];
    let leases = |verbs| resources(verbs, "coordination.k8s.io", "leases", "*");
    let everybody = "group=system:unauthenticated group=system:authenticated";
    let any = [("*", "*")];
    let mut schemas = vec![
        schema("global-default", 9900, everybody, all(), &any),
        schema("kube-scheduler", 800, "user=system:kube-scheduler", all(), &any),
        schema(
            "kube-system-service-accounts",
            900,
            "account=kube-system/*",
            all(),
            &any,
        ),
        schema("probes", 2, everybody, vec![], &[("get", "/healthz /readyz /livez")]),
        schema("service-accounts", 9000, "group=system:serviceaccounts", all(), &any),
        schema(
            "system-leader-election",
            100,
            "user=system:kube-scheduler account=kube-system/*",
            vec![leases("get create update")],
            &[],
        ),
        schema(
            "system-node-high",
            400,
            "group=system:nodes",
            vec![resources("*", "core", "nodes nodes/status", "* -"), leases("*")],
            &[],
        ),
        schema("system-nodes", 500, "group=system:nodes", all(), &any),
        schema(
            "test-status",
            1000,
            "user=carol",
            vec![resources("get", "core", "pods/status secrets", "a")],
            &[],
        ),
        schema("test-paths", 1000, "user=carol", vec![], &[("get", "/openapi/*")]),
        schema(
            "test-any-user",
            9950,
            "user=*",
            vec![resources("list", "core", "nodes", "-")],
            &[],
        ),
    ];
    schemas.extend(Schema::mandatory());
    sort(&mut schemas, |schema| schema);
    schemas
}

#[test]
fn the_first_schema_that_fits_takes_a_request() {
    let schemas = schemas();
    let rows = ROWS.lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for row in rows {
        let [asked, name, groups, expected] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let (method, path) = asked.split_once(' ').unwrap();
        let info = RequestInfo::parse(method, path, &Query::default()).unwrap();
        let user = User {
            name: name.to_owned(),
            groups: groups.split(',').map(str::to_owned).collect(),
            ..User::default()
        };
        let found = schemas.iter().find(|schema| schema.takes(&user, &info));
        assert_eq!(found.map_or("catch-all", |schema| &schema.name), expected, "{row}");
        count += 1;
    }
    assert!(count > 30);
}

#[test]
fn equal_precedence_goes_by_name() {
    let schemas = schemas();
    let place = |name: &str| schemas.iter().position(|schema| schema.name == name).unwrap();
    assert!(place("test-paths") < place("test-status"));
    assert_eq!((place("exempt"), place("catch-all")), (0, schemas.len() - 1));
}

#[test]
fn flows_are_told_apart_by_user_or_namespace() {
    let info = RequestInfo::parse("GET", "/api/v1/namespaces/a/pods", &Query::default()).unwrap();
    let user = User {
        name: "alice".to_owned(),
        ..User::default()
    };
    for (distinguisher, flow) in [
        (Distinguisher::None, ""),
        (Distinguisher::User, "alice"),
        (Distinguisher::Namespace, "a"),
    ] {
        let schema = Schema {
            distinguisher,
            ..Schema::default()
        };
        assert_eq!(schema.flow(&user, &info), flow);
    }
}
