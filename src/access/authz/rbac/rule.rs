//! Policy rules of roles.

use crate::request_info::RequestInfo;

/// Verbs on resources, or on paths that are none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rule {
    pub verbs: Vec<String>,
    pub groups: Vec<String>,
    /// `pods`, `pods/log`, `*/scale`, `*`.
    pub resources: Vec<String>,
    /// Empty: objects of any name.
    pub names: Vec<String>,
    /// Paths that are no resources; one may end in `*`.
    pub paths: Vec<String>,
}

impl Rule {
    pub fn allows(&self, info: &RequestInfo) -> bool {
        if !has(&self.verbs, &info.verb) {
            return false;
        }
        if !info.is_resource {
            return self.paths.iter().any(|pattern| path_fits(pattern, &info.path));
        }
        has(&self.groups, &info.group)
            && self.resources.iter().any(|pattern| resource_fits(pattern, info))
            && (self.names.is_empty() || self.names.contains(&info.name))
    }
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == "*" || item == wanted)
}

fn resource_fits(pattern: &str, info: &RequestInfo) -> bool {
    if pattern == "*" {
        return true;
    }
    if info.subresource.is_empty() {
        return pattern == info.resource;
    }
    let Some((resource, subresource)) = pattern.split_once('/') else {
        return false;
    };
    subresource == info.subresource && (resource == "*" || resource == info.resource)
}

/// Whether a path fits a pattern: itself, or what its `*` at the end leaves open.
pub(super) fn path_fits(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(_) => path.starts_with(pattern.trim_end_matches('*')),
        None => path == pattern,
    }
}
