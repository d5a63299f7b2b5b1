//! Revisions rise with real time: what begins after somebody knew of a revision sees that revision or a later one, on
//! whatever server, before or after a restart.

use crate::record::{Action, Ask, Delivery, History, Listed, Moment, Outcome, Start};
use crate::{Timeline, Violation};

/// What anybody knew of the newest revision, moment by moment.
struct Known {
    /// Rising in both.
    steps: Vec<(Moment, u64)>,
}

impl Known {
    fn of(history: &History, timeline: &Timeline) -> Known {
        let mut told: Vec<(Moment, u64)> = timeline.seen().map(|(revision, seen)| (seen, revision)).collect();
        for list in &history.lists {
            if let Listed::Done { revision, .. } = list.listed {
                told.push((list.end, revision));
            }
        }
        told.sort_unstable();
        let mut steps: Vec<(Moment, u64)> = Vec::new();
        for (at, revision) in told {
            if steps.last().is_none_or(|(_, last)| revision > *last) {
                steps.push((at, revision));
            }
        }
        Known { steps }
    }

    /// The newest revision that was known before this moment.
    fn before(&self, moment: Moment) -> u64 {
        let count = self.steps.partition_point(|(at, _)| *at < moment);
        count.checked_sub(1).map_or(0, |last| self.steps[last].1)
    }
}

pub(crate) fn check(history: &History, timeline: &Timeline, violations: &mut Vec<Violation>) {
    let known = Known::of(history, timeline);
    for operation in &history.operations {
        let floor = known.before(operation.begin);
        let wrong = match (operation.outcome, operation.action) {
            (Outcome::Done(Some(found)), Action::Read) => timeline
                .between(found.revision, floor)
                .any(|(_, change)| change.key == operation.key),
            (Outcome::Absent, Action::Read) => !timeline.absent_since(operation.key, floor),
            (Outcome::Done(Some(made)), _) => made.revision <= floor,
            _ => false,
        };
        if wrong {
            let text = format!("revision {floor} was known when this began: {operation:?}");
            violations.push(Violation::new("no time travel", text));
        }
    }
    for list in &history.lists {
        let Listed::Done { revision, .. } = list.listed else {
            continue;
        };
        let (floor, ask) = (known.before(list.begin), list.ask);
        let wrong = match ask {
            Ask::Newest => revision < floor,
            Ask::AtLeast(least) => revision < least,
            Ask::Exactly(exact) => revision != exact,
            Ask::Any => false,
        };
        if wrong {
            let (client, server, begin) = (list.client, list.server, list.begin);
            let text = format!(
                "revision {floor} was known when client {client} asked server {server} at {begin} for {ask:?}, which \
                 answered with {revision}"
            );
            violations.push(Violation::new("no time travel", text));
        }
    }
    for stream in history.streams.iter().filter(|stream| stream.start == Start::State) {
        let floor = known.before(stream.begin);
        let end = stream.deliveries.iter().find_map(|(_, delivery)| match delivery {
            Delivery::InitialEnd(revision) => Some(*revision),
            _ => None,
        });
        if let Some(revision) = end.filter(|revision| *revision < floor) {
            let (client, server, begin) = (stream.client, stream.server, stream.begin);
            let text = format!(
                "revision {floor} was known when client {client} began a watch of server {server} at {begin}, whose \
                 initial objects are those of {revision}"
            );
            violations.push(Violation::new("no time travel", text));
        }
    }
}
