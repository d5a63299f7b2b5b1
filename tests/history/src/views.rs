//! Views of watchers: what they make of their events is what a list shows, nothing that it does not have, and nothing
//! less. Unlike the other rules this one needs no order of all changes: it compares what clients were told, and so
//! notices too what all watchers were told wrongly.

use std::collections::BTreeMap;

use crate::Violation;
use crate::lists::difference;
use crate::record::{Delivery, Filter, History, Key, List, Listed, Start, Stream, Version};

type View = BTreeMap<Key, Version>;

pub(crate) fn check(history: &History, violations: &mut Vec<Violation>) {
    let lists = by_revision(history);
    selections(&lists, violations);
    for stream in &history.streams {
        if let Some(text) = Follower::new(stream, &lists).run() {
            violations.push(Violation::new("a watcher's view is a list", text));
        }
    }
}

type Lists<'a> = BTreeMap<u64, Vec<(&'a List, &'a [(Key, Version)])>>;

fn by_revision(history: &History) -> Lists<'_> {
    let mut lists = Lists::new();
    for list in &history.lists {
        if let Listed::Done { revision, items } = &list.listed {
            lists.entry(*revision).or_default().push((list, items));
        }
    }
    lists
}

/// A list by a selector is the list without it at the same revision, as far as it is selected.
fn selections(lists: &Lists<'_>, violations: &mut Vec<Violation>) {
    for (revision, lists) in lists {
        let whole = lists.iter().find(|(list, _)| list.filter == Filter::default());
        let Some((whole, all)) = whole else { continue };
        for (list, items) in lists {
            let mut items = items.to_vec();
            items.sort_unstable_by_key(|(key, _)| *key);
            if let Some(text) = difference(&items, &selected(&list.filter, all)) {
                let text = format!(
                    "revision {revision}, {:?} by client {} of server {} at {}, against the list of client {} at {}: {text}",
                    list.filter, list.client, list.server, list.end, whole.client, whole.end
                );
                violations.push(Violation::new("selectors only leave out", text));
            }
        }
    }
}

fn selected(filter: &Filter, items: &[(Key, Version)]) -> Vec<(Key, Version)> {
    let selected = items.iter().filter(|(key, version)| filter.selects(*key, version.id));
    let mut selected: Vec<_> = selected.copied().collect();
    selected.sort_unstable_by_key(|(key, _)| *key);
    selected
}

/// Follows a watch as its client does.
struct Follower<'a> {
    stream: &'a Stream,
    lists: &'a Lists<'a>,
    /// What the client holds; `None`: it is not known where it began.
    view: Option<View>,
    reached: u64,
}

impl<'a> Follower<'a> {
    fn new(stream: &'a Stream, lists: &'a Lists<'a>) -> Self {
        let (view, reached) = match stream.start {
            Start::State => (Some(View::new()), 0),
            Start::After(revision) => (None, revision),
        };
        Follower {
            stream,
            lists,
            view,
            reached,
        }
    }

    /// What is wrong with the view; `None`: nothing.
    fn run(mut self) -> Option<String> {
        let initial = self.stream.start == Start::State;
        let mut begun = !initial;
        for (_, delivery) in &self.stream.deliveries {
            let (revision, change) = match *delivery {
                Delivery::Added(key, version) | Delivery::Modified(key, version) => {
                    (version.revision, Some((key, Some(version))))
                }
                Delivery::Deleted(key, version) => (version.revision, Some((key, None))),
                Delivery::Bookmark(revision) | Delivery::InitialEnd(revision) => (revision, None),
                Delivery::Gone => return None,
            };
            // Initial objects come in the order of keys: what they make is whole at their end.
            if begun && revision > self.reached {
                if let Some(text) = self.compare(revision - 1) {
                    return Some(text);
                }
                self.reached = revision;
            }
            if let (Some(view), Some((key, version))) = (&mut self.view, change) {
                match version {
                    Some(version) => view.insert(key, version),
                    None => view.remove(&key),
                };
            }
            if matches!(delivery, Delivery::InitialEnd(_)) {
                (begun, self.reached) = (true, revision);
            }
        }
        let whole = self.stream.deliveries.last().map(|(_, delivery)| *delivery);
        // Of the last revision something may have been on its way.
        match whole {
            Some(Delivery::Bookmark(_) | Delivery::InitialEnd(_)) => self.compare(self.reached),
            _ => None,
        }
    }

    /// Compares with lists from what was reached up to a revision, between which nothing has happened for this watch.
    fn compare(&mut self, until: u64) -> Option<String> {
        let filter = self.stream.filter;
        for (revision, lists) in self.lists.range(self.reached..=until.max(self.reached)) {
            for (list, items) in lists {
                if list.filter != filter && list.filter != Filter::default() {
                    continue;
                }
                let listed = selected(&filter, items);
                let Some(view) = &self.view else {
                    self.view = Some(listed.into_iter().collect());
                    continue;
                };
                let view: Vec<_> = view.iter().map(|(key, version)| (*key, *version)).collect();
                if let Some(text) = difference(&view, &listed) {
                    let Stream {
                        client, server, begin, ..
                    } = self.stream;
                    return Some(format!(
                        "watch of {filter:?} by client {client} of server {server}, begun {begin}, against the list of \
                         client {} at {}, revision {revision}: {text}",
                        list.client, list.end
                    ));
                }
            }
        }
        None
    }
}
