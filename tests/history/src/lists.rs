//! A list shows the state at its revision, whole; and history is gone only where it may be.

use crate::record::{Ask, Filter, History, Key, Listed, Moment, Version};
use crate::{Timeline, Violation};

pub(crate) fn check(history: &History, timeline: &Timeline, violations: &mut Vec<Violation>) {
    for list in &history.lists {
        match (&list.listed, list.ask) {
            (Listed::Done { revision, items }, _) => {
                if let Some(text) = wrong(timeline, list.filter, *revision, items) {
                    let (client, server, end) = (list.client, list.server, list.end);
                    let text = format!("client {client} of server {server} at {end}, revision {revision}: {text}");
                    violations.push(Violation::new("a list is the state at its revision", text));
                }
            }
            (Listed::Gone, Ask::Exactly(revision)) => {
                if !may_be_gone(history, timeline, revision.saturating_sub(1), list.end) {
                    let text = format!("a list at revision {revision}, at {}", list.end);
                    violations.push(Violation::new("410 only for compacted history", text));
                }
            }
            // A revision of another timeline may be ahead of this one.
            (Listed::Gone, Ask::AtLeast(revision)) if revision <= history.floor => {}
            (Listed::Gone, ask) => {
                let text = format!("a list of {ask:?}, at {}", list.end);
                violations.push(Violation::new("410 only for compacted history", text));
            }
            (Listed::Failed, _) => {}
        }
    }
}

/// What is wrong with a list; `None`: it is the state at its revision.
pub(crate) fn wrong(timeline: &Timeline, filter: Filter, revision: u64, items: &[(Key, Version)]) -> Option<String> {
    let mut items = items.to_vec();
    items.sort_unstable_by_key(|(key, _)| *key);
    difference(&items, &timeline.state_shown(&filter, revision, &items))
}

/// What a list shows too much or too little; `None`: nothing.
pub(crate) fn difference(items: &[(Key, Version)], expected: &[(Key, Version)]) -> Option<String> {
    let missing = expected.iter().find(|item| !items.contains(item));
    let more = items.iter().find(|item| !expected.contains(item));
    match (missing, more) {
        (None, None) if items.len() == expected.len() => None,
        (None, None) => Some("something is listed twice".to_owned()),
        (missing, more) => Some(format!("{missing:?} is missing, {more:?} is too much")),
    }
}

/// How long a fault of etcd or of the way there lasts at most, the stream that it broke is replaced, and what it had
/// not told is in doubt: microseconds.
const DOUBT: Moment = 45_000_000;

/// Whether changes after a revision may have been forgotten by a moment.
pub(crate) fn may_be_gone(history: &History, timeline: &Timeline, after: u64, at: Moment) -> bool {
    let asked = history
        .compactions
        .iter()
        .any(|(begun, revision)| *begun <= at && after + 1 < *revision);
    let heard = timeline.first_heard_after(after);
    let aged = history
        .retention
        .is_some_and(|retention| heard.is_some_and(|heard| heard + retention <= at));
    let unsettled = history
        .settled
        .is_some_and(|settled| at <= settled || heard.is_some_and(|heard| heard <= settled));
    // What was heard of before a doubt ended may be gone for whoever comes back to it later.
    let doubted = history.doubts.iter().any(|from| {
        let end = *from + DOUBT;
        *from <= at && (at < end || heard.is_some_and(|heard| heard < end))
    });
    doubted || asked || aged || unsettled || after < history.floor || history.until.is_some_and(|until| until <= at)
}
