//! Decisions by roles: 10 000 bindings, beside a bare lookup in a hash table of as many.

#![allow(clippy::unwrap_used, reason = "what fails here stops the benchmark, as it should")]

use std::collections::HashMap;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use keelson_access::authz::rbac::{Binding, Policy, RoleRef, Rule, Subject, SubjectKind};
use keelson_access::request_info::{Query, RequestInfo};
use keelson_access::user::User;

const BINDINGS: usize = 10_000;
const NAMESPACES: usize = 100;

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn rule(verbs: &[&str], resources: &[&str]) -> Rule {
    Rule {
        verbs: texts(verbs),
        groups: texts(&["", "apps"]),
        resources: texts(resources),
        ..Rule::default()
    }
}

/// Everybody is authenticated; one in a hundred bindings is of the cluster; a user has bindings in many namespaces.
fn policy() -> Policy {
    let mut policy = Policy::default();
    for role in 0..100 {
        let other = format!("things{role}");
        let rules = vec![
            rule(&["get", "list", "watch"], &[&other, "services", "endpoints"]),
            rule(&["get", "list", "watch"], &["configmaps", "pods", "pods/log"]),
            rule(&["create", "update", "patch"], &["deployments", "*/scale"]),
        ];
        policy.put_role("", &format!("role{role}"), rules);
    }
    for number in 0..BINDINGS {
        let namespace = match number % 100 {
            0 => String::new(),
            _ => format!("namespace{}", number % NAMESPACES),
        };
        let subject = |kind, name: String| Subject {
            kind,
            name,
            namespace: String::new(),
        };
        let subjects = vec![
            subject(SubjectKind::User, format!("user{}", number / 10)),
            subject(SubjectKind::Group, format!("group{}", number % 500)),
        ];
        let (kind, name) = ("ClusterRole".to_owned(), format!("role{}", number % 100));
        let role = RoleRef { kind, name };
        policy.put_binding(&namespace, &format!("binding{number}"), Binding { role, subjects });
    }
    policy
}

fn user(name: &str) -> User {
    User {
        name: name.to_owned(),
        groups: texts(&["group3", "group57", "group401", "system:authenticated"]),
        ..User::default()
    }
}

fn decisions(criterion: &mut Criterion) {
    let policy = policy();
    let mut group = criterion.benchmark_group("rbac");
    for (name, who, path) in [
        (
            "allowed in a namespace",
            "user50",
            "/api/v1/namespaces/namespace1/configmaps/x",
        ),
        (
            "refused in a namespace",
            "user50",
            "/api/v1/namespaces/namespace1/secrets/x",
        ),
        (
            "refused, bound to nothing",
            "stranger",
            "/api/v1/namespaces/nowhere/secrets/x",
        ),
    ] {
        let info = RequestInfo::parse("GET", path, &Query::default()).unwrap();
        let user = user(who);
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(policy.decide(black_box(&user), &info)))
        });
    }
    let table: HashMap<String, usize> = (0..BINDINGS).map(|n| (format!("user{n}"), n)).collect();
    let name = "user5000".to_owned();
    group.bench_function("bare lookup", |bencher| {
        bencher.iter(|| black_box(table.get(black_box(&name))))
    });
    group.finish();
}

criterion_group!(benches, decisions);
criterion_main!(benches);
