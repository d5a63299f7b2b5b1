//! The order of all changes, put together from everything that clients were told.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::Violation;
use crate::record::{Delivery, Filter, History, Id, Key, Listed, Moment, Outcome, Version};

/// What happened to an object at a revision; no content: it was deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    pub key: Key,
    pub id: Option<Id>,
}

/// See the module's description. Objects are absent before their first change.
#[derive(Default)]
pub struct Timeline {
    /// By revision and key: what ends together has one revision.
    changes: BTreeMap<(u64, Key), Change>,
    by_key: BTreeMap<Key, Vec<(u64, Option<Id>)>>,
    revisions: HashMap<Id, u64>,
    /// When a client first knew that a revision had come.
    seen: BTreeMap<u64, Moment>,
    /// The same of revisions that may be changes of something else.
    heard: BTreeMap<u64, Moment>,
    /// Objects of this revision and before may have ended by themselves while the store was put back and nobody
    /// watched.
    fleeting: u64,
}

impl Timeline {
    /// Violations are revisions and contents that were told in two ways, and contents that nobody wrote.
    pub fn of(history: &History, violations: &mut Vec<Violation>) -> Timeline {
        let mut timeline = Timeline::default();
        for (revision, key, id) in &history.before {
            let change = Change { key: *key, id: *id };
            timeline.take(0, *revision, change, violations);
        }
        if history.lifetime.is_some() {
            timeline.fleeting = history.before.iter().map(|(revision, ..)| *revision).max().unwrap_or(0);
        }
        for (at, revision, change) in told(history) {
            timeline.take(at, revision, change, violations);
        }
        for ((revision, key), change) in &timeline.changes {
            let of_key = timeline.by_key.entry(*key).or_default();
            of_key.push((*revision, change.id));
        }
        timeline.hear(history);
        timeline.check_shared_revisions(history, violations);
        if !history.untracked {
            timeline.check_origins(history, violations);
        }
        timeline
    }

    /// Notes which revisions lists and bookmarks told of, and when.
    fn hear(&mut self, history: &History) {
        self.heard = self.seen.clone();
        let lists = history.lists.iter().filter_map(|list| match list.listed {
            Listed::Done { revision, .. } => Some((list.end, revision)),
            Listed::Gone | Listed::Failed => None,
        });
        let deliveries = history.streams.iter().flat_map(|stream| &stream.deliveries);
        let bookmarks = deliveries.filter_map(|(at, delivery)| match delivery {
            Delivery::Bookmark(revision) | Delivery::InitialEnd(revision) => Some((*at, *revision)),
            _ => None,
        });
        for (at, revision) in lists.chain(bookmarks) {
            let heard = self.heard.entry(revision).or_insert(at);
            *heard = at.min(*heard);
        }
    }

    fn take(&mut self, at: Moment, revision: u64, change: Change, violations: &mut Vec<Violation>) {
        let seen = self.seen.entry(revision).or_insert(at);
        *seen = at.min(*seen);
        let known = self.changes.entry((revision, change.key)).or_insert(change);
        if *known != change {
            let text = format!("revision {revision} is {known:?}, and then {change:?}");
            return violations.push(Violation::new("one change per revision", text));
        }
        let Some(id) = change.id else { return };
        let first = self.revisions.entry(id).or_insert(revision);
        if *first != revision {
            let text = format!("what one write put, {id}, is at revision {first} and at {revision}");
            violations.push(Violation::new("a write happens once", text));
        }
    }

    /// Only objects that end by themselves change together.
    fn check_shared_revisions(&self, history: &History, violations: &mut Vec<Violation>) {
        let mut last: Option<(u64, Change)> = None;
        for ((revision, _), change) in &self.changes {
            let shared = last.filter(|(before, _)| before == revision);
            let together = |other: Change| history.lifetime.is_some() && change.id.is_none() && other.id.is_none();
            if let Some((_, other)) = shared.filter(|(_, other)| !together(*other)) {
                let text = format!("revision {revision} is {other:?}, and {change:?}");
                violations.push(Violation::new("one change per revision", text));
            }
            last = Some((*revision, *change));
        }
    }

    /// Every content must come from a write of its key that had begun, and that was not told to have failed.
    fn check_origins(&self, history: &History, violations: &mut Vec<Violation>) {
        let mut writers = HashMap::new();
        for operation in &history.operations {
            if let Some(id) = operation.action.puts() {
                writers.insert(id, operation);
            }
        }
        let before: HashSet<Id> = history.before.iter().filter_map(|(_, _, id)| *id).collect();
        for ((revision, _), change) in &self.changes {
            let Some(id) = change.id.filter(|id| !before.contains(id)) else {
                continue;
            };
            let wrong = match writers.get(&id) {
                None => "which nobody wrote",
                Some(writer) if writer.key != change.key => "which was written to another key",
                Some(writer) if self.seen.get(revision).is_some_and(|seen| *seen < writer.begin) => {
                    "before it was written"
                }
                Some(writer) => match writer.outcome {
                    Outcome::Done(_) | Outcome::Unknown => continue,
                    _ => "whose write was refused",
                },
            };
            let text = format!("revision {revision}, key {}: {id}, {wrong}", change.key);
            violations.push(Violation::new("nothing is invented", text));
        }
    }

    /// What the key holds at a revision.
    pub fn at(&self, key: Key, revision: u64) -> Option<Version> {
        let changes = self.by_key.get(&key)?;
        let count = changes.partition_point(|(changed, _)| *changed <= revision);
        let (revision, id) = *changes.get(count.checked_sub(1)?)?;
        id.map(|id| Version { revision, id })
    }

    /// All that a filter selects at a revision, in the order of keys.
    pub fn state(&self, filter: &Filter, revision: u64) -> Vec<(Key, Version)> {
        let held = self
            .by_key
            .keys()
            .filter_map(|key| Some((*key, self.at(*key, revision)?)));
        held.filter(|(key, held)| filter.selects(*key, held.id)).collect()
    }

    /// The state at a revision as far as somebody who was shown these items must have been shown it.
    pub fn state_shown(&self, filter: &Filter, revision: u64, items: &[(Key, Version)]) -> Vec<(Key, Version)> {
        let mut state = self.state(filter, revision);
        state.retain(|item| item.1.revision > self.fleeting || items.contains(item));
        state
    }

    /// Changes after a revision, up to and including another, in the order of revisions.
    pub fn between(&self, after: u64, until: u64) -> impl Iterator<Item = (u64, Change)> + '_ {
        let range = (after < until).then(|| self.changes.range((after + 1, 0)..=(until, Key::MAX)));
        let changes = range.into_iter().flatten();
        changes.map(|((revision, _), change)| (*revision, *change))
    }

    /// Whether a key is absent at some revision from `from` on.
    pub fn absent_since(&self, key: Key, from: u64) -> bool {
        let changes = self.by_key.get(&key).map_or(&[][..], Vec::as_slice);
        self.at(key, from).is_none() || changes.iter().any(|(changed, id)| *changed > from && id.is_none())
    }

    /// What a key held after each of its changes that came after a revision.
    pub fn contents(&self, key: Key, after: u64) -> Vec<Option<Id>> {
        let changes = self.by_key.get(&key).map_or(&[][..], Vec::as_slice);
        let later = changes.iter().filter(|(changed, _)| *changed > after);
        later.map(|(_, id)| *id).collect()
    }

    /// The revision that a write made, if anyone was told of it.
    pub fn revision_of(&self, id: Id) -> Option<u64> {
        self.revisions.get(&id).copied()
    }

    /// When somebody first knew that a later revision than this had come.
    pub fn first_heard_after(&self, revision: u64) -> Option<Moment> {
        self.heard.range(revision + 1..).map(|(_, heard)| *heard).min()
    }

    /// The newest change.
    pub fn last(&self) -> u64 {
        self.changes.keys().next_back().map_or(0, |(revision, _)| *revision)
    }

    /// Every change with when it was first known.
    pub fn seen(&self) -> impl Iterator<Item = (u64, Moment)> + '_ {
        self.seen.iter().map(|(revision, seen)| (*revision, *seen))
    }
}

/// All changes that clients were told of, and when.
fn told(history: &History) -> Vec<(Moment, u64, Change)> {
    let mut told = Vec::new();
    let mut put = |at, key, version: Version| {
        let change = Change {
            key,
            id: Some(version.id),
        };
        told.push((at, version.revision, change));
    };
    for operation in &history.operations {
        if let Outcome::Done(Some(version)) = operation.outcome {
            put(operation.end, operation.key, version);
        }
    }
    for list in &history.lists {
        if let Listed::Done { items, .. } = &list.listed {
            items.iter().for_each(|(key, version)| put(list.end, *key, *version));
        }
    }
    for stream in &history.streams {
        for (at, delivery) in &stream.deliveries {
            if let Delivery::Added(key, version) | Delivery::Modified(key, version) = delivery {
                put(*at, *key, *version);
            }
        }
    }
    // Where colors are selected, a deletion may be a change of color.
    for stream in history.streams.iter().filter(|stream| stream.filter.color.is_none()) {
        for (at, delivery) in &stream.deliveries {
            if let Delivery::Deleted(key, version) = delivery {
                told.push((*at, version.revision, Change { key: *key, id: None }));
            }
        }
    }
    told
}
