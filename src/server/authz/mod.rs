//! Who may do what: authorizers, asked one after the other until one decides.

mod everybody;
mod rules;

use std::sync::Arc;

use crate::request_info::RequestInfo;
use crate::user::{GROUP_MASTERS, User};

pub use everybody::Everybody;
pub use rules::{PathRule, ResourceRule, Rules};

/// What an authorizer says. Each text is the reason, which may be empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    Allow(String),
    /// Nobody else is asked.
    Deny(String),
    /// The next one decides; the text says why this one did not.
    NoOpinion(String),
}

/// One source of permissions.
pub trait Authorizer: Send + Sync {
    fn authorize(&self, user: &User, info: &RequestInfo) -> Decision;

    /// What the user may do in a namespace, as far as this authorizer can list it. One that decides case by case says
    /// so in [`Rules::errors`].
    fn rules(&self, user: &User, namespace: &str) -> Rules;
}

/// What all authorizers come to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    pub allowed: bool,
    /// An authorizer refused, whatever the others say.
    pub denied: bool,
    pub reason: String,
}

/// The authorizers in their order. Whoever none of them allows may not.
#[derive(Clone, Default)]
pub struct Authorization {
    pub chain: Vec<Arc<dyn Authorizer>>,
}

impl Authorization {
    /// The error is the reason to show, which may be empty.
    pub fn authorize(&self, user: &User, info: &RequestInfo) -> Result<(), String> {
        let verdict = self.decide(user, info);
        if verdict.allowed { Ok(()) } else { Err(verdict.reason) }
    }

    /// Asks the authorizers until one decides.
    pub fn decide(&self, user: &User, info: &RequestInfo) -> Verdict {
        let mut reasons = Vec::new();
        for authorizer in &self.chain {
            let (allowed, denied, reason) = match authorizer.authorize(user, info) {
                Decision::Allow(reason) => (true, false, reason),
                Decision::Deny(reason) => (false, true, reason),
                Decision::NoOpinion(reason) => {
                    reasons.push(reason);
                    continue;
                }
            };
            return Verdict {
                allowed,
                denied,
                reason,
            };
        }
        reasons.retain(|reason| !reason.is_empty());
        Verdict {
            reason: reasons.join("\n"),
            ..Verdict::default()
        }
    }

    /// The rules of all authorizers.
    pub fn rules(&self, user: &User, namespace: &str) -> Rules {
        let mut all = Rules::default();
        for authorizer in &self.chain {
            all.append(authorizer.rules(user, namespace));
        }
        all
    }
}

/// Everybody may do everything.
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize(&self, _user: &User, _info: &RequestInfo) -> Decision {
        Decision::Allow(String::new())
    }

    fn rules(&self, _user: &User, _namespace: &str) -> Rules {
        Rules::everything()
    }
}

/// Nobody may do anything (but the groups that are asked about first).
pub struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn authorize(&self, _user: &User, _info: &RequestInfo) -> Decision {
        Decision::NoOpinion("Everything is forbidden.".into())
    }

    fn rules(&self, _user: &User, _namespace: &str) -> Rules {
        Rules::default()
    }
}

/// Members of `system:masters` may do everything.
pub struct PrivilegedGroup;

impl Authorizer for PrivilegedGroup {
    fn authorize(&self, user: &User, _info: &RequestInfo) -> Decision {
        if user.in_group(GROUP_MASTERS) {
            Decision::Allow(String::new())
        } else {
            Decision::NoOpinion(String::new())
        }
    }

    fn rules(&self, user: &User, _namespace: &str) -> Rules {
        if user.in_group(GROUP_MASTERS) {
            Rules::everything()
        } else {
            Rules::default()
        }
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
