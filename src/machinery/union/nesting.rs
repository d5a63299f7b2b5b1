//! Depth of unions within unions: every level is read by a reader of its own, so none of them knows.

use std::cell::Cell;

use crate::reflect::LeafResult;

/// Levels of unions within unions that are read.
const MAX_NESTING: u32 = 100;

thread_local! {
    static LEVEL: Cell<u32> = const { Cell::new(0) };
    static AHEAD: Cell<bool> = const { Cell::new(false) };
}

/// One level, as long as it lives.
pub(super) struct Nesting;

impl Nesting {
    pub(super) fn enter() -> LeafResult<Nesting> {
        LEVEL.with(|level| {
            if level.get() >= MAX_NESTING {
                return Err("exceeded max depth".to_owned());
            }
            level.set(level.get() + 1);
            Ok(Nesting)
        })
    }
}

impl Drop for Nesting {
    fn drop(&mut self) {
        LEVEL.with(|level| level.set(level.get() - 1));
    }
}

/// A union is read whose end is not known yet.
pub(super) struct Ahead;

impl Ahead {
    /// `None`: it is part of another such.
    pub(super) fn enter() -> Option<Ahead> {
        AHEAD.with(|ahead| (!ahead.replace(true)).then_some(Ahead))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        AHEAD.with(|ahead| ahead.set(false));
    }
}
