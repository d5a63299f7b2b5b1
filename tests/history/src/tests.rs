//! Hand-made histories: a good one, and what each rule says of one thing changed in it.

mod ends;
mod timelines;
mod views;

use super::*;

const GREEN: u32 = 1;

fn version(revision: u64, id: Id) -> Version {
    Version { revision, id }
}

fn operation(begin: Moment, end: Moment, key: Key, action: Action, outcome: Outcome) -> Operation {
    Operation {
        client: 0,
        server: 0,
        key,
        action,
        begin,
        end,
        outcome,
    }
}

fn list(begin: Moment, ask: Ask, revision: u64, items: &[(Key, Version)]) -> List {
    List {
        client: 1,
        server: 1,
        filter: Filter::default(),
        ask,
        begin,
        end: begin + 1,
        listed: Listed::Done {
            revision,
            items: items.to_vec(),
        },
    }
}

fn stream(filter: Filter, start: Start, begin: Moment, deliveries: &[Delivery]) -> Stream {
    let moments = deliveries
        .iter()
        .enumerate()
        .map(|(n, delivery)| (begin + 1 + n as u64, *delivery));
    Stream {
        client: 2,
        server: 0,
        filter,
        start,
        from: begin,
        begin,
        end: begin + 1000,
        deliveries: moments.collect(),
    }
}

fn create(id: Id) -> Action {
    Action::Create(id)
}

fn update(id: Id, expected: u64) -> Action {
    Action::Update {
        id,
        expected: Some(expected),
    }
}

const fn done(revision: u64, id: Id) -> Outcome {
    Outcome::Done(Some(Version { revision, id }))
}

const DELETE: Action = Action::Delete { expected: None };

/// Key 0: made (10), changed (12), deleted (13), made again (15). Key 1: made (11), changed by a write that nobody saw
/// the answer of (14). Ids 1, 4 and 7 are green.
fn good() -> History {
    use Delivery::{Added, Bookmark, Deleted, InitialEnd, Modified};
    let operations = vec![
        operation(0, 10, 0, create(1), done(10, 1)),
        operation(12, 20, 1, create(2), done(11, 2)),
        operation(15, 25, 1, create(6), Outcome::Exists),
        operation(30, 40, 0, update(3, 10), done(12, 3)),
        operation(35, 60, 0, update(8, 10), Outcome::Conflict),
        operation(45, 46, 0, Action::Read, done(12, 3)),
        operation(50, 60, 0, DELETE, Outcome::Done(None)),
        operation(61, 62, 0, Action::Read, Outcome::Absent),
        operation(70, 80, 1, update(4, 11), Outcome::Unknown),
        operation(71, 81, 1, update(9, 11), Outcome::Unknown),
        operation(100, 110, 0, create(5), done(15, 5)),
        operation(200, 201, 1, Action::Read, done(14, 4)),
        operation(202, 203, 1, DELETE, Outcome::Refused),
    ];
    let lists = vec![
        list(41, Ask::Newest, 12, &[(0, version(12, 3)), (1, version(11, 2))]),
        list(63, Ask::Exactly(10), 10, &[(0, version(10, 1))]),
        list(63, Ask::Any, 13, &[(1, version(11, 2))]),
        list(120, Ask::AtLeast(15), 16, &[(0, version(15, 5)), (1, version(14, 4))]),
    ];
    let all = [
        Added(0, version(10, 1)),
        Added(1, version(11, 2)),
        Modified(0, version(12, 3)),
        Bookmark(12),
        Deleted(0, version(13, 3)),
        Modified(1, version(14, 4)),
        Added(0, version(15, 5)),
        Bookmark(16),
    ];
    let (green, first) = (
        Filter {
            color: Some(GREEN),
            ..Default::default()
        },
        Filter {
            key: Some(0),
            ..Default::default()
        },
    );
    let mut streams = vec![
        stream(Filter::default(), Start::After(0), 110, &all),
        stream(Filter::default(), Start::After(11), 150, &all[2..]),
        stream(
            green,
            Start::After(0),
            150,
            &[
                Added(0, version(10, 1)),
                Deleted(0, version(12, 1)),
                Added(1, version(14, 4)),
            ],
        ),
        stream(
            first,
            Start::State,
            65,
            &[InitialEnd(13), Added(0, version(15, 5)), Bookmark(15)],
        ),
        stream(
            Filter::default(),
            Start::State,
            160,
            &[
                Added(0, version(15, 5)),
                Added(1, version(14, 4)),
                InitialEnd(16),
                Bookmark(16),
            ],
        ),
    ];
    streams[3].deliveries[1].0 = 116;
    streams[3].deliveries[2].0 = 117;
    History {
        operations,
        lists,
        streams,
        complete: true,
        ..Default::default()
    }
}

/// The rules that a changed history breaks.
fn rules(change: impl FnOnce(&mut History)) -> Vec<&'static str> {
    rules_of(good(), change)
}

fn rules_of(mut history: History, change: impl FnOnce(&mut History)) -> Vec<&'static str> {
    change(&mut history);
    let mut rules: Vec<_> = check(&history).into_iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

#[track_caller]
fn breaks(rule: &str, change: impl FnOnce(&mut History)) {
    breaks_of(good(), rule, change);
}

#[track_caller]
fn breaks_of(history: History, rule: &str, change: impl FnOnce(&mut History)) {
    let rules = rules_of(history, change);
    assert!(rules.contains(&rule), "{rule}: {rules:?}");
}

#[test]
fn a_good_history_has_no_violations() {
    assert_eq!(check(&good()), []);
    assert_eq!(check(&History::default()), []);
}

#[test]
fn lost_and_invented_writes() {
    // an answered write that no later read sees
    breaks("linearizable", |h| {
        h.operations[11].outcome = done(11, 2);
        h.operations.push(operation(150, 151, 1, update(7, 11), done(16, 7)));
        h.streams[0].deliveries.truncate(5);
    });
    breaks("nothing is invented", |h| h.operations[11].outcome = done(14, 77));
    breaks("nothing is invented", |h| h.operations[8].key = 0);
    breaks("nothing is invented", |h| h.operations[8].outcome = Outcome::Conflict);
    breaks("nothing is invented", |h| h.operations[8].begin = 5000);
    breaks("a write happens once", |h| {
        let again = Delivery::Modified(1, version(17, 4));
        h.streams[0].deliveries.push((300, again));
    });
    breaks("one change per revision", |h| h.operations[5].outcome = done(12, 2));
}

#[test]
fn compare_and_swap() {
    // two updates of the same version
    breaks("linearizable", |h| h.operations[4].outcome = done(16, 8));
    // a conflict although nobody else wrote
    breaks("linearizable", |h| h.operations[3].outcome = Outcome::Conflict);
    breaks("linearizable", |h| {
        h.operations[2] = operation(0, 5, 1, create(6), Outcome::Exists);
    });
    // a deletion that was answered and has not happened
    breaks("linearizable", |h| {
        h.operations.push(operation(210, 220, 1, DELETE, Outcome::Done(None)));
        h.operations.push(operation(230, 231, 1, Action::Read, done(14, 4)));
    });
    breaks("linearizable", |h| h.operations[7].outcome = done(12, 3));
}

/// A write without an answer may happen at any later moment, once, or never.
#[test]
fn unknown_outcomes() {
    let incomplete = |outcome, begin| {
        rules(|h| {
            h.operations[8].begin = begin;
            h.operations[9].outcome = outcome;
            h.complete = false;
        })
    };
    assert_eq!(incomplete(Outcome::Unknown, 70), [""; 0]);
    assert_eq!(incomplete(Outcome::Refused, 70), [""; 0]);
    // it is seen at 118, and has to have begun by then
    assert_eq!(incomplete(Outcome::Unknown, 115), [""; 0]);
    assert_eq!(incomplete(Outcome::Unknown, 125), ["nothing is invented"]);
}

#[test]
fn time_travel() {
    // read back into the past, and a list that is older than what was known
    breaks("no time travel", |h| {
        h.operations.push(operation(90, 91, 0, Action::Read, done(12, 3)));
    });
    breaks("no time travel", |h| {
        h.operations.push(operation(190, 191, 0, Action::Read, Outcome::Absent));
    });
    breaks("no time travel", |h| {
        h.lists[0] = list(41, Ask::Newest, 11, &[(0, version(10, 1)), (1, version(11, 2))]);
    });
    breaks("no time travel", |h| {
        h.lists[3] = list(120, Ask::AtLeast(15), 14, &[(1, version(14, 4))]);
    });
    breaks("no time travel", |h| h.lists[1].ask = Ask::Exactly(9));
    breaks("no time travel", |h| h.operations[10].begin = 1000);
    breaks("no time travel", |h| {
        let old = [Delivery::Added(1, version(14, 4)), Delivery::InitialEnd(14)];
        h.streams[4] = stream(Filter::default(), Start::State, 160, &old);
    });
}

#[test]
fn lists() {
    let rule = "a list is the state at its revision";
    breaks(rule, |h| h.lists[0] = list(41, Ask::Newest, 12, &[(1, version(11, 2))]));
    breaks(rule, |h| h.lists[2] = list(63, Ask::Any, 12, &[(1, version(11, 2))]));
    breaks(rule, |h| {
        h.lists[1] = list(63, Ask::Exactly(10), 10, &[(0, version(10, 1)), (0, version(10, 1))]);
    });
    breaks(rule, |h| h.lists[0].filter.color = Some(2));
    let rule = "410 only for compacted history";
    breaks(rule, |h| h.lists[1].listed = Listed::Gone);
    breaks(rule, |h| {
        h.lists[1].listed = Listed::Gone;
        h.compactions = vec![(64, 10)];
    });
    breaks(rule, |h| h.lists[0].listed = Listed::Gone);
    let compacted = rules(|h| {
        h.lists[1].listed = Listed::Gone;
        h.compactions = vec![(64, 11)];
    });
    assert_eq!(compacted, [""; 0]);
    let aged = |retention| {
        rules(|h| {
            h.lists[1].listed = Listed::Gone;
            h.retention = Some(retention);
        })
    };
    assert_eq!(aged(40), [""; 0]);
    assert_eq!(aged(60), [rule]);
}

#[test]
fn watches() {
    let rule = "watches are complete";
    for lost in 0..5 {
        breaks(rule, |h| {
            h.streams[1].deliveries = h.streams[0].deliveries.clone();
            h.streams[1].start = Start::After(0);
            h.streams[1]
                .deliveries
                .retain(|(_, d)| !matches!(d, Delivery::Bookmark(_)));
            h.streams[1].deliveries.remove(lost);
        });
    }
    breaks(rule, |h| h.streams[2].deliveries.retain(|(at, _)| *at != 152));
    let rule = "watches are ordered and tell once";
    breaks(rule, |h| h.streams[0].deliveries.swap(0, 1));
    breaks(rule, |h| {
        let again = h.streams[1].deliveries[0];
        h.streams[1].deliveries.insert(1, again);
    });
    breaks(rule, |h| h.streams[1].start = Start::After(12));
    let rule = "events are what happened";
    breaks(rule, |h| {
        h.streams[0].deliveries[2].1 = Delivery::Added(0, version(12, 3))
    });
    breaks(rule, |h| {
        h.streams[0].deliveries[4].1 = Delivery::Deleted(0, version(13, 1))
    });
    breaks(rule, |h| {
        h.streams[2].deliveries[1].1 = Delivery::Modified(0, version(12, 3))
    });
    breaks("410 only for compacted history", |h| {
        h.streams[1].deliveries = vec![(150, Delivery::Gone)];
    });
    let compacted = rules(|h| {
        h.streams[1].deliveries = vec![(150, Delivery::Gone)];
        h.compactions = vec![(140, 13)];
    });
    assert_eq!(compacted, [""; 0]);
}

#[test]
fn bookmarks() {
    let rule = "bookmarks are true";
    breaks(rule, |h| h.streams[0].deliveries[3].1 = Delivery::Bookmark(13));
    breaks(rule, |h| h.streams[0].deliveries[7].1 = Delivery::Bookmark(14));
    breaks(rule, |h| h.streams[3].deliveries[2].1 = Delivery::InitialEnd(15));
    let rule = "initial objects are the state";
    breaks(rule, |h| h.streams[4].deliveries.retain(|(at, _)| *at != 161));
    breaks(rule, |h| h.streams[4].deliveries[2].1 = Delivery::InitialEnd(13));
    breaks(rule, |h| {
        h.streams[4].deliveries[1].1 = Delivery::Added(0, version(15, 5))
    });
    breaks(rule, |h| h.streams[3].deliveries[0].1 = Delivery::Bookmark(13));
}
