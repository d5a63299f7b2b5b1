//! Exponential back-off of a work queue.

use std::time::Duration;

/// How long a key that failed waits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Backoff {
    /// The wait after the first failure; each further failure doubles it.
    pub base: Duration,
    /// No wait is longer.
    pub cap: Duration,
    /// The part of a wait, from 0 to 1, that chance may take away, so that what failed together does not come back
    /// together.
    pub jitter: f64,
}

impl Default for Backoff {
    /// That of kube-apiserver's controllers, 5 ms up to 1 000 s, with a tenth left to chance.
    fn default() -> Backoff {
        Backoff {
            base: Duration::from_millis(5),
            cap: Duration::from_secs(1000),
            jitter: 0.1,
        }
    }
}

impl Backoff {
    /// The wait after the nth failure in a row, counted from 0; `chance` is from 0 to 1.
    pub fn wait(&self, failed: u32, chance: f64) -> Duration {
        let doubled = 2_u32
            .checked_pow(failed)
            .and_then(|factor| self.base.checked_mul(factor));
        let wait = doubled.map_or(self.cap, |wait| wait.min(self.cap));
        wait.mul_f64((1.0 - self.jitter * chance).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap() {
        let backoff = Backoff::default();
        for (failed, chance, millis) in [
            (0, 0.0, 5.0),
            (0, 1.0, 4.5),
            (1, 0.0, 10.0),
            (10, 0.0, 5120.0),
            (10, 0.5, 4864.0),
            (18, 0.0, 1_000_000.0),
            (18, 1.0, 900_000.0),
            (31, 0.0, 1_000_000.0),
            (u32::MAX, 0.0, 1_000_000.0),
        ] {
            let wait = backoff.wait(failed, chance).as_secs_f64() * 1000.0;
            assert!((wait - millis).abs() < 1e-6, "{failed} {chance}: {wait}");
        }
    }
}
