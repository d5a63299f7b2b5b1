//! Names of resources in a configuration, with wildcards, and which rules hold for one.

use super::Rule;

/// Every resource.
pub(super) const ALL: &str = "*.*";

/// What is kept in the store though no client sees it, under names that a configuration may not use.
const WITHOUT_API: [&str; 2] = ["serviceipallocations", "servicenodeportallocations"];

/// Checks the names of one rule; `path` is that of the list. What is wrong has kube-apiserver's words.
pub fn check(path: &str, names: &[String], mistakes: &mut Vec<String>) {
    for (n, name) in names.iter().enumerate() {
        if let Some(why) = unfit(name) {
            mistakes.push(format!("{path}[{n}]: Invalid value: {name:?}: {why}"));
        }
    }
    let why = if masked(names) {
        "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked"
    } else if names.iter().enumerate().any(|(n, name)| names[..n].contains(name)) {
        "the same resource cannot be specified multiple times"
    } else {
        return;
    };
    let shown: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    mistakes.push(format!("{path}: Invalid value: [{}]: {why}", shown.join(",")));
}

fn unfit(name: &str) -> Option<&'static str> {
    let (resource, group) = name.split_once('.').unwrap_or((name, ""));
    if name == "*" {
        return Some("use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources");
    }
    if name.chars().any(char::is_uppercase) {
        return Some("resource name should not contain capital letters");
    }
    match group {
        "events.k8s.io" => Some(
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file",
        ),
        "extensions" => Some("'extensions' group has been removed and cannot be used for encryption"),
        "*" if resource != "*" => Some("encrypting the same resource across groups is not supported"),
        _ if WITHOUT_API.contains(&resource) => Some("resources which do not have REST API/s cannot be encrypted"),
        _ => None,
    }
}

/// Whether a wildcard of the list covers another name in it.
fn masked(names: &[String]) -> bool {
    names.iter().enumerate().any(|(n, wildcard)| {
        let others = names.iter().enumerate().filter(|(other, _)| *other != n);
        others
            .map(|(_, name)| name)
            .any(|name| name != wildcard && covers(wildcard, name))
    })
}

fn covers(wildcard: &str, name: &str) -> bool {
    let group = |name: &str| name.split_once('.').map_or("", |(_, group)| group).to_owned();
    wildcard == ALL || (wildcard.starts_with("*.") && group(wildcard) == group(name))
}

/// A name that a wildcard of an earlier rule covers would never be looked at.
pub fn check_masks(rules: &[Rule], mistakes: &mut Vec<String>) {
    for (r, rule) in rules.iter().enumerate() {
        for name in &rule.resources {
            let mut before = rules[..r].iter().flat_map(|rule| &rule.resources);
            if let Some(wildcard) = before.find(|wildcard| covers(wildcard, name)) {
                mistakes.push(format!("resource {name:?} is masked by earlier rule {wildcard:?}"));
            }
        }
    }
}

/// The names under which a rule may speak of a resource, the most exact one first.
pub(super) fn names(group: &str, resource: &str) -> [String; 3] {
    let exact = match group {
        "" => resource.to_owned(),
        group => format!("{resource}.{group}"),
    };
    [exact, format!("*.{group}"), ALL.to_owned()]
}
