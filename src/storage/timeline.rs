//! Timelines: which history a revision belongs to. A revision of one says nothing about another: etcd that was put back
//! to an older state, a folder that was restored or memory that was forgotten gives the same revisions to other states.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Revision;

/// A timeline of what a store holds in memory. Each one that begins in a process gets a number which no other had, and
/// later ones larger numbers. The default is none's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Epoch(pub u64);

impl Epoch {
    pub(crate) fn next() -> Epoch {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Epoch(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// A point of a timeline.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Position {
    pub epoch: Epoch,
    pub revision: Revision,
}

/// Names a store's timeline in what clients bring back, to any server that has this store, after restarts too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Timeline {
    /// The same wherever and whenever the store is open, and another for a store that was restored or made anew.
    pub store: u64,
    /// What only the process knows that gave it; 0: nothing. It changes when the process finds that the store has gone
    /// back. A process that does not know the number can't say anything by it.
    pub turn: u64,
}

impl Timeline {
    /// The timeline of a store that knows when it begins anew.
    pub fn of(store: u64) -> Timeline {
        Timeline { store, turn: 0 }
    }
}

/// A number that nobody guesses or meets again, and not 0.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_rise() {
        let first = Epoch::next();
        assert!(first > Epoch::default());
        assert!(Epoch::next() > first);
        assert_ne!(random(), random());
    }
}
