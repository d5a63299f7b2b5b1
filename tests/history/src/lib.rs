//! Checks what clients of a server saw: every read, write and watch of a run, with the moments at which it began and
//! ended.
//!
//! The promises: operations on a key are linearizable; revisions rise in the order of real time, whichever server
//! answers and however often it was restarted; a list shows exactly the state at its revision; a watch delivers every
//! change after its start, once, in order, with the right type; a bookmark comes after everything up to its revision;
//! history is gone only where it may be. Nothing here does I/O: a history is data, and so are its violations.

mod linear;
mod lists;
mod recency;
mod record;
mod timeline;
mod watches;

#[cfg(test)]
mod tests;

pub use record::{Action, Ask, Delivery, Filter, History, Id, Key, List, Listed, Moment, Operation, Outcome, Start};
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

impl Violation {
    pub(crate) fn new(rule: &'static str, text: impl Into<String>) -> Self {
        Violation {
            rule,
            text: text.into(),
        }
    }
}

/// Everything that is wrong with a history; empty: nothing.
pub fn check(history: &History) -> Vec<Violation> {
    let mut violations = Vec::new();
    let timeline = Timeline::of(history, &mut violations);
    linear::check(history, &timeline, &mut violations);
    recency::check(history, &timeline, &mut violations);
    lists::check(history, &timeline, &mut violations);
    watches::check(history, &timeline, &mut violations);
    violations
}
