//! A watch delivers every change that concerns it after its start: once, in order, as what it is for this watch.

use std::collections::{BTreeMap, BTreeSet};

use crate::lists::{difference, may_be_gone};
use crate::record::{Delivery, History, Key, Moment, Start, Stream, Version};
use crate::timeline::Change;
use crate::{Timeline, Violation};

pub(crate) fn check(history: &History, timeline: &Timeline, violations: &mut Vec<Violation>) {
    for stream in &history.streams {
        // What follows from a first violation says nothing new.
        violations.extend(follow(stream, history, timeline).into_iter().take(3));
    }
}

/// What is wrong with a watch.
pub(crate) fn follow(stream: &Stream, history: &History, timeline: &Timeline) -> Vec<Violation> {
    let mut walk = Walk {
        stream,
        timeline,
        reached: 0,
        partly: None,
        violations: Vec::new(),
    };
    walk.run(history);
    walk.violations
}

struct Walk<'a> {
    stream: &'a Stream,
    timeline: &'a Timeline,
    /// Everything up to here has been delivered, …
    reached: u64,
    /// … but of this revision, the next one that has changes, only those of some keys.
    partly: Option<(u64, BTreeSet<Key>)>,
    violations: Vec<Violation>,
}

impl Walk<'_> {
    fn run(&mut self, history: &History) {
        let deliveries = &self.stream.deliveries;
        let rest = match self.stream.start {
            Start::After(revision) => {
                self.reached = revision;
                &deliveries[..]
            }
            Start::State => match self.initial(history, deliveries) {
                Some(rest) => rest,
                None => return,
            },
        };
        for (at, delivery) in rest {
            match *delivery {
                Delivery::Gone => {
                    if !may_be_gone(history, self.timeline, self.reached, *at) {
                        self.found("410 only for compacted history", *at, "410 without a reason");
                    }
                }
                Delivery::Bookmark(revision) => self.bookmark(*at, revision),
                Delivery::InitialEnd(_) => self.found("bookmarks are true", *at, "an end of initial objects, again"),
                event => self.event(*at, event),
            }
        }
    }

    /// Checks the objects before the first bookmark. `None`: the stream ended before it.
    fn initial<'s>(
        &mut self,
        history: &History,
        deliveries: &'s [(Moment, Delivery)],
    ) -> Option<&'s [(Moment, Delivery)]> {
        let mut items: BTreeMap<Key, Version> = BTreeMap::new();
        for (index, (at, delivery)) in deliveries.iter().enumerate() {
            match *delivery {
                Delivery::Added(key, version) => {
                    if items.insert(key, version).is_some() {
                        self.found("initial objects are the state", *at, format!("key {key} twice"));
                    }
                }
                Delivery::InitialEnd(revision) => {
                    let items: Vec<_> = items.into_iter().collect();
                    let expected = self.timeline.state_shown(&self.stream.filter, revision, &items);
                    if let Some(text) = difference(&items, &expected) {
                        let text = format!("at revision {revision}: {text}");
                        self.found("initial objects are the state", *at, text);
                    }
                    self.reached = revision;
                    return deliveries.get(index + 1..);
                }
                Delivery::Gone if may_be_gone(history, self.timeline, 0, *at) => return None,
                other => {
                    let text = format!("{other:?} before their end");
                    self.found("initial objects are the state", *at, text);
                    return None;
                }
            }
        }
        None
    }

    fn bookmark(&mut self, at: Moment, revision: u64) {
        let last = self.partly.as_ref().map_or(self.reached, |(revision, _)| *revision);
        if revision < last {
            let text = format!("{revision} after {last}");
            return self.found("bookmarks are true", at, text);
        }
        self.nothing_before(at, revision + 1, "bookmarks are true");
        self.reached = revision;
        self.partly = None;
    }

    fn event(&mut self, at: Moment, event: Delivery) {
        let (Delivery::Added(key, version) | Delivery::Modified(key, version) | Delivery::Deleted(key, version)) =
            event
        else {
            return;
        };
        let revision = version.revision;
        let mut told = BTreeSet::new();
        match self.partly.take() {
            Some((same, keys)) if same == revision => told = keys,
            partly => {
                self.partly = partly;
                self.nothing_before(at, revision, "watches are complete");
                self.reached = self
                    .partly
                    .take()
                    .map_or(self.reached, |(before, _)| before.max(self.reached));
            }
        }
        if revision <= self.reached || !told.insert(key) {
            let text = format!("{event:?} after revision {}", self.reached.max(revision));
            return self.found("watches are ordered and tell once", at, text);
        }
        self.reached = revision - 1;
        self.partly = Some((revision, told));
        let expected = self
            .timeline
            .between(revision - 1, revision)
            .filter(|(_, change)| change.key == key)
            .find_map(|(revision, change)| self.expected(revision, change));
        if expected != Some(event) {
            let text = format!("{event:?} instead of {expected:?}");
            self.found("events are what happened", at, text);
        }
    }

    /// Nothing that concerns the watch lies between what it was told last and this revision.
    fn nothing_before(&mut self, at: Moment, revision: u64, rule: &'static str) {
        let untold = |(at, change): &(u64, Change)| {
            let partly = self.partly.as_ref().filter(|(revision, _)| revision == at);
            partly.is_none_or(|(_, told)| !told.contains(&change.key))
        };
        let missed = self
            .timeline
            .between(self.reached, revision - 1)
            .filter(untold)
            .find_map(|(revision, change)| self.expected(revision, change));
        if let Some(missed) = missed {
            self.found(rule, at, format!("at {revision}, without {missed:?}"));
        }
    }

    /// How a change shows in this watch.
    fn expected(&self, revision: u64, change: Change) -> Option<Delivery> {
        let key = change.key;
        let selected = |version: &Version| self.stream.filter.selects(key, version.id);
        let before = self.timeline.at(key, revision - 1).filter(selected);
        let after = change.id.map(|id| Version { revision, id }).filter(selected);
        match (before, after) {
            (None, Some(after)) => Some(Delivery::Added(key, after)),
            (Some(_), Some(after)) => Some(Delivery::Modified(key, after)),
            (Some(Version { id, .. }), None) => Some(Delivery::Deleted(key, Version { revision, id })),
            (None, None) => None,
        }
    }

    fn found(&mut self, rule: &'static str, at: Moment, text: impl Into<String>) {
        let Stream {
            client,
            server,
            filter,
            start,
            begin,
            ..
        } = self.stream;
        let text = format!(
            "{} (at {at}, watch {start:?} of {filter:?} by client {client} of server {server}, begun {begin})",
            text.into()
        );
        self.violations.push(Violation::new(rule, text));
    }
}
