//! Escalation: whether rules cover other rules, since nobody may grant what they don't hold.
//!
//! A rule stands for each of its verbs on each of its things, and each of these parts has to be covered by one rule that
//! is held. A request of some kilobytes can name more parts than there is memory for, so what is covered as a whole is
//! not taken apart, and what is taken apart is bounded.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use keelson_machinery::field::text::quote;

use super::rule::{Rule, path_fits};

/// Parts that are looked at one by one; the next one counts as not held.
const MAX_PARTS: usize = 1 << 18;
/// Parts that are told, and bytes of their texts: no refusal shows more.
const MAX_MISSING: usize = 1 << 14;
const MAX_BYTES: usize = 4 << 20;

/// What of `wanted` no rule of `held` covers, in rules of one verb on one thing, as far as it is told.
pub(super) fn missing(held: &[&Rule], wanted: &[Rule]) -> Vec<Rule> {
    let mut search = Search {
        held: Held::of(held),
        parts: MAX_PARTS,
        bytes: MAX_BYTES,
        found: Vec::new(),
    };
    for rule in wanted {
        // Where there was no room for all, something was found.
        if search.resources(rule).and_then(|()| search.paths(rule)).is_none() {
            break;
        }
    }
    search.found
}

/// One line a rule, sorted, verbs on the same resource together.
pub(super) fn describe(missing: Vec<Rule>) -> Vec<String> {
    let mut compact: BTreeMap<_, Vec<String>> = BTreeMap::new();
    let mut lines = BTreeSet::new();
    for rule in missing {
        match rule.resources.is_empty() {
            true => drop(lines.insert(text(&rule))),
            false => {
                let verbs = compact.entry((rule.groups, rule.resources, rule.names)).or_default();
                verbs.extend(rule.verbs);
            }
        }
    }
    lines.extend(compact.into_iter().map(|((groups, resources, names), verbs)| {
        text(&Rule {
            verbs,
            groups,
            resources,
            names,
            paths: Vec::new(),
        })
    }));
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

/// A set of held rules, a bit for each.
type Bits = [u64];

/// Whether a rule is in all of the sets.
fn meet<const N: usize>(sets: [&Bits; N]) -> bool {
    let words = sets.first().map_or(0, |set| set.len());
    (0..words).any(|at| {
        let word = sets.iter().map(|set| set.get(at).copied().unwrap_or(0));
        word.fold(u64::MAX, |all, one| all & one) != 0
    })
}

/// The rules that are in all of the sets.
fn common<'s>(words: usize, sets: impl IntoIterator<Item = &'s Cow<'s, Bits>>) -> Vec<u64> {
    let mut all = vec![u64::MAX; words];
    for set in sets {
        all.iter_mut().zip(set.iter()).for_each(|(all, one)| *all &= one);
    }
    all
}

/// Which held rules have a text in one of their lists.
struct Index<'r> {
    /// Those that have any.
    any: Vec<u64>,
    /// Those that have this one, or any.
    exact: HashMap<&'r str, Vec<u64>>,
}

impl<'r> Index<'r> {
    /// `is_any` tells of a list whether it has any text.
    fn of(held: &[&'r Rule], list: impl Fn(&'r Rule) -> &'r [String], is_any: impl Fn(&[String]) -> bool) -> Self {
        let words = held.len().div_ceil(64);
        let (mut any, mut exact) = (vec![0; words], HashMap::new());
        for (place, rule) in held.iter().enumerate() {
            let items = list(rule);
            let bit = 1 << (place % 64);
            let sets = items.iter().map(String::as_str);
            if is_any(items)
                && let Some(word) = any.get_mut(place / 64)
            {
                *word |= bit;
            }
            for text in sets {
                let set: &mut Vec<u64> = exact.entry(text).or_insert_with(|| vec![0; words]);
                if let Some(word) = set.get_mut(place / 64) {
                    *word |= bit;
                }
            }
        }
        for set in exact.values_mut() {
            set.iter_mut().zip(&any).for_each(|(one, any)| *one |= any);
        }
        Index { any, exact }
    }

    fn with(&self, text: &str) -> Cow<'_, Bits> {
        Cow::Borrowed(self.exact.get(text).unwrap_or(&self.any))
    }

    /// As [`Index::with`], of a resource, which may be a subresource of any.
    fn with_resource(&self, text: &str) -> Cow<'_, Bits> {
        let of_any = text.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
        let of_any = of_any.and_then(|pattern| self.exact.get(pattern.as_str()));
        match (self.exact.get(text), of_any) {
            (Some(one), Some(other)) => one.iter().zip(other).map(|(one, other)| one | other).collect(),
            (Some(one), None) | (None, Some(one)) => Cow::Borrowed(one),
            (None, None) => Cow::Borrowed(&self.any),
        }
    }

    fn each(&self, texts: &[String]) -> Vec<Cow<'_, Bits>> {
        texts.iter().map(|text| self.with(text)).collect()
    }
}

/// The rules that are held, by what they have.
struct Held<'r> {
    words: usize,
    verbs: Index<'r>,
    groups: Index<'r>,
    resources: Index<'r>,
    /// A rule without names has any.
    names: Index<'r>,
    /// With the place of the rule.
    paths: Vec<(&'r str, usize)>,
}

impl<'r> Held<'r> {
    fn of(held: &[&'r Rule]) -> Held<'r> {
        let has_star = |list: &[String]| list.iter().any(|item| item == "*");
        let paths = held.iter().enumerate();
        Held {
            words: held.len().div_ceil(64),
            verbs: Index::of(held, |rule| &rule.verbs, has_star),
            groups: Index::of(held, |rule| &rule.groups, has_star),
            resources: Index::of(held, |rule| &rule.resources, has_star),
            names: Index::of(held, |rule| &rule.names, <[String]>::is_empty),
            paths: paths
                .flat_map(|(place, rule)| rule.paths.iter().map(move |path| (path.as_str(), place)))
                .collect(),
        }
    }

    fn with_path(&self, path: &str) -> Vec<u64> {
        let mut found = vec![0; self.words];
        for (_, place) in self.paths.iter().filter(|(pattern, _)| path_fits(pattern, path)) {
            if let Some(word) = found.get_mut(place / 64) {
                *word |= 1 << (place % 64);
            }
        }
        found
    }
}

/// A search for parts that are not held.
struct Search<'r> {
    held: Held<'r>,
    /// Parts that may still be looked at, and bytes that may still be told.
    parts: usize,
    bytes: usize,
    found: Vec<Rule>,
}

impl Search<'_> {
    /// The parts of a rule on resources. `None`: there was no room for all.
    fn resources(&mut self, rule: &Rule) -> Option<()> {
        if rule.verbs.is_empty() {
            return Some(());
        }
        let (verbs, groups) = (self.held.verbs.each(&rule.verbs), self.held.groups.each(&rule.groups));
        let resources: Vec<_> = rule
            .resources
            .iter()
            .map(|one| self.held.resources.with_resource(one))
            .collect();
        let (names, texts) = match rule.names.is_empty() {
            true => (vec![Cow::Borrowed(&*self.held.names.any)], vec![None]),
            false => (self.held.names.each(&rule.names), rule.names.iter().map(Some).collect()),
        };
        let inner = common(self.held.words, verbs.iter().chain(&names));
        let outer = common(self.held.words, groups.iter().chain(&resources));
        if meet([&inner, &outer]) {
            return Some(());
        }
        let (mut parts, mut missing) = (self.parts, Missing::new(&mut self.found, &mut self.bytes));
        for (group, of_group) in rule.groups.iter().zip(&groups) {
            for (resource, of_resource) in rule.resources.iter().zip(&resources) {
                let part = |verb: &String, name: Option<&String>| Rule {
                    verbs: vec![verb.clone()],
                    groups: vec![group.clone()],
                    resources: vec![resource.clone()],
                    names: name.cloned().into_iter().collect(),
                    paths: Vec::new(),
                };
                if meet([of_group, of_resource, &inner]) && parts > 0 {
                    parts -= 1;
                    continue;
                }
                for (verb, of_verb) in rule.verbs.iter().zip(&verbs) {
                    for (name, of_name) in texts.iter().zip(&names) {
                        let left = parts.checked_sub(1);
                        // What there is no room to look at is not held.
                        if left.is_none() || !meet([of_group, of_resource, of_verb, of_name]) {
                            missing.push(part(verb, *name))?;
                        }
                        parts = left?;
                    }
                }
            }
        }
        self.parts = parts;
        Some(())
    }

    /// The parts of a rule on paths. `None`: there was no room for all.
    fn paths(&mut self, rule: &Rule) -> Option<()> {
        if rule.verbs.is_empty() {
            return Some(());
        }
        let verbs = self.held.verbs.each(&rule.verbs);
        let (mut parts, mut missing) = (self.parts, Missing::new(&mut self.found, &mut self.bytes));
        for path in &rule.paths {
            let of_path = self.held.with_path(path);
            for (verb, of_verb) in rule.verbs.iter().zip(&verbs) {
                let left = parts.checked_sub(1 + self.held.paths.len() / 8);
                if left.is_none() || !meet([&of_path, of_verb, &self.held.names.any]) {
                    missing.push(Rule {
                        verbs: vec![verb.clone()],
                        paths: vec![path.clone()],
                        ..Rule::default()
                    })?;
                }
                parts = left?;
            }
        }
        self.parts = parts;
        Some(())
    }
}

/// What is missing, as far as there is room for it.
struct Missing<'s> {
    found: &'s mut Vec<Rule>,
    bytes: &'s mut usize,
}

impl<'s> Missing<'s> {
    fn new(found: &'s mut Vec<Rule>, bytes: &'s mut usize) -> Missing<'s> {
        Missing { found, bytes }
    }

    /// `None`: there is room for no more.
    fn push(&mut self, part: Rule) -> Option<()> {
        let lists = [&part.verbs, &part.groups, &part.resources, &part.names, &part.paths];
        let bytes: usize = lists.iter().flat_map(|list| list.iter()).map(String::len).sum();
        self.found.push(part);
        *self.bytes = self.bytes.checked_sub(bytes)?;
        (self.found.len() < MAX_MISSING).then_some(())
    }
}
