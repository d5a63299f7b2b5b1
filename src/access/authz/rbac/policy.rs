//! Roles and bindings, indexed by who is bound.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use keelson_machinery::field::text::quote;

use super::GROUP;
use super::rule::Rule;
use crate::authz::{Decision, aggregate};
use crate::request_info::RequestInfo;
use crate::user::{ACCOUNT_PREFIX, User};

/// Which role a binding gives.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    pub name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubjectKind {
    User,
    Group,
    ServiceAccount,
}

/// Whom a binding gives its role to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subject {
    pub kind: SubjectKind,
    pub name: String,
    /// Of a service account; "": that of the binding.
    pub namespace: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binding {
    pub role: RoleRef,
    pub subjects: Vec<Subject>,
}

/// The role of a binding is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unresolved<'a>(pub &'a RoleRef);

impl Unresolved<'_> {
    /// The error's text; with `plural` as a reader of the store words it who was asked for that resource.
    pub fn text(&self, plural: Option<&str>) -> String {
        let RoleRef { kind, name } = self.0;
        let resource = match (kind.as_str(), plural) {
            ("Role" | "ClusterRole", Some(plural)) => plural.to_owned(),
            ("Role" | "ClusterRole", None) => kind.to_ascii_lowercase(),
            _ => return format!("unsupported role reference kind: {}", quote(kind)),
        };
        format!("{resource}.{GROUP} {} not found", quote(name))
    }
}

/// A role that a user has. Its bindings are all in the namespace, or in none ("").
pub struct Grant<'a> {
    pub rules: Result<&'a [Rule], Unresolved<'a>>,
    namespace: &'a str,
    /// Sorted.
    bindings: &'a BTreeSet<Arc<str>>,
}

/// One binding of a user.
pub struct Bound<'a> {
    pub rules: Result<&'a [Rule], Unresolved<'a>>,
}

type RolesByName = HashMap<Box<str>, Box<[Rule]>>;

/// The names of bindings, by the role that they give.
type Roles = BTreeMap<RoleRef, BTreeSet<Arc<str>>>;

/// The bindings of one namespace, or of none.
#[derive(Default)]
struct Scope {
    bindings: HashMap<Arc<str>, Binding>,
    users: HashMap<Box<str>, Roles>,
    groups: HashMap<Box<str>, Roles>,
    /// By their names as users.
    accounts: HashMap<Box<str>, Roles>,
}

/// All roles and bindings. The namespace of what is in none is "".
#[derive(Default)]
pub struct Policy {
    roles: HashMap<Box<str>, RolesByName>,
    scopes: HashMap<Box<str>, Scope>,
}

impl Policy {
    pub fn put_role(&mut self, namespace: &str, name: &str, rules: Vec<Rule>) {
        self.roles
            .entry(namespace.into())
            .or_default()
            .insert(name.into(), rules.into());
    }

    pub fn remove_role(&mut self, namespace: &str, name: &str) {
        if let Some(roles) = self.roles.get_mut(namespace) {
            roles.remove(name);
            if roles.is_empty() {
                self.roles.remove(namespace);
            }
        }
    }

    pub fn put_binding(&mut self, namespace: &str, name: &str, binding: Binding) {
        self.remove_binding(namespace, name);
        let scope = self.scopes.entry(namespace.into()).or_default();
        let name: Arc<str> = name.into();
        for subject in &binding.subjects {
            let roles = scope
                .index(subject.kind)
                .entry(subject.key(namespace).into())
                .or_default();
            roles.entry(binding.role.clone()).or_default().insert(name.clone());
        }
        scope.bindings.insert(name, binding);
    }

    pub fn remove_binding(&mut self, namespace: &str, name: &str) {
        let Some(scope) = self.scopes.get_mut(namespace) else {
            return;
        };
        let Some(binding) = scope.bindings.remove(name) else {
            return;
        };
        for subject in &binding.subjects {
            let (index, key) = (scope.index(subject.kind), subject.key(namespace));
            let Some(roles) = index.get_mut(key.as_str()) else {
                continue;
            };
            if let Some(names) = roles.get_mut(&binding.role) {
                names.remove(name);
                if names.is_empty() {
                    roles.remove(&binding.role);
                }
            }
            if roles.is_empty() {
                index.remove(key.as_str());
            }
        }
        if scope.bindings.is_empty() {
            self.scopes.remove(namespace);
        }
    }

    /// Forgets all roles that are in namespaces, or all that are in none.
    pub fn clear_roles(&mut self, namespaced: bool) {
        self.roles.retain(|namespace, _| namespace.is_empty() == namespaced);
    }

    /// Forgets all bindings that are in namespaces, or all that are in none.
    pub fn clear_bindings(&mut self, namespaced: bool) {
        self.scopes.retain(|namespace, _| namespace.is_empty() == namespaced);
    }

    /// The rules of a role that is referred to in a namespace.
    pub fn resolve<'a>(&'a self, namespace: &str, role: &'a RoleRef) -> Result<&'a [Rule], Unresolved<'a>> {
        let namespace = match role.kind.as_str() {
            "Role" => namespace,
            "ClusterRole" => "",
            _ => return Err(Unresolved(role)),
        };
        let found = self
            .roles
            .get(namespace)
            .and_then(|roles| roles.get(role.name.as_str()));
        found.map(|rules| &**rules).ok_or(Unresolved(role))
    }

    /// The roles that a user has in a namespace and everywhere, each once for every subject that the user is.
    pub fn grants_of<'a>(&'a self, user: &'a User, namespace: &'a str) -> impl Iterator<Item = Grant<'a>> {
        self.scopes_of(namespace).flat_map(move |(namespace, scope)| {
            scope.roles_of(user).flatten().map(move |(role, bindings)| Grant {
                rules: self.resolve(namespace, role),
                namespace,
                bindings,
            })
        })
    }

    /// All bindings of a user in a namespace and everywhere: those everywhere first, then by name.
    pub fn bindings_of<'a>(&'a self, user: &'a User, namespace: &'a str) -> impl Iterator<Item = Bound<'a>> {
        self.scopes_of(namespace).flat_map(move |(namespace, scope)| {
            let names: BTreeSet<&Arc<str>> = scope.roles_of(user).flatten().flat_map(|(_, names)| names).collect();
            let bindings = names.into_iter().filter_map(|name| scope.bindings.get(name));
            bindings.map(move |binding| Bound {
                rules: self.resolve(namespace, &binding.role),
            })
        })
    }

    /// Whether a role of the user allows this.
    pub fn decide(&self, user: &User, info: &RequestInfo) -> Decision {
        let mut unresolved = false;
        for grant in self.grants_of(user, &info.namespace) {
            match grant.rules {
                Ok(rules) if rules.iter().any(|rule| rule.allows(info)) => {
                    return Decision::Allow(format!("RBAC: allowed by {}", self.describe(&grant, user)));
                }
                Ok(_) => {}
                Err(_) => unresolved = true,
            }
        }
        if !unresolved {
            return Decision::NoOpinion(String::new());
        }
        let all = self.bindings_of(user, &info.namespace);
        let errors: Vec<String> = all.filter_map(|bound| Some(bound.rules.err()?.text(None))).collect();
        Decision::NoOpinion(format!("RBAC: {}", aggregate(&errors)))
    }

    /// `ClusterRoleBinding "a" of ClusterRole "b" to User "c"`.
    pub fn describe(&self, grant: &Grant<'_>, user: &User) -> String {
        let place = grant.namespace;
        let scope = self.scopes.get(place);
        let first = grant.bindings.first();
        let Some((name, binding)) = scope.zip(first).and_then(|(s, name)| s.bindings.get_key_value(name)) else {
            return String::new();
        };
        let subject = binding.subjects.iter().find(|subject| subject.is(user, place));
        let subject = subject.map(|s| s.describe(place)).unwrap_or_default();
        let RoleRef { kind, name: role } = &binding.role;
        let (of, name) = match place {
            "" => ("ClusterRoleBinding", quote(name)),
            _ => ("RoleBinding", quote(&format!("{name}/{place}"))),
        };
        format!("{of} {name} of {kind} {} to {subject}", quote(role))
    }

    /// Where the rights of a user in a namespace come from: what holds everywhere, then what holds there.
    fn scopes_of<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a str, &'a Scope)> {
        let there = Some(namespace).filter(|namespace| !namespace.is_empty());
        let places = std::iter::once("").chain(there);
        places.filter_map(|place| Some((place, self.scopes.get(place)?)))
    }
}

impl Scope {
    fn index(&mut self, kind: SubjectKind) -> &mut HashMap<Box<str>, Roles> {
        match kind {
            SubjectKind::User => &mut self.users,
            SubjectKind::Group => &mut self.groups,
            SubjectKind::ServiceAccount => &mut self.accounts,
        }
    }

    fn roles_of<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a Roles> {
        let name = user.name.as_str();
        let named = self.users.get(name).into_iter().chain(self.accounts.get(name));
        named.chain(user.groups.iter().filter_map(|group| self.groups.get(group.as_str())))
    }
}

impl Subject {
    /// By what the subject is found: the name of the group, or of the user.
    fn key(&self, binding_namespace: &str) -> String {
        match self.kind {
            SubjectKind::User | SubjectKind::Group => self.name.clone(),
            SubjectKind::ServiceAccount => {
                format!("{ACCOUNT_PREFIX}{}:{}", self.home(binding_namespace), self.name)
            }
        }
    }

    fn home<'a>(&'a self, binding_namespace: &'a str) -> &'a str {
        match self.namespace.as_str() {
            "" => binding_namespace,
            namespace => namespace,
        }
    }

    fn is(&self, user: &User, binding_namespace: &str) -> bool {
        match self.kind {
            SubjectKind::Group => user.in_group(&self.name),
            SubjectKind::User => self.name == user.name,
            SubjectKind::ServiceAccount => self.key(binding_namespace) == user.name,
        }
    }

    fn describe(&self, binding_namespace: &str) -> String {
        match self.kind {
            SubjectKind::User => format!("User {}", quote(&self.name)),
            SubjectKind::Group => format!("Group {}", quote(&self.name)),
            SubjectKind::ServiceAccount => {
                let name = format!("{}/{}", self.name, self.home(binding_namespace));
                format!("ServiceAccount {}", quote(&name))
            }
        }
    }
}
