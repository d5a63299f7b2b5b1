//! Escalation: whether rules cover other rules, since nobody may grant what they don't hold.

use std::collections::BTreeSet;

use keelson_machinery::field::text::quote;

use super::rule::{Rule, path_fits};

/// What of `wanted` no rule of `held` covers, in rules of one verb on one thing.
pub(super) fn missing(held: &[&Rule], wanted: &[Rule]) -> Vec<Rule> {
    let parts = wanted.iter().flat_map(break_down);
    parts
        .filter(|part| !held.iter().any(|rule| covers(rule, part)))
        .collect()
}

/// One line a rule, sorted, verbs on the same resource together.
pub(super) fn describe(missing: Vec<Rule>) -> Vec<String> {
    let mut compact: Vec<Rule> = Vec::new();
    for rule in missing {
        let same = |other: &&mut Rule| {
            !rule.resources.is_empty()
                && (&other.groups, &other.resources, &other.names) == (&rule.groups, &rule.resources, &rule.names)
        };
        match compact.iter_mut().find(same) {
            Some(other) => other.verbs.extend(rule.verbs),
            None => compact.push(rule),
        }
    }
    let lines: BTreeSet<String> = compact.iter().map(text).collect();
    lines.into_iter().collect()
}

fn text(rule: &Rule) -> String {
    let lists = [
        ("APIGroups", &rule.groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.paths),
        ("ResourceNames", &rule.names),
        ("Verbs", &rule.verbs),
    ];
    let shown = lists.iter().filter(|(_, list)| !list.is_empty()).map(|(name, list)| {
        let items: Vec<String> = list.iter().map(|item| quote(item)).collect();
        format!("{name}:[{}]", items.join(" "))
    });
    format!("{{{}}}", shown.collect::<Vec<_>>().join(", "))
}

fn break_down(rule: &Rule) -> Vec<Rule> {
    let one = |text: &String| vec![text.clone()];
    let mut parts = Vec::new();
    for (group, resource) in rule
        .groups
        .iter()
        .flat_map(|g| rule.resources.iter().map(move |r| (g, r)))
    {
        for verb in &rule.verbs {
            let part = Rule {
                verbs: one(verb),
                groups: one(group),
                resources: one(resource),
                ..Rule::default()
            };
            if rule.names.is_empty() {
                parts.push(part.clone());
            }
            let named = rule.names.iter().map(|name| Rule {
                names: one(name),
                ..part.clone()
            });
            parts.extend(named);
        }
    }
    for (path, verb) in rule.paths.iter().flat_map(|p| rule.verbs.iter().map(move |v| (p, v))) {
        parts.push(Rule {
            verbs: one(verb),
            paths: one(path),
            ..Rule::default()
        });
    }
    parts
}

/// Whether one rule covers a part of another, see [`break_down`].
fn covers(held: &Rule, part: &Rule) -> bool {
    let has = |list: &[String], wanted: &[String]| {
        list.iter().any(|item| item == "*") || wanted.iter().all(|item| list.contains(item))
    };
    let resource = |wanted: &String| {
        held.resources.contains(wanted)
            || wanted.split_once('/').is_some_and(|(_, subresource)| {
                let any = |held: &String| held.strip_prefix("*/") == Some(subresource);
                held.resources.iter().any(any)
            })
    };
    let path = |wanted: &String| held.paths.iter().any(|pattern| path_fits(pattern, wanted));
    has(&held.verbs, &part.verbs)
        && has(&held.groups, &part.groups)
        && (held.resources.iter().any(|r| r == "*") || part.resources.iter().all(resource))
        && part.paths.iter().all(path)
        && (held.names.is_empty()
            || (!part.names.is_empty() && part.names.iter().all(|name| held.names.contains(name))))
}
