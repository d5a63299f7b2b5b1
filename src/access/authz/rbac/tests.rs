use super::*;
use crate::authz::Decision;
use crate::request_info::Query;

fn list(text: &str) -> Vec<String> {
    text.split(',')
        .filter(|item| !item.is_empty())
        .map(|item| item.trim().to_owned())
        .collect()
}

/// `verbs|groups|resources|names`, where `-` is the legacy group.
fn rule(text: &str) -> Rule {
    let parts: Vec<&str> = text.split('|').collect();
    if let [verbs, paths] = parts.as_slice() {
        return Rule {
            verbs: list(verbs),
            paths: list(paths),
            ..Rule::default()
        };
    }
    let groups = list(parts[1])
        .into_iter()
        .map(|g| if g == "-" { String::new() } else { g });
    Rule {
        verbs: list(parts[0]),
        groups: groups.collect(),
        resources: list(parts[2]),
        names: list(parts.get(3).unwrap_or(&"")),
        paths: Vec::new(),
    }
}

fn subject(kind: SubjectKind, namespace: &str, name: &str) -> Subject {
    Subject {
        kind,
        name: name.into(),
        namespace: namespace.into(),
    }
}

fn binding(kind: &str, role: &str, subjects: Vec<Subject>) -> Binding {
    let (kind, name) = (kind.to_owned(), role.to_owned());
    Binding {
        role: RoleRef { kind, name },
        subjects,
    }
}

fn user(name: &str, groups: &str) -> User {
    User {
        name: name.into(),
        groups: list(groups),
        ..User::default()
    }
}

fn info(method: &str, url: &str) -> RequestInfo {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    RequestInfo::parse(method, path, &Query::parse(query)).unwrap()
}

fn policy() -> Policy {
    use SubjectKind::{Group, ServiceAccount, User};
    let mut policy = Policy::default();
    policy.put_role("", "reader", vec![rule("get,list|-|pods,pods/log")]);
    policy.put_role("", "named", vec![rule("*|apps|*/scale"), rule("get|-|secrets|a,b")]);
    policy.put_role("", "paths", vec![rule("get|/healthz,/x*")]);
    policy.put_role("n", "writer", vec![rule("*|*|*")]);
    policy.put_binding(
        "",
        "everywhere",
        binding("ClusterRole", "reader", vec![subject(User, "", "r")]),
    );
    let both = vec![subject(Group, "", "g"), subject(User, "", "u")];
    policy.put_binding("", "paths", binding("ClusterRole", "paths", both));
    policy.put_binding(
        "n",
        "w",
        binding("Role", "writer", vec![subject(ServiceAccount, "", "sa")]),
    );
    policy.put_binding("n", "r", binding("ClusterRole", "reader", vec![subject(User, "", "u")]));
    policy.put_binding(
        "m",
        "n",
        binding("ClusterRole", "named", vec![subject(ServiceAccount, "n", "sa")]),
    );
    policy.put_binding("m", "gone", binding("Role", "absent", vec![subject(User, "", "u")]));
    policy.put_binding(
        "m",
        "gone2",
        binding("ClusterRole", "absent", vec![subject(User, "", "u")]),
    );
    policy.put_binding("m", "odd", binding("Weird", "x", vec![subject(User, "", "u")]));
    policy
}

#[test]
fn roles_give_what_their_rules_say() {
    let policy = policy();
    let account = "system:serviceaccount:n:sa";
    let cases = [
        ("r", "GET", "/api/v1/pods", true),
        ("r", "GET", "/api/v1/namespaces/q/pods/p", true),
        ("r", "GET", "/api/v1/namespaces/q/pods/p/log", true),
        ("r", "GET", "/api/v1/namespaces/q/pods/p/status", false),
        ("r", "DELETE", "/api/v1/namespaces/q/pods/p", false),
        ("r", "GET", "/apis/apps/v1/pods", false),
        ("r", "GET", "/api/v1/pods?watch=1", false),
        ("u", "GET", "/api/v1/pods", false),
        ("u", "GET", "/api/v1/namespaces/n/pods", true),
        ("u", "GET", "/api/v1/namespaces/m/pods", false),
        ("u", "GET", "/healthz", true),
        ("u", "GET", "/healthz/ping", false),
        ("u", "GET", "/xyz", true),
        ("u", "POST", "/xyz", false),
        (account, "PUT", "/apis/a/v1/namespaces/n/bs/c", true),
        (account, "PUT", "/apis/a/v1/namespaces/n/bs/c/status", true),
        (account, "PUT", "/apis/apps/v1/namespaces/m/deployments/c/scale", true),
        (account, "PUT", "/apis/apps/v1/namespaces/m/deployments/c", false),
        (account, "GET", "/api/v1/namespaces/m/secrets/a", true),
        (account, "GET", "/api/v1/namespaces/m/secrets/c", false),
        (account, "GET", "/api/v1/namespaces/m/secrets", false),
        (
            account,
            "GET",
            "/api/v1/namespaces/m/secrets?fieldSelector=metadata.name%3Da",
            false,
        ),
        (account, "GET", "/healthz", false),
        ("sa", "PUT", "/apis/a/v1/namespaces/n/bs/c", false),
    ];
    for (name, method, url, want) in cases {
        let got = policy.decide(&user(name, ""), &info(method, url));
        assert_eq!(
            matches!(got, Decision::Allow(_)),
            want,
            "{name} {method} {url}: {got:?}"
        );
    }
}

#[test]
fn reasons_name_the_binding() {
    let policy = policy();
    let cases = [
        (
            user("r", ""),
            "/api/v1/pods",
            r#"ClusterRoleBinding "everywhere" of ClusterRole "reader" to User "r""#,
        ),
        (
            user("u", "g"),
            "/healthz",
            r#"ClusterRoleBinding "paths" of ClusterRole "paths" to Group "g""#,
        ),
        (
            user("u", ""),
            "/api/v1/namespaces/n/pods",
            r#"RoleBinding "r/n" of ClusterRole "reader" to User "u""#,
        ),
        (
            user("system:serviceaccount:n:sa", ""),
            "/api/v1/namespaces/n/pods",
            r#"RoleBinding "w/n" of Role "writer" to ServiceAccount "sa/n""#,
        ),
    ];
    for (user, url, want) in cases {
        let got = policy.decide(&user, &info("GET", url));
        assert_eq!(got, Decision::Allow(format!("RBAC: allowed by {want}")));
    }
    let refused = policy.decide(&user("u", ""), &info("GET", "/api/v1/namespaces/m/pods"));
    let errors = "RBAC: [role.rbac.authorization.k8s.io \"absent\" not found, \
                  clusterrole.rbac.authorization.k8s.io \"absent\" not found, unsupported role reference kind: \"Weird\"]";
    assert_eq!(refused, Decision::NoOpinion(errors.into()));
}

#[test]
fn what_is_taken_back_no_longer_counts() {
    let mut policy = policy();
    let allowed = |policy: &Policy| {
        matches!(
            policy.decide(&user("u", ""), &info("GET", "/api/v1/namespaces/n/pods")),
            Decision::Allow(_)
        )
    };
    let role = || vec![rule("get,list|-|pods")];
    assert!(allowed(&policy));
    policy.remove_role("", "reader");
    assert!(!allowed(&policy));
    policy.put_role("", "reader", role());
    assert!(allowed(&policy));
    policy.put_binding(
        "n",
        "r",
        binding("ClusterRole", "reader", vec![subject(SubjectKind::User, "", "v")]),
    );
    assert!(!allowed(&policy), "a binding's old subjects are forgotten");
    policy.put_binding(
        "n",
        "r",
        binding("ClusterRole", "reader", vec![subject(SubjectKind::User, "", "u")]),
    );
    policy.clear_bindings(false);
    assert!(allowed(&policy));
    policy.clear_bindings(true);
    assert!(!allowed(&policy));
}

fn described(held: &[&str], wanted: &[&str]) -> Vec<String> {
    let held: Vec<Rule> = held.iter().map(|text| rule(text)).collect();
    let wanted: Vec<Rule> = wanted.iter().map(|text| rule(text)).collect();
    escalation::describe(escalation::missing(&held.iter().collect::<Vec<_>>(), &wanted))
}

#[test]
fn rules_cover_rules() {
    let covered = [
        ("get,list|-|pods", "get|-|pods"),
        ("*|*|*", "a,b|c,d|e,f|g"),
        ("get|-|pods", "get|-|pods|a,b"),
        ("get|-|pods|a,b", "get|-|pods|b"),
        ("get|-|*/scale", "get|-|pods/scale"),
        ("get|-|*", "get|-|pods/log"),
        ("get|/a*", "get|/a,/a/b*"),
        ("*|*", "get|/a"),
    ];
    for (held, wanted) in covered {
        assert!(described(&[held], &[wanted]).is_empty(), "{held} covers {wanted}");
    }
    let uncovered = [
        ("get|-|pods", "get|-|pods/log"),
        ("get|-|pods|a", "get|-|pods"),
        ("get|-|pods", "*|-|pods"),
        ("get|/a", "get|/a*"),
        ("get|-|*", "get|/a"),
        ("get|*", "get|-|pods"),
    ];
    for (held, wanted) in uncovered {
        assert!(
            !described(&[held], &[wanted]).is_empty(),
            "{held} does not cover {wanted}"
        );
    }
    assert!(
        described(&["get|-|pods", "list|-|pods"], &["get,list|-|pods"]).is_empty(),
        "together"
    );
}

/// A request of some kilobytes names more parts than there is memory for.
#[test]
fn rules_of_very_many_parts_are_not_taken_apart() {
    let list = |prefix: &str, count: usize| (0..count).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>();
    let wanted = |verbs: usize, others: usize| Rule {
        verbs: list("v", verbs),
        groups: list("g", others),
        resources: list("r", others),
        ..Rule::default()
    };
    let missing = |held: &[&Rule], wanted: Rule| escalation::missing(held, &[wanted]).len();
    let named = Rule {
        names: list("n", 1_000),
        ..wanted(1_000, 1_000)
    };
    let (other, all) = (rule("get|-|pods"), rule("*|*|*"));
    assert!((1..1 << 15).contains(&missing(&[&other], named.clone())));
    assert_eq!(missing(&[&other, &all], named), 0);
    let long = Rule {
        verbs: vec!["v".repeat(1 << 20)],
        ..wanted(0, 1_000)
    };
    assert!((1..10).contains(&missing(&[&other], long)), "as much as is told");
    // Held in parts: as far as they can be looked at.
    let half = |verbs: &[String]| Rule {
        verbs: verbs.to_vec(),
        paths: vec!["*".to_owned()],
        ..all.clone()
    };
    let verbs = list("v", 1_000);
    let (one, two) = (half(&verbs[..500]), half(&verbs[500..]));
    assert_eq!(missing(&[&one, &two], wanted(1_000, 10)), 0);
    assert_ne!(missing(&[&one, &two], wanted(1_000, 1_000)), 0);
    assert_ne!(missing(&[&one], wanted(1_000, 10)), 0);
    let paths = |count: usize| Rule {
        verbs: verbs.clone(),
        paths: list("/p", count),
        ..Rule::default()
    };
    assert_eq!(missing(&[&one, &two], paths(20)), 0);
    assert_ne!(missing(&[&one, &two], paths(2_000)), 0);
    // Very many rules that are held, each of texts of its own: what is known of them grows with their number alone.
    let own = |n: usize| Rule {
        names: vec![format!("n{n}")],
        ..rule("get|-|pods")
    };
    let many: Vec<Rule> = (0..20_000).map(own).collect();
    let held: Vec<&Rule> = many.iter().collect();
    assert_eq!(
        missing(
            &held,
            Rule {
                names: list("n", 500),
                ..rule("get|-|pods")
            }
        ),
        0
    );
    assert_ne!(
        missing(
            &held,
            Rule {
                names: list("n", 20_000),
                ..rule("get|-|pods")
            }
        ),
        0,
        "no room for all sets"
    );
    let nothing = Rule {
        verbs: Vec::new(),
        ..wanted(0, 100_000)
    };
    assert_eq!(missing(&[&other], nothing), 0);
}

/// Recorded from kube-apiserver v1.36.3.
#[test]
fn what_is_missing_is_described_compactly() {
    let got = described(
        &["get,list|-|pods"],
        &[
            "get,delete,list|-|pods,secrets",
            "*|apps|deployments/scale,*|b,a",
            "get|/x,/y*",
        ],
    );
    let want = [
        r#"{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}"#,
        r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete" "list"]}"#,
        r#"{APIGroups:["apps"], Resources:["*"], ResourceNames:["a"], Verbs:["*"]}"#,
        r#"{APIGroups:["apps"], Resources:["*"], ResourceNames:["b"], Verbs:["*"]}"#,
        r#"{APIGroups:["apps"], Resources:["deployments/scale"], ResourceNames:["a"], Verbs:["*"]}"#,
        r#"{APIGroups:["apps"], Resources:["deployments/scale"], ResourceNames:["b"], Verbs:["*"]}"#,
        r#"{NonResourceURLs:["/x"], Verbs:["get"]}"#,
        r#"{NonResourceURLs:["/y*"], Verbs:["get"]}"#,
    ];
    assert_eq!(got, want);
}
