//! The audit policy: the rules of `--audit-policy-file`. The first rule that fits decides; what no rule fits is not
//! recorded.

mod document;
#[cfg(test)]
mod tests;

use keelson_access::request_info::RequestInfo;
use keelson_access::user::User;

use super::level::{Level, Stages};
pub use document::PolicyError;

/// Checked rules, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    rules: Vec<Rule>,
}

/// What a rule says of the requests that it fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    pub level: Level,
    /// Stages without an event.
    pub omitted: Stages,
    /// Objects are recorded without `metadata.managedFields`.
    pub omit_managed_fields: bool,
}

/// One rule. A list that is empty fits every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rule {
    decision: Decision,
    users: Vec<String>,
    groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<Resources>,
    /// "" stands for requests that are in no namespace.
    namespaces: Vec<String>,
    urls: Vec<UrlPattern>,
}

/// Resources of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Resources {
    /// `*`: any.
    group: String,
    /// Empty: all.
    resources: Vec<ResourcePattern>,
    /// Empty: any.
    names: Vec<String>,
}

/// How a rule names resources and subresources.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ResourcePattern {
    /// `*`
    All,
    /// `pods`: not its subresources.
    Resource(String),
    /// `pods/log`
    Subresource(String, String),
    /// `pods/*`: with all subresources.
    WithSubresources(String),
    /// `*/scale`: this subresource, of all resources.
    OfAll(String),
}

/// A path outside the API of resources.
#[derive(Clone, Debug, PartialEq, Eq)]
enum UrlPattern {
    Path(String),
    /// What begins so.
    Prefix(String),
}

impl Policy {
    /// What is to be recorded of a request of `user`; `None`: who asks was not found out, which no rule about users
    /// fits.
    pub fn decide(&self, user: Option<&User>, info: &RequestInfo) -> Decision {
        let rule = self.rules.iter().find(|rule| rule.fits(user, info));
        rule.map(|rule| rule.decision).unwrap_or_default()
    }
}

impl Rule {
    fn fits(&self, user: Option<&User>, info: &RequestInfo) -> bool {
        let is_among = |names: &[String], name: &str| names.is_empty() || names.iter().any(|n| n == name);
        let in_groups = |user: &User| self.groups.is_empty() || self.groups.iter().any(|g| user.in_group(g));
        let of_user = match user {
            Some(user) => is_among(&self.users, &user.name) && in_groups(user),
            None => self.users.is_empty() && self.groups.is_empty(),
        };
        if !of_user || !is_among(&self.verbs, &info.verb) {
            return false;
        }
        if !self.resources.is_empty() || !self.namespaces.is_empty() {
            return info.is_resource
                && is_among(&self.namespaces, &info.namespace)
                && (self.resources.is_empty() || self.resources.iter().any(|one| one.fit(info)));
        }
        self.urls.is_empty() || (!info.is_resource && self.urls.iter().any(|url| url.fits(&info.path)))
    }
}

impl Resources {
    fn fit(&self, info: &RequestInfo) -> bool {
        if self.group != "*" && self.group != info.group {
            return false;
        }
        let named = || self.names.is_empty() || self.names.contains(&info.name);
        self.resources.is_empty() || self.resources.iter().any(|one| one.fits(info) && named())
    }
}

impl ResourcePattern {
    fn of(text: &str) -> ResourcePattern {
        match text.split_once('/') {
            _ if text == "*" => ResourcePattern::All,
            None => ResourcePattern::Resource(text.to_owned()),
            Some(("*", subresource)) => ResourcePattern::OfAll(subresource.to_owned()),
            Some((resource, "*")) => ResourcePattern::WithSubresources(resource.to_owned()),
            Some((resource, subresource)) => ResourcePattern::Subresource(resource.to_owned(), subresource.to_owned()),
        }
    }

    fn fits(&self, info: &RequestInfo) -> bool {
        match self {
            ResourcePattern::All => true,
            ResourcePattern::Resource(resource) => info.subresource.is_empty() && *resource == info.resource,
            ResourcePattern::Subresource(resource, subresource) => {
                !info.subresource.is_empty() && *subresource == info.subresource && *resource == info.resource
            }
            ResourcePattern::WithSubresources(resource) => *resource == info.resource,
            ResourcePattern::OfAll(subresource) => !info.subresource.is_empty() && *subresource == info.subresource,
        }
    }
}

impl UrlPattern {
    fn of(text: &str) -> UrlPattern {
        match text.strip_suffix('*') {
            Some(prefix) => UrlPattern::Prefix(prefix.to_owned()),
            None => UrlPattern::Path(text.to_owned()),
        }
    }

    fn fits(&self, path: &str) -> bool {
        match self {
            UrlPattern::Path(wanted) => wanted == path,
            UrlPattern::Prefix(prefix) => path.starts_with(prefix.as_str()),
        }
    }
}
