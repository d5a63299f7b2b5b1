//! Who may do what: authorizers, asked one after the other until one decides.

use std::sync::Arc;

use crate::request_info::RequestInfo;
use crate::user::{GROUP_AUTHENTICATED, GROUP_MASTERS, User};

/// What an authorizer says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    Allow,
    /// Nobody else is asked.
    Deny(String),
    /// The next one decides; the text says why this one did not.
    NoOpinion(String),
}

/// One source of permissions.
pub trait Authorizer: Send + Sync {
    fn authorize(&self, user: &User, info: &RequestInfo) -> Decision;
}

/// The authorizers in their order. Whoever none of them allows may not.
#[derive(Clone, Default)]
pub struct Authorization {
    pub chain: Vec<Arc<dyn Authorizer>>,
}

impl Authorization {
    /// The error is the reason to show, which may be empty.
    pub fn authorize(&self, user: &User, info: &RequestInfo) -> Result<(), String> {
        let mut reasons = Vec::new();
        for authorizer in &self.chain {
            match authorizer.authorize(user, info) {
                Decision::Allow => return Ok(()),
                Decision::Deny(reason) => return Err(reason),
                Decision::NoOpinion(reason) if reason.is_empty() => {}
                Decision::NoOpinion(reason) => reasons.push(reason),
            }
        }
        Err(reasons.join("\n"))
    }
}

/// Everybody may do everything.
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize(&self, _user: &User, _info: &RequestInfo) -> Decision {
        Decision::Allow
    }
}

/// Nobody may do anything (but the groups that are asked about first).
pub struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn authorize(&self, _user: &User, _info: &RequestInfo) -> Decision {
        Decision::NoOpinion("Everything is forbidden.".into())
    }
}

/// Members of `system:masters` may do everything.
pub struct PrivilegedGroup;

impl Authorizer for PrivilegedGroup {
    fn authorize(&self, user: &User, _info: &RequestInfo) -> Decision {
        if user.in_group(GROUP_MASTERS) {
            Decision::Allow
        } else {
            Decision::NoOpinion(String::new())
        }
    }
}

/// What the default roles of Kubernetes give to everybody: health and version to all, discovery to the authenticated.
pub struct PublicPaths;

const PUBLIC: [&str; 6] = [
    "/healthz",
    "/livez",
    "/readyz",
    "/version",
    "/version/",
    "/.well-known/openid-configuration",
];
const DISCOVERY: [&str; 7] = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/openapi",
    "/openapi/*",
    "/openid/v1/jwks",
];

impl Authorizer for PublicPaths {
    fn authorize(&self, user: &User, info: &RequestInfo) -> Decision {
        let reads = matches!(info.verb.as_str(), "get" | "head");
        let public = PUBLIC.iter().take(5).any(|p| *p == info.path);
        let listed = user.in_group(GROUP_AUTHENTICATED)
            && (DISCOVERY.iter().any(|p| fits(p, &info.path)) || PUBLIC.contains(&info.path.as_str()));
        if !info.is_resource && reads && (public || listed) {
            return Decision::Allow;
        }
        Decision::NoOpinion(String::new())
    }
}

fn fits(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == pattern,
    }
}

/// The sentence of a refusal, as kube-apiserver writes it.
pub fn refusal(user: &User, info: &RequestInfo, reason: &str) -> String {
    let name = &user.name;
    let mut text = if info.is_resource {
        let resource = resource_path(info);
        let place = match info.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        format!(
            "User {name:?} cannot {} resource {resource:?} in API group {:?} {place}",
            info.verb, info.group
        )
    } else {
        format!("User {name:?} cannot {} path {:?}", info.verb, info.path)
    };
    if !reason.is_empty() {
        text.push_str(": ");
        text.push_str(reason);
    }
    text
}

/// `pods`, `pods/status`.
pub fn resource_path(info: &RequestInfo) -> String {
    if info.subresource.is_empty() {
        info.resource.clone()
    } else {
        format!("{}/{}", info.resource, info.subresource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_info::Query;

    fn allowed(user: &User, method: &str, path: &str) -> bool {
        let chain: Vec<Arc<dyn Authorizer>> = vec![Arc::new(PrivilegedGroup), Arc::new(PublicPaths)];
        let info = RequestInfo::parse(method, path, &Query::default()).unwrap();
        Authorization { chain }.authorize(user, &info).is_ok()
    }

    #[test]
    fn only_masters_pass_beyond_the_public_paths() {
        let master = User {
            name: "a".into(),
            groups: vec![GROUP_MASTERS.into()],
            ..User::default()
        };
        let user = User {
            name: "b".into(),
            groups: vec![GROUP_AUTHENTICATED.into()],
            ..User::default()
        };
        let nobody = User::anonymous();
        let cases = [
            ("GET", "/api/v1/pods", [true, false, false]),
            ("GET", "/healthz", [true, true, true]),
            ("GET", "/version/", [true, true, true]),
            ("POST", "/healthz", [true, false, false]),
            ("GET", "/readyz/etcd", [true, false, false]),
            ("GET", "/apis/apps/v1", [true, true, false]),
            ("GET", "/openapi/v2", [true, true, false]),
            ("GET", "/metrics", [true, false, false]),
        ];
        for (method, path, want) in cases {
            let got = [&master, &user, &nobody].map(|u| allowed(u, method, path));
            assert_eq!(got, want, "{method} {path}");
        }
    }
}
