//! Classification: the schema of a request is the first one, by precedence and then by name, of which a rule fits.

use super::spec::{ANY, Distinguisher, PathRule, ResourceRule, Rule, Schema, Subject};
use crate::request_info::RequestInfo;
use crate::user::{ACCOUNT_PREFIX, User};

/// The order in which schemas are asked.
pub fn sort<T>(schemas: &mut [T], schema: impl Fn(&T) -> &Schema) {
    schemas.sort_by(|a, b| {
        let (a, b) = (schema(a), schema(b));
        a.precedence.cmp(&b.precedence).then_with(|| a.name.cmp(&b.name))
    });
}

impl Schema {
    /// Whether it takes this request.
    pub fn takes(&self, user: &User, info: &RequestInfo) -> bool {
        self.rules.iter().any(|rule| rule.fits(user, info))
    }

    /// What tells the request's flow from others of this schema.
    pub fn flow<'a>(&self, user: &'a User, info: &'a RequestInfo) -> &'a str {
        self.distinguisher.of(user, info)
    }
}

impl Distinguisher {
    pub fn of<'a>(self, user: &'a User, info: &'a RequestInfo) -> &'a str {
        match self {
            Distinguisher::None => "",
            Distinguisher::User => &user.name,
            Distinguisher::Namespace => &info.namespace,
        }
    }
}

impl Rule {
    fn fits(&self, user: &User, info: &RequestInfo) -> bool {
        let asked = match info.is_resource {
            true => self.resources.iter().any(|rule| rule.fits(info)),
            false => self.paths.iter().any(|rule| rule.fits(info)),
        };
        asked && self.subjects.iter().any(|subject| subject.is(user))
    }
}

impl Subject {
    fn is(&self, user: &User) -> bool {
        match self {
            Subject::User(name) => name == ANY || *name == user.name,
            Subject::Group(name) => name == ANY || user.in_group(name),
            Subject::ServiceAccount { namespace, name } => {
                let account = user.name.strip_prefix(ACCOUNT_PREFIX).and_then(|n| n.split_once(':'));
                account.is_some_and(|(of, account)| of == namespace && (name == ANY || name == account))
            }
        }
    }
}

impl ResourceRule {
    fn fits(&self, info: &RequestInfo) -> bool {
        let placed = match info.namespace.as_str() {
            "" => self.cluster_scope,
            namespace => has(&self.namespaces, namespace),
        };
        placed && has(&self.verbs, &info.verb) && has(&self.groups, &info.group) && self.names(info)
    }

    fn names(&self, info: &RequestInfo) -> bool {
        let is = |resource: &String| match (resource.as_str(), info.subresource.as_str()) {
            (ANY, _) => true,
            (resource, "") => resource == info.resource,
            (resource, subresource) => resource
                .strip_prefix(info.resource.as_str())
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|rest| rest == subresource),
        };
        self.resources.iter().any(is)
    }
}

impl PathRule {
    fn fits(&self, info: &RequestInfo) -> bool {
        // A path stands for what is below it too, with or without a star.
        let is = |path: &String| {
            let folder = path.trim_end_matches('*').trim_end_matches('/');
            let below = info.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
            path == ANY || *path == info.path || below
        };
        has(&self.verbs, &info.verb) && self.paths.iter().any(is)
    }
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|one| one == ANY || one == wanted)
}

#[cfg(test)]
mod tests;
