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
/// Words of the sets of held rules, one set for each text that is wanted; beyond them it counts as not held.
const MAX_WORDS: usize = 1 << 22;
/// Parts that are told, and bytes of their texts: no refusal shows more.
const MAX_MISSING: usize = 1 << 14;
const MAX_BYTES: usize = 4 << 20;

/// What of `wanted` no rule of `held` covers, in rules of one verb on one thing, as far as it is told.
pub(super) fn missing(held: &[&Rule], wanted: &[Rule]) -> Vec<Rule> {
    let mut search = Search {
        held: Held::of(held, wanted),
        parts: MAX_PARTS,
        words: MAX_WORDS,
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
fn common<'s>(words: usize, sets: impl IntoIterator<Item = &'s Vec<u64>>) -> Vec<u64> {
    let mut all = vec![u64::MAX; words];
    for set in sets {
        all.iter_mut().zip(set.iter()).for_each(|(all, one)| *all &= one);
    }
    all
}

/// Which held rules have a text in one of their lists. Both may be very many, so it is known of the texts that are
/// asked for alone, and sets are made one by one.
struct Index<'w> {
    /// The rules that have any text.
    any: Vec<u64>,
    /// The places of those that have this one.
    exact: HashMap<Cow<'w, str>, Vec<usize>>,
}

impl<'w> Index<'w> {
    /// `is_any` tells of a list whether it has any text.
    fn of<'r>(
        held: &[&'r Rule],
        asked: impl Iterator<Item = Cow<'w, str>>,
        list: impl Fn(&'r Rule) -> &'r [String],
        is_any: impl Fn(&[String]) -> bool,
    ) -> Self {
        let mut exact: HashMap<_, Vec<usize>> = asked.map(|text| (text, Vec::new())).collect();
        let mut any = vec![0; held.len().div_ceil(64)];
        for (place, rule) in held.iter().enumerate() {
            let items = list(rule);
            if is_any(items) {
                add(&mut any, place);
            }
            for text in items {
                if let Some(places) = exact.get_mut(text.as_str()) {
                    places.push(place);
                }
            }
        }
        Index { any, exact }
    }

    fn with(&self, text: &str) -> Vec<u64> {
        let mut set = self.any.clone();
        let places = self.exact.get(text).into_iter().flatten();
        places.for_each(|place| add(&mut set, *place));
        set
    }

    /// As [`Index::with`], of a resource, which may be a subresource of any.
    fn with_resource(&self, text: &str) -> Vec<u64> {
        let mut set = self.with(text);
        let of_any = of_any_resource(text).and_then(|pattern| self.exact.get(&pattern));
        of_any.into_iter().flatten().for_each(|place| add(&mut set, *place));
        set
    }

    fn each(&self, texts: &[String]) -> Vec<Vec<u64>> {
        texts.iter().map(|text| self.with(text)).collect()
    }
}

/// Puts a rule into a set.
fn add(set: &mut [u64], place: usize) {
    if let Some(word) = set.get_mut(place / 64) {
        *word |= 1 << (place % 64);
    }
}

/// `*/scale`, of `deployments/scale`.
fn of_any_resource(text: &str) -> Option<Cow<'static, str>> {
    let (_, subresource) = text.split_once('/')?;
    Some(Cow::Owned(format!("*/{subresource}")))
}

/// The rules that are held, by what they have of what is wanted.
struct Held<'h, 'w> {
    words: usize,
    verbs: Index<'w>,
    groups: Index<'w>,
    resources: Index<'w>,
    /// A rule without names has any.
    names: Index<'w>,
    /// With the place of the rule.
    paths: Vec<(&'h str, usize)>,
}

impl<'h, 'w> Held<'h, 'w> {
    fn of(held: &[&'h Rule], wanted: &'w [Rule]) -> Held<'h, 'w> {
        let has_star = |list: &[String]| list.iter().any(|item| item == "*");
        let texts = |list: fn(&Rule) -> &Vec<String>| {
            let texts = wanted.iter().flat_map(list);
            texts.map(|text| Cow::Borrowed(text.as_str()))
        };
        let of_any = wanted.iter().flat_map(|rule| &rule.resources);
        let resources = texts(|rule| &rule.resources).chain(of_any.filter_map(|text| of_any_resource(text)));
        let paths = held.iter().enumerate();
        Held {
            words: held.len().div_ceil(64),
            verbs: Index::of(held, texts(|rule| &rule.verbs), |rule| &rule.verbs, has_star),
            groups: Index::of(held, texts(|rule| &rule.groups), |rule| &rule.groups, has_star),
            resources: Index::of(held, resources, |rule| &rule.resources, has_star),
            names: Index::of(
                held,
                texts(|rule| &rule.names),
                |rule| &rule.names,
                <[String]>::is_empty,
            ),
            paths: paths
                .flat_map(|(place, rule)| rule.paths.iter().map(move |path| (path.as_str(), place)))
                .collect(),
        }
    }

    /// What a look at one part costs.
    fn cost(&self) -> usize {
        1 + self.words / 8
    }

    fn with_path(&self, path: &str) -> Vec<u64> {
        let mut found = vec![0; self.words];
        for (_, place) in self.paths.iter().filter(|(pattern, _)| path_fits(pattern, path)) {
            add(&mut found, *place);
        }
        found
    }
}

/// A search for parts that are not held.
struct Search<'h, 'w> {
    held: Held<'h, 'w>,
    /// Parts that may still be looked at, words of sets that may still be made, and bytes that may still be told.
    parts: usize,
    words: usize,
    bytes: usize,
    found: Vec<Rule>,
}

impl Search<'_, '_> {
    /// The parts of a rule on resources. `None`: there was no room for all.
    fn resources(&mut self, rule: &Rule) -> Option<()> {
        let (Some(verb), Some(group), Some(resource)) =
            (rule.verbs.first(), rule.groups.first(), rule.resources.first())
        else {
            return Some(());
        };
        if self.takes_too_much(rule) {
            let part = resource_part(verb, group, resource, rule.names.first());
            Missing::new(&mut self.found, &mut self.bytes).push(part);
            return None;
        }
        let (verbs, groups) = (self.held.verbs.each(&rule.verbs), self.held.groups.each(&rule.groups));
        let resources = rule.resources.iter();
        let resources: Vec<_> = resources.map(|one| self.held.resources.with_resource(one)).collect();
        let (names, texts) = match rule.names.is_empty() {
            true => (vec![self.held.names.any.clone()], vec![None]),
            false => (self.held.names.each(&rule.names), rule.names.iter().map(Some).collect()),
        };
        let inner = common(self.held.words, verbs.iter().chain(&names));
        let outer = common(self.held.words, groups.iter().chain(&resources));
        if meet([&inner, &outer]) {
            return Some(());
        }
        let cost = self.held.cost();
        let (mut parts, mut missing) = (self.parts, Missing::new(&mut self.found, &mut self.bytes));
        for (group, of_group) in rule.groups.iter().zip(&groups) {
            for (resource, of_resource) in rule.resources.iter().zip(&resources) {
                if let Some(left) = parts.checked_sub(cost)
                    && meet([of_group, of_resource, &inner])
                {
                    parts = left;
                    continue;
                }
                for (verb, of_verb) in rule.verbs.iter().zip(&verbs) {
                    for (name, of_name) in texts.iter().zip(&names) {
                        let left = parts.checked_sub(cost);
                        // What there is no room to look at is not held.
                        if left.is_none() || !meet([of_group, of_resource, of_verb, of_name]) {
                            missing.push(resource_part(verb, group, resource, *name))?;
                        }
                        parts = left?;
                    }
                }
            }
        }
        self.parts = parts;
        Some(())
    }

    /// Whether there is no room for the sets of what a rule names.
    fn takes_too_much(&mut self, rule: &Rule) -> bool {
        let lists = [&rule.verbs, &rule.groups, &rule.resources, &rule.names];
        let sets: usize = lists.iter().map(|list| list.len()).sum();
        let left = self.words.checked_sub(sets.saturating_mul(self.held.words));
        self.words = left.unwrap_or_default();
        left.is_none()
    }

    /// The parts of a rule on paths. `None`: there was no room for all.
    fn paths(&mut self, rule: &Rule) -> Option<()> {
        let (Some(verb), Some(path)) = (rule.verbs.first(), rule.paths.first()) else {
            return Some(());
        };
        if self.takes_too_much(rule) {
            Missing::new(&mut self.found, &mut self.bytes).push(path_part(verb, path));
            return None;
        }
        let verbs = self.held.verbs.each(&rule.verbs);
        let cost = self.held.cost() + self.held.paths.len() / 8;
        let (mut parts, mut missing) = (self.parts, Missing::new(&mut self.found, &mut self.bytes));
        for path in &rule.paths {
            let with_path = self.held.with_path(path);
            for (verb, of_verb) in rule.verbs.iter().zip(&verbs) {
                let left = parts.checked_sub(cost);
                if left.is_none() || !meet([&with_path, of_verb, &self.held.names.any]) {
                    missing.push(path_part(verb, path))?;
                }
                parts = left?;
            }
        }
        self.parts = parts;
        Some(())
    }
}

/// One verb on one resource.
fn resource_part(verb: &str, group: &str, resource: &str, name: Option<&String>) -> Rule {
    Rule {
        verbs: vec![verb.to_owned()],
        groups: vec![group.to_owned()],
        resources: vec![resource.to_owned()],
        names: name.cloned().into_iter().collect(),
        paths: Vec::new(),
    }
}

/// One verb on one path.
fn path_part(verb: &str, path: &str) -> Rule {
    Rule {
        verbs: vec![verb.to_owned()],
        paths: vec![path.to_owned()],
        ..Rule::default()
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
