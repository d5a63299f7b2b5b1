use std::sync::Arc;

use futures_util::FutureExt;

use super::*;
use crate::authz::{Answer, Authorizer, Decision, Rules, resource_path};

/// `verb resource name`, of a user; `*` for any name.
struct Grants(Vec<&'static str>);

impl Authorizer for Grants {
    fn authorize<'a>(&'a self, _: &'a User, info: &'a RequestInfo) -> Answer<'a> {
        let what = |name: &str| format!("{} {} {name}", info.verb, resource_path(info));
        let granted = |grant: &&str| **grant == what(&info.name) || **grant == what("*");
        if self.0.iter().any(granted) {
            Decision::Allow(String::new()).into()
        } else {
            Decision::NoOpinion(String::new()).into()
        }
    }

    fn rules(&self, _: &User, _: &str) -> Rules {
        Rules::default()
    }
}

fn authorization(grants: &[&'static str]) -> Authorization {
    Authorization::new(vec![Arc::new(Grants(grants.to_vec()))])
}

fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: name.to_owned(),
        groups: groups.iter().map(|g| (*g).to_owned()).collect(),
        ..User::default()
    }
}

fn list_pods() -> RequestInfo {
    RequestInfo {
        is_resource: true,
        verb: "list".to_owned(),
        version: "v1".to_owned(),
        resource: "pods".to_owned(),
        namespace: "default".to_owned(),
        ..RequestInfo::default()
    }
}

/// The groups of who came out, or the refusal.
fn try_as(impersonation: &Impersonation, grants: &[&'static str], wanted: User) -> Result<Vec<String>, String> {
    let (authorization, alice, info) = (authorization(grants), user("alice", &[]), list_pods());
    impersonation
        .act_as(&authorization, &alice, &info, wanted)
        .now_or_never()
        .unwrap()
        .map(|acting| acting.user.groups)
        .map_err(|error| error.message)
}

#[test]
fn a_refusal_names_the_first_permission_that_is_missing() {
    let on = "impersonate-on:user-info:list pods *";
    let be = "impersonate:user-info users bob";
    for (grants, wanted, message) in [
        (
            &[][..],
            user("bob", &[]),
            r#"pods is forbidden: User "alice" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            &[on],
            user("bob", &["g"]),
            r#"users.authentication.k8s.io "bob" is forbidden: User "alice" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope"#,
        ),
        (
            &[on, be],
            user("bob", &["g"]),
            r#"groups.authentication.k8s.io "g" is forbidden: User "alice" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope"#,
        ),
        (
            &[],
            user("system:serviceaccount:ns:sa", &[]),
            r#"pods is forbidden: User "alice" cannot impersonate-on:serviceaccount:list resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            &[],
            user("system:serviceaccount:ns:sa", &["g"]),
            r#"serviceaccounts "sa" is forbidden: User "alice" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ns""#,
        ),
        (
            &[],
            user("system:node:n", &["g"]),
            r#"users "system:node:n" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at the cluster scope"#,
        ),
    ] {
        assert_eq!(
            try_as(&Impersonation::default(), grants, wanted),
            Err(message.to_owned())
        );
    }
}

#[test]
fn extras_need_a_key_with_a_domain_in_the_constrained_mode() {
    let grants = [
        "impersonate-on:user-info:list pods *",
        "impersonate:user-info users bob",
    ];
    let mut bob = user("bob", &[]);
    bob.extra.insert("foo".to_owned(), vec!["u".to_owned()]);
    let message = concat!(
        r#"userextras.authentication.k8s.io is forbidden: User "alice" cannot impersonate:user-info resource "#,
        r#""userextras" in API group "authentication.k8s.io" at the cluster scope: impersonating an invalid key in "#,
        r#"extra is not allowed: extra.key: Invalid value: "foo": must be a domain-prefixed path (such as "acme.io/foo")"#
    );
    assert_eq!(try_as(&Impersonation::default(), &grants, bob), Err(message.to_owned()));
}

#[test]
fn only_the_older_permission_gives_the_group_that_may_do_everything() {
    let constrained = [
        "impersonate-on:user-info:list pods *",
        "impersonate:user-info users *",
        "impersonate:user-info groups *",
    ];
    let masters = || user("bob", &["system:masters"]);
    let message = concat!(
        r#"groups.authentication.k8s.io "system:masters" is forbidden: User "alice" cannot impersonate:user-info "#,
        r#"resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the "#,
        r#"system:masters group is not allowed"#
    );
    let impersonation = Impersonation::default();
    assert_eq!(try_as(&impersonation, &constrained, masters()), Err(message.to_owned()));
    let older = ["impersonate users bob", "impersonate groups system:masters"];
    assert!(try_as(&impersonation, &older, masters()).is_ok());
}

#[test]
fn an_identity_has_the_groups_of_its_name() {
    let all = [
        "impersonate-on:user-info:list pods *",
        "impersonate-on:serviceaccount:list pods *",
        "impersonate-on:arbitrary-node:list pods *",
        "impersonate:user-info users *",
        "impersonate:user-info groups *",
        "impersonate:serviceaccount serviceaccounts *",
        "impersonate:arbitrary-node nodes *",
    ];
    for (wanted, groups) in [
        (user("bob", &[]), &["system:authenticated"][..]),
        (
            user("bob", &["system:authenticated", "z"]),
            &["system:authenticated", "z"],
        ),
        (user("bob", &["system:unauthenticated"]), &["system:unauthenticated"]),
        (user("system:anonymous", &[]), &["system:unauthenticated"]),
        (
            user("system:serviceaccount:ns:sa", &[]),
            &[
                "system:serviceaccounts",
                "system:serviceaccounts:ns",
                "system:authenticated",
            ],
        ),
        (user("system:node:n", &[]), &["system:nodes", "system:authenticated"]),
        (user("system:serviceaccount:bad", &[]), &["system:authenticated"]),
    ] {
        let found = try_as(&Impersonation::default(), &all, wanted);
        assert_eq!(found, Ok(groups.iter().map(|g| (*g).to_owned()).collect()));
    }
}

#[test]
fn who_came_by_the_older_permission_is_asked_for_it_first() {
    let impersonation = Impersonation::default();
    let grants = ["impersonate users carol"];
    let constrained = try_as(&impersonation, &grants, user("dave", &[])).unwrap_err();
    assert!(constrained.contains("impersonate-on:user-info:list"), "{constrained}");
    assert!(try_as(&impersonation, &grants, user("carol", &[])).is_ok());
    let older = r#"users "dave" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at the cluster scope"#;
    assert_eq!(
        try_as(&impersonation, &grants, user("dave", &[])),
        Err(older.to_owned())
    );
    // A node that is impersonated by it has no group by its name.
    let nodes = [
        "impersonate users system:node:n",
        "impersonate-on:arbitrary-node:list pods *",
        "impersonate:arbitrary-node nodes *",
    ];
    let found = try_as(&impersonation, &nodes, user("system:node:n", &[]));
    assert_eq!(found, Ok(vec!["system:authenticated".to_owned()]));
}

#[test]
fn the_memory_is_bounded() {
    let impersonation = Impersonation::default();
    for n in 0..2 * REMEMBERED {
        impersonation.remember(&format!("user-{n}"), true);
    }
    assert!(!impersonation.remembers("user-0"));
    assert!(impersonation.remembers(&format!("user-{}", 2 * REMEMBERED - 1)));
    assert_eq!(impersonation.legacy.lock().unwrap().len(), REMEMBERED);
}

#[test]
fn what_is_no_group_no_extra_and_no_node_is_given_by_no_constrained_permission() {
    let on = "impersonate-on:user-info:list pods *";
    let grants = ["impersonate:user-info users *", "impersonate:user-info groups *", on];
    let extras = "impersonate:user-info userextras/a.b/c *";
    let extra = |key: &str, values: &[&str]| {
        let mut bob = user("bob", &[]);
        bob.extra
            .insert(key.to_owned(), values.iter().map(|v| (*v).to_owned()).collect());
        bob
    };
    for (wanted, why) in [
        (
            user("bob", &["g", ""]),
            "impersonating the empty string group is not allowed",
        ),
        (
            user("bob", &["g", "system:masters"]),
            "impersonating the system:masters group is not allowed",
        ),
        (
            extra("a.b/c", &["v", ""]),
            "impersonating the empty string value in extra is not allowed",
        ),
        (
            extra("", &["v"]),
            "impersonating the empty string key in extra is not allowed",
        ),
        (
            extra("a.b/C", &["v"]),
            r#"impersonating a non-lowercase key in extra is not allowed: "a.b/C""#,
        ),
        (
            extra("a.b/c d", &["v"]),
            r#"impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "c d": Invalid path"#,
        ),
    ] {
        let mut grants = grants.to_vec();
        grants.push(extras);
        let error = try_as(&Impersonation::default(), &grants, wanted).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    assert!(
        try_as(
            &Impersonation::default(),
            &[&grants[..], &[extras]].concat(),
            extra("a.b/c", &["v"])
        )
        .is_ok()
    );
    for name in [
        "system:node:*",
        "system:node:a:b",
        "system:node:A",
        "system:node:a/b",
        "system:node:",
    ] {
        let node = [
            "impersonate:arbitrary-node nodes *",
            "impersonate-on:arbitrary-node:list pods *",
        ];
        assert!(
            try_as(&Impersonation::default(), &node, user(name, &[])).is_err(),
            "{name}"
        );
        let groups = try_as(&Impersonation::default(), &grants, user(name, &[]));
        assert_eq!(groups, Ok(vec!["system:authenticated".to_owned()]), "{name}");
    }
}

#[test]
fn many_groups_may_be_had_at_once_or_one_by_one() {
    let on = [
        "impersonate-on:user-info:list pods *",
        "impersonate:user-info users bob",
    ];
    let each = ["a", "b", "c", "d"].map(|g| match g {
        "a" => "impersonate:user-info groups a",
        "b" => "impersonate:user-info groups b",
        "c" => "impersonate:user-info groups c",
        _ => "impersonate:user-info groups d",
    });
    let bob = || user("bob", &["a", "b", "c", "d"]);
    assert!(try_as(&Impersonation::default(), &[&on[..], &each].concat(), bob()).is_ok());
    assert!(
        try_as(
            &Impersonation::default(),
            &[&on[..], &["impersonate:user-info groups *"]].concat(),
            bob()
        )
        .is_ok()
    );
    let error = try_as(&Impersonation::default(), &[&on[..], &each[..3]].concat(), bob()).unwrap_err();
    assert!(
        error.starts_with(r#"groups.authentication.k8s.io "d" is forbidden"#),
        "{error}"
    );
}
