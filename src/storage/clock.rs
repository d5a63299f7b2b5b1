//! Monotonic time for leases and history, as an argument so that tests can turn it forward.

use std::time::Duration;

use tokio::time::Instant;

/// Time since some fixed moment; never goes back.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Duration;
}

/// The machine's monotonic clock, or that of a runtime whose time is simulated.
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    pub fn new() -> Self {
        SystemClock { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }
}
