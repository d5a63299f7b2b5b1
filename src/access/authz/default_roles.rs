//! Default roles of everybody, for servers that have no roles as objects: health and version to all; discovery and
//! questions about oneself to the authenticated.

use super::{Answer, Authorizer, Decision, PathRule, ResourceRule, Rules};
use crate::request_info::RequestInfo;
use crate::user::{GROUP_AUTHENTICATED, GROUP_UNAUTHENTICATED, User};

/// A default role, which a binding of the same name gives to groups.
struct Role {
    name: &'static str,
    groups: &'static [&'static str],
    /// API group and resources that may be created.
    creates: &'static [(&'static str, &'static [&'static str])],
    /// Paths that may be read.
    paths: &'static [&'static str],
}

const ROLES: [Role; 4] = [
    Role {
        name: "system:basic-user",
        groups: &[GROUP_AUTHENTICATED],
        creates: &[
            (
                "authorization.k8s.io",
                &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            ),
            ("authentication.k8s.io", &["selfsubjectreviews"]),
        ],
        paths: &[],
    },
    Role {
        name: "system:public-info-viewer",
        groups: &[GROUP_AUTHENTICATED, GROUP_UNAUTHENTICATED],
        creates: &[],
        paths: &["/healthz", "/livez", "/readyz", "/version", "/version/"],
    },
    Role {
        name: "system:discovery",
        groups: &[GROUP_AUTHENTICATED],
        creates: &[],
        paths: &[
            "/api",
            "/api/*",
            "/apis",
            "/apis/*",
            "/healthz",
            "/livez",
            "/openapi",
            "/openapi/*",
            "/readyz",
            "/version",
            "/version/",
        ],
    },
    Role {
        name: "system:service-account-issuer-discovery",
        groups: &["system:serviceaccounts"],
        creates: &[],
        paths: &[
            "/.well-known/openid-configuration",
            "/.well-known/openid-configuration/",
            "/openid/v1/jwks",
            "/openid/v1/jwks/",
        ],
    },
];

/// Gives the default roles to the groups that they are bound to.
pub struct DefaultRoles;

impl Authorizer for DefaultRoles {
    fn authorize<'a>(&'a self, user: &'a User, info: &'a RequestInfo) -> Answer<'a> {
        for role in &ROLES {
            let Some(group) = role.groups.iter().find(|g| user.in_group(g)) else {
                continue;
            };
            if role.allows(info) {
                let name = role.name;
                return Decision::Allow(format!(
                    "RBAC: allowed by ClusterRoleBinding {name:?} of ClusterRole {name:?} to Group {group:?}"
                ))
                .into();
            }
        }
        Decision::NoOpinion(String::new()).into()
    }

    fn rules(&self, user: &User, _namespace: &str) -> Rules {
        let mut rules = Rules::default();
        for role in ROLES.iter().filter(|r| r.groups.iter().any(|g| user.in_group(g))) {
            rules
                .resources
                .extend(role.creates.iter().map(|(group, resources)| ResourceRule {
                    verbs: vec!["create".to_owned()],
                    groups: vec![(*group).to_owned()],
                    resources: owned(resources),
                    names: Vec::new(),
                }));
            if !role.paths.is_empty() {
                rules.paths.push(PathRule {
                    verbs: vec!["get".to_owned()],
                    paths: owned(role.paths),
                });
            }
        }
        rules
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|t| (*t).to_owned()).collect()
}

impl Role {
    fn allows(&self, info: &RequestInfo) -> bool {
        if info.is_resource {
            let creates = |(group, resources): &(&str, &[&str])| {
                *group == info.group && info.subresource.is_empty() && resources.contains(&info.resource.as_str())
            };
            return info.verb == "create" && self.creates.iter().any(creates);
        }
        info.verb == "get" && self.paths.iter().any(|p| fits(p, &info.path))
    }
}

fn fits(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == pattern,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;

    use super::*;
    use crate::authz::{Authorization, PrivilegedGroup, Verdict};
    use crate::request_info::Query;
    use crate::user::GROUP_MASTERS;

    fn chain() -> Authorization {
        Authorization::new(vec![Arc::new(PrivilegedGroup), Arc::new(DefaultRoles)])
    }

    fn user(groups: &[&str]) -> User {
        User {
            name: "a".into(),
            groups: owned(groups),
            ..User::default()
        }
    }

    fn verdict(user: &User, info: &RequestInfo) -> Verdict {
        chain().decide(user, info).now_or_never().unwrap()
    }

    fn allowed(user: &User, method: &str, path: &str) -> bool {
        let info = RequestInfo::parse(method, path, &Query::default()).unwrap();
        verdict(user, &info).allowed
    }

    #[test]
    fn only_masters_pass_beyond_the_default_roles() {
        let (master, user, nobody) = (user(&[GROUP_MASTERS]), user(&[GROUP_AUTHENTICATED]), User::anonymous());
        let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let cases = [
            ("GET", "/api/v1/pods", [true, false, false]),
            ("GET", "/healthz", [true, true, true]),
            ("GET", "/version/", [true, true, true]),
            ("POST", "/healthz", [true, false, false]),
            ("GET", "/readyz/etcd", [true, false, false]),
            ("GET", "/apis/apps/v1", [true, true, false]),
            ("GET", "/openapi/v2", [true, true, false]),
            ("GET", "/metrics", [true, false, false]),
            ("POST", reviews, [true, true, false]),
            ("GET", reviews, [true, false, false]),
        ];
        for (method, path, want) in cases {
            let got = [&master, &user, &nobody].map(|u| allowed(u, method, path));
            assert_eq!(got, want, "{method} {path}");
        }
    }

    #[test]
    fn a_decision_names_its_binding() {
        let info = RequestInfo::parse("GET", "/healthz", &Query::default()).unwrap();
        let verdict = verdict(&User::anonymous(), &info);
        assert!(verdict.allowed);
        assert_eq!(
            verdict.reason,
            "RBAC: allowed by ClusterRoleBinding \"system:public-info-viewer\" of ClusterRole \
             \"system:public-info-viewer\" to Group \"system:unauthenticated\""
        );
    }

    #[test]
    fn rules_are_those_of_the_roles() {
        let rules = chain().rules(&user(&[GROUP_MASTERS, GROUP_AUTHENTICATED]), "default");
        assert_eq!(rules.resources[0].verbs, ["create"]);
        assert_eq!(rules.resources[1].resources, ["selfsubjectreviews"]);
        assert_eq!(rules.paths.len(), 2);
        assert!(chain().rules(&User::anonymous(), "").resources.is_empty());
    }
}
