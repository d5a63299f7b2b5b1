//! Random numbers that a seed decides (SplitMix64).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Clones go on with the same numbers.
#[derive(Clone)]
pub struct Dice(Arc<Mutex<u64>>);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(Arc::new(Mutex::new(seed)))
    }

    pub fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 up to and without `bound`, which is not 0.
    pub fn below(&self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// From `least` up to and with `most`.
    pub fn between(&self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// True so many times in a thousand.
    pub fn chance(&self, per_mille: usize) -> bool {
        self.below(1000) < per_mille
    }

    /// One of these, of which there is at least one.
    pub fn pick<'a, T>(&self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// From nothing up to so many milliseconds.
    pub fn millis(&self, most: usize) -> Duration {
        Duration::from_millis(self.below(most + 1) as u64)
    }
}
