//! The world as it is: the system's clock and randomness behind the seams of the machinery.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use keelson_machinery::env::{Clock, Entropy};
use keelson_machinery::time::Time;
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

/// The system's wall clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_unix(i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos())
    }
}

thread_local! {
    static GENERATOR: RefCell<SmallRng> = RefCell::new(SmallRng::from_os_rng());
}

/// A generator per thread, seeded by the system.
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        GENERATOR.with_borrow_mut(|generator| generator.fill_bytes(bytes));
    }
}
