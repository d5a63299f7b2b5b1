//! Role-based access control: roles, and who is bound to them.

mod escalation;
mod policy;
mod rule;
#[cfg(test)]
mod tests;

use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard};

use keelson_machinery::field::text::quote;
use keelson_machinery::object::Object;

use super::union::aggregate;
use super::{Answer, Authorizer, PathRule, ResourceRule, Rules};
use crate::lister::{Change, Feed, Listers};
use crate::request_info::RequestInfo;
use crate::user::User;

pub use policy::{Binding, Policy, RoleRef, Subject, SubjectKind, Unresolved};
pub use rule::Rule;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// Reads the typed objects, which this crate does not know. `None`: it is not the kind that was asked for.
pub trait ReadPolicy: Send + Sync {
    /// The rules of a Role or ClusterRole.
    fn rules(&self, role: &dyn Object) -> Option<Vec<Rule>>;
    /// A RoleBinding or ClusterRoleBinding.
    fn binding(&self, binding: &dyn Object) -> Option<Binding>;
}

/// What kube-apiserver says of who tries to grant more than they hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "user {} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}{}",
    quote(.user),
    quoted(.groups),
    .missing.join("\n"),
    resolution_errors(.unresolved)
)]
pub struct Escalation {
    user: String,
    groups: Vec<String>,
    /// The rules that are not held, one line each.
    missing: Vec<String>,
    /// Why some of what is held is not known.
    unresolved: Vec<String>,
}

fn quoted(groups: &[String]) -> String {
    let groups: Vec<String> = groups.iter().map(|group| quote(group)).collect();
    groups.join(" ")
}

fn resolution_errors(errors: &[String]) -> String {
    match errors.is_empty() {
        true => String::new(),
        false => format!("; resolution errors: [{}]", aggregate(errors)),
    }
}

/// Decides by the roles and bindings of the store, from indexes that are brought up to date before each decision.
pub struct Rbac {
    reader: Box<dyn ReadPolicy>,
    sources: OnceLock<Vec<Source>>,
    policy: RwLock<Policy>,
}

struct Source {
    feed: Box<dyn Feed>,
    is_binding: bool,
    is_namespaced: bool,
}

/// Plurals, and whether they are bindings, and whether they are in namespaces.
const SOURCES: [(&str, bool, bool); 4] = [
    ("clusterroles", false, false),
    ("clusterrolebindings", true, false),
    ("roles", false, true),
    ("rolebindings", true, true),
];

impl Rbac {
    /// Knows no roles until [`Authorizer::attach`].
    pub fn new(reader: impl ReadPolicy + 'static) -> Rbac {
        Rbac {
            reader: Box::new(reader),
            sources: OnceLock::new(),
            policy: RwLock::default(),
        }
    }

    /// The policy as the store holds it now.
    pub fn policy(&self) -> RwLockReadGuard<'_, Policy> {
        for source in self.sources.get().into_iter().flatten() {
            source.feed.catch_up(&mut |changes| {
                let mut policy = self.policy.write().unwrap_or_else(PoisonError::into_inner);
                for change in changes {
                    self.take(&mut policy, source, change);
                }
            });
        }
        self.policy.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, policy: &mut Policy, source: &Source, change: Change) {
        match (source.is_binding, change) {
            (true, Change::Reset) => policy.clear_bindings(source.is_namespaced),
            (false, Change::Reset) => policy.clear_roles(source.is_namespaced),
            (true, Change::Put(place, object)) => match self.reader.binding(&*object) {
                Some(binding) => policy.put_binding(&place.namespace, &place.name, binding),
                None => policy.remove_binding(&place.namespace, &place.name),
            },
            (false, Change::Put(place, object)) => {
                let rules = self.reader.rules(&*object).unwrap_or_default();
                policy.put_role(&place.namespace, &place.name, rules);
            }
            (true, Change::Gone(place)) => policy.remove_binding(&place.namespace, &place.name),
            (false, Change::Gone(place)) => policy.remove_role(&place.namespace, &place.name),
        }
    }

    /// Whether the user holds all of `wanted` already in this namespace ("": everywhere).
    ///
    /// # Errors
    /// What they lack; missing roles are named by `plural`, the resource of the request.
    pub fn confirm_held(&self, user: &User, namespace: &str, wanted: &[Rule], plural: &str) -> Result<(), Escalation> {
        let policy = self.policy();
        let (mut held, mut errors) = (Vec::new(), Vec::new());
        for grant in policy.bindings_of(user, namespace) {
            match grant.rules {
                Ok(rules) => held.extend(rules.iter()),
                Err(unresolved) => errors.push(unresolved.text(Some(plural))),
            }
        }
        let missing = escalation::missing(&held, wanted);
        if missing.is_empty() {
            return Ok(());
        }
        Err(Escalation {
            user: user.name.clone(),
            groups: user.groups.clone(),
            missing: escalation::describe(missing),
            unresolved: errors,
        })
    }
}

/// What of `wanted` no rule of `held` covers, in rules of one verb on one thing.
pub fn missing_rules(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    escalation::missing(&held.iter().collect::<Vec<_>>(), wanted)
}

impl Authorizer for Rbac {
    fn authorize<'a>(&'a self, user: &'a User, info: &'a RequestInfo) -> Answer<'a> {
        self.policy().decide(user, info).into()
    }

    fn rules(&self, user: &User, namespace: &str) -> Rules {
        let mut all = Rules::default();
        for grant in self.policy().bindings_of(user, namespace) {
            match grant.rules {
                Ok(rules) => rules.iter().for_each(|rule| list(rule, &mut all)),
                Err(unresolved) => all.errors.push(unresolved.text(None)),
            }
        }
        all
    }

    fn attach(&self, listers: &dyn Listers) {
        self.sources.get_or_init(|| {
            let known = SOURCES.into_iter().filter_map(|(plural, is_binding, is_namespaced)| {
                Some(Source {
                    feed: listers.feed(GROUP, plural)?,
                    is_binding,
                    is_namespaced,
                })
            });
            known.collect()
        });
    }
}

fn list(rule: &Rule, all: &mut Rules) {
    if !rule.resources.is_empty() {
        all.resources.push(ResourceRule {
            verbs: rule.verbs.clone(),
            groups: rule.groups.clone(),
            resources: rule.resources.clone(),
            names: rule.names.clone(),
        });
    }
    if !rule.paths.is_empty() {
        all.paths.push(PathRule {
            verbs: rule.verbs.clone(),
            paths: rule.paths.clone(),
        });
    }
}
