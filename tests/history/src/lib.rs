//! Checks what clients of a server saw: every read, write and watch of a run, with the moments at which it began and
//! ended.
//!
//! The promises: operations on a key are linearizable; revisions rise in the order of real time, whichever server
//! answers and however often it was restarted; a list shows exactly the state at its revision; a watch delivers every
//! change after its start, once, in order, with the right type; a bookmark comes after everything up to its revision;
//! history is gone only where it may be; lists by selector leave out, and do nothing else; what a watcher makes of its
//! events is what a list shows; upserts never collide; a deletion that was answered ends; when a store is put back to
//! an earlier state, nothing of the later one is taken for the one that is left. Nothing here does I/O: a history is
//! data, and so are its violations.

mod borders;
mod deletions;
mod linear;
mod lists;
mod recency;
mod record;
mod timeline;
mod upserts;
mod views;
mod watches;

#[cfg(test)]
mod tests;

pub use borders::LATEST;
pub use deletions::{Act, Grace, Life, State, Step, check as check_deletions};
pub use record::{
    Action, Ask, Border, Delivery, Filter, History, Id, Key, List, Listed, Moment, Operation, Outcome, Start,
};
pub use record::{COLORS, Stream, Version, color_of};
pub use timeline::Timeline;

/// A promise that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which promise, in a word or two.
    pub rule: &'static str,
    /// What was seen, and when.
    pub text: String,
}

/// The rule that could not be checked: what is named so is no violation, but no proof either.
pub const UNDECIDED: &str = "linearizability is decided";

impl Violation {
    /// Whether a promise was broken, as far as could be decided.
    pub fn is_broken(&self) -> bool {
        self.rule != UNDECIDED
    }

    pub(crate) fn new(rule: &'static str, text: impl Into<String>) -> Self {
        Violation {
            rule,
            text: text.into(),
        }
    }
}

/// Everything that is wrong with a history; empty: nothing.
///
/// Of objects that end by themselves only watches tell when they ended: without a watch that was followed from the
/// first to the last nothing is known of them.
pub fn check(history: &History) -> Vec<Violation> {
    let mut violations = Vec::new();
    if history.lifetime.is_some() && !history.complete {
        return violations;
    }
    if history.borders.is_empty() {
        check_timeline(history, &mut violations);
        return violations;
    }
    for timeline in borders::timelines(history, &mut violations) {
        check_timeline(&timeline, &mut violations);
    }
    violations
}

fn check_timeline(history: &History, violations: &mut Vec<Violation>) {
    let timeline = Timeline::of(history, violations);
    linear::check(history, &timeline, violations);
    upserts::check(history, violations);
    recency::check(history, &timeline, violations);
    lists::check(history, &timeline, violations);
    watches::check(history, &timeline, violations);
    views::check(history, violations);
}
