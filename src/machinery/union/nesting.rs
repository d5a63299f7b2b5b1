//! Depth of unions within unions: every level is read by a reader of its own, so none of them knows.

use std::cell::Cell;

use crate::reflect::LeafResult;

/// Levels of unions within unions that are read.
const MAX_NESTING: u32 = 100;

thread_local! {
    static LEVEL: Cell<u32> = const { Cell::new(0) };
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
