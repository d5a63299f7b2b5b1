//! Timelines of a store that was put back to an earlier state: each is a history of its own, which begins with what
//! both have in common. What comes from the earlier one, a position of a watch above all, ends with 410: it is not
//! waited for in silence, nor taken for a position in the later one.

use std::collections::HashSet;

use crate::record::{Action, Border, Delivery, History, Id, List, Listed, Moment, Operation, Outcome, Start, Stream};
use crate::{Timeline, Violation, lists, watches};

/// A watch of the earlier timeline may take so long to end, and one that is begun at a position of it to say 410.
pub const LATEST: Moment = 20_000_000;

const GONE: &str = "what comes from another timeline is 410";
const MIXED: &str = "a watch tells of one timeline";

/// One history for each timeline.
pub(crate) fn timelines(history: &History, violations: &mut Vec<Violation>) -> Vec<History> {
    let mut parts: Vec<History> = Vec::new();
    for index in 0..=history.borders.len() {
        let before = index.checked_sub(1).map(|before| history.borders[before]);
        let after = history.borders.get(index).copied();
        let mut part = History {
            lifetime: history.lifetime,
            retention: history.retention,
            untracked: history.untracked,
            complete: history.complete,
            compactions: history.compactions.clone(),
            doubts: history.doubts.clone(),
            ..History::default()
        };
        if let (Some(border), Some(earlier)) = (before, parts.last()) {
            begin(&mut part, border, earlier);
        }
        fill(&mut part, history, before, after, violations);
        parts.push(part);
    }
    between(history, &parts, violations);
    parts
}

/// What both timelines have in common.
fn begin(part: &mut History, border: Border, earlier: &History) {
    // Its violations are those of the earlier one.
    let timeline = Timeline::of(earlier, &mut Vec::new());
    let common = timeline.between(0, border.common);
    part.before = common
        .map(|(revision, change)| (revision, change.key, change.id))
        .collect();
    part.settled = Some(border.up + LATEST);
    part.floor = newest(earlier).max(timeline.last()).max(border.common);
}

/// The newest revision that lists and watches told of.
fn newest(history: &History) -> u64 {
    let lists = history.lists.iter().map(|list| match list.listed {
        Listed::Done { revision, .. } => revision,
        Listed::Gone | Listed::Failed => 0,
    });
    lists.chain(history.streams.iter().map(reached)).max().unwrap_or(0)
}

/// What belongs to a timeline, which lies between two borders.
fn fill(
    part: &mut History,
    history: &History,
    before: Option<Border>,
    after: Option<Border>,
    violations: &mut Vec<Violation>,
) {
    let from = before.map_or(0, |border| border.up);
    let until = after.map_or(Moment::MAX, |border| border.down);
    part.until = after.map(|border| border.down);
    part.operations = history
        .operations
        .iter()
        .filter_map(|one| operation(one, from, until))
        .collect();
    let within = |list: &&List| list.begin >= from && list.end <= until;
    part.lists = history.lists.iter().filter(within).cloned().collect();
    let later = after.map_or_else(HashSet::new, |border| put_after(history, border));
    for stream in &history.streams {
        if !(from..=until).contains(&stream.begin) {
            continue;
        }
        if let Some(border) = before
            && is_foreign(stream, border)
        {
            // Later it can't be told from a position of this timeline.
            let judged = stream.begin < border.written;
            violations.extend(not_refused(stream, border).filter(|_| judged));
            continue;
        }
        let mut stream = stream.clone();
        if let Some(border) = after {
            violations.extend(crossing(&mut stream, &later, border));
        }
        part.streams.push(stream);
    }
}

/// What was written in later timelines alone.
fn put_after(history: &History, border: Border) -> HashSet<Id> {
    let written = history.operations.iter().filter(|one| one.begin > border.down);
    written.filter_map(|one| one.action.puts()).collect()
}

/// An operation as a timeline sees it. Who got no answer may have been heard in a later one.
fn operation(operation: &Operation, from: Moment, until: Moment) -> Option<Operation> {
    let (begun, ended) = (operation.begin >= from, operation.end <= until);
    if begun && ended {
        return Some(operation.clone());
    }
    let writes = operation.action != Action::Read && operation.outcome != Outcome::Refused;
    let unknown = operation.outcome == Outcome::Unknown || operation.end >= from;
    (writes && unknown && operation.begin <= until).then(|| Operation {
        outcome: Outcome::Unknown,
        ..operation.clone()
    })
}

/// Whether a watch begins at a position of the earlier timeline that the later one does not have.
fn is_foreign(stream: &Stream, border: Border) -> bool {
    matches!(stream.start, Start::After(revision) if stream.from < border.up && revision > border.common)
}

fn not_refused(stream: &Stream, border: Border) -> Option<Violation> {
    let first = stream.deliveries.first().map(|(_, delivery)| *delivery);
    let text = match first {
        Some(Delivery::Gone) => return None,
        Some(other) => format!("{other:?} was told"),
        None if stream.end <= stream.begin + LATEST => return None,
        None => format!("nothing was told until {}", stream.end),
    };
    let common = border.common;
    let text = format!("{}: common to both is {common} alone, {text}", named(stream));
    Some(Violation::new(GONE, text))
}

/// Cuts off what a watch of the earlier timeline tells of the later one, which it must not.
fn crossing(stream: &mut Stream, later: &HashSet<Id>, border: Border) -> Option<Violation> {
    let is_later = |delivery: &Delivery| {
        let (Delivery::Added(_, version) | Delivery::Modified(_, version) | Delivery::Deleted(_, version)) = delivery
        else {
            return false;
        };
        later.contains(&version.id)
    };
    let mixed = stream.deliveries.iter().position(|(_, delivery)| is_later(delivery));
    if let Some(mixed) = mixed {
        let text = format!("{}: {:?}", named(stream), stream.deliveries[mixed]);
        stream.deliveries.truncate(mixed);
        return Some(Violation::new(MIXED, text));
    }
    lasts(stream, border).then(|| too_long(stream, border))
}

/// Whether a watch that was open at a border goes on as if nothing had happened.
fn lasts(stream: &Stream, border: Border) -> bool {
    let ended = stream.end <= border.up + LATEST || stream.deliveries.iter().any(|(_, one)| *one == Delivery::Gone);
    !ended && reached(stream) > border.common
}

fn too_long(stream: &Stream, border: Border) -> Violation {
    let after = stream.end.saturating_sub(border.up);
    let text = format!("{}: it goes on {after} µs after the store was put back", named(stream));
    Violation::new(GONE, text)
}

/// The newest revision that a watch has told of.
fn reached(stream: &Stream) -> u64 {
    let start = match stream.start {
        Start::After(revision) => revision,
        Start::State => 0,
    };
    let told = stream.deliveries.iter().map(|(_, delivery)| match delivery {
        Delivery::Added(_, version) | Delivery::Modified(_, version) | Delivery::Deleted(_, version) => {
            version.revision
        }
        Delivery::Bookmark(revision) | Delivery::InitialEnd(revision) => *revision,
        Delivery::Gone => 0,
    });
    told.max().unwrap_or(0).max(start)
}

/// Lists and watches from about a border show one timeline or the other.
fn between(history: &History, parts: &[History], violations: &mut Vec<Violation>) {
    for (border, parts) in history.borders.iter().zip(parts.windows(2)) {
        let timelines: Vec<_> = parts.iter().map(|part| Timeline::of(part, &mut Vec::new())).collect();
        for list in &history.lists {
            let about = list.end > border.down && list.begin < border.up;
            let Listed::Done { revision, items } = &list.listed else {
                continue;
            };
            let fits = |timeline| lists::wrong(timeline, list.filter, *revision, items).is_none();
            if about && !timelines.iter().any(fits) {
                let text = format!(
                    "a list of client {} of server {} at {}",
                    list.client, list.server, list.end
                );
                violations.push(Violation::new("a list shows one timeline", text));
            }
        }
        for stream in &history.streams {
            let about = stream.begin > border.down && stream.begin < border.up;
            if about && lasts(stream, *border) {
                violations.push(too_long(stream, *border));
            }
            let fits = |(part, timeline)| watches::follow(stream, part, timeline).is_empty();
            if about && !parts.iter().zip(&timelines).any(fits) {
                violations.push(Violation::new(MIXED, named(stream)));
            }
        }
    }
}

fn named(stream: &Stream) -> String {
    format!(
        "watch {:?} of {:?} by client {} of server {}, begun {}",
        stream.start, stream.filter, stream.client, stream.server, stream.begin
    )
}
