//! Depth of unions within unions: every level is read by a reader of its own, so none of them knows.

use std::cell::Cell;

use crate::reflect::LeafResult;

/// Levels of unions within unions that are read.
const MAX_NESTING: u32 = 100;

thread_local! {
    static LEVEL: Cell<u32> = const { Cell::new(0) };
    static READING: Cell<Reading> = const { Cell::new(Reading::Any) };
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

/// How unions are read that another one is a part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Nothing is known of it.
    Any,
    /// Before its end is known.
    Ahead,
    /// It was read before its end was known, in vain.
    InVain,
    /// Once more, between its ends.
    Again,
}

/// A union is read whose end is not known yet.
pub(super) struct Ahead;

/// Who reads a union ahead.
pub(super) enum Attempt {
    /// The first of those that are parts of each other.
    Outermost(Ahead),
    /// It is a part of what is read ahead.
    Part,
    /// Nobody: it is a part of what is read again. Each level would be read twice for every level above.
    Nobody,
}

impl Ahead {
    pub(super) fn enter() -> Attempt {
        READING.with(|reading| match reading.get() {
            Reading::Any => {
                reading.set(Reading::Ahead);
                Attempt::Outermost(Ahead)
            }
            Reading::Ahead => Attempt::Part,
            Reading::InVain | Reading::Again => Attempt::Nobody,
        })
    }

    /// It failed: who reads it again says what is wrong.
    pub(super) fn fail(self) {
        drop(self);
        READING.with(|reading| reading.set(Reading::InVain));
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        READING.with(|reading| reading.set(Reading::Any));
    }
}

/// A union is read that was read ahead in vain.
pub(super) struct Again;

impl Again {
    /// `None`: it was not, or is a part of such a one.
    pub(super) fn enter() -> Option<Again> {
        READING.with(|reading| {
            (reading.get() == Reading::InVain).then(|| {
                reading.set(Reading::Again);
                Again
            })
        })
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        READING.with(|reading| reading.set(Reading::Any));
    }
}
