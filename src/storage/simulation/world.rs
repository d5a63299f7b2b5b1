//! The world of one run: the dice, the clock, and the first violation that any part of it found.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::executor::Spawner;
use super::random::Dice;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which promise, in a few words that are always the same.
    pub promise: &'static str,
    pub what: String,
    /// Since the beginning of the run.
    pub at: Duration,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (after {:?}): {}", self.promise, self.at, self.what)
    }
}

/// See the module's description.
pub struct World {
    pub dice: Dice,
    pub spawner: Spawner,
    start: Instant,
    /// Clients go on until then.
    busy: AtomicBool,
    first: Mutex<Option<Violation>>,
    failed: watch::Sender<bool>,
    talks: bool,
}

impl World {
    /// One that `talks` tells what happens.
    pub fn new(dice: Dice, spawner: Spawner, talks: bool) -> Arc<World> {
        Arc::new(World {
            dice,
            spawner,
            start: Instant::now(),
            busy: AtomicBool::new(true),
            first: Mutex::default(),
            failed: watch::Sender::new(false),
            talks,
        })
    }

    pub fn fail(&self, promise: &'static str, what: impl Into<String>) {
        let violation = Violation {
            promise,
            what: what.into(),
            at: self.start.elapsed(),
        };
        self.say(|| format!("VIOLATION {violation}"));
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(violation);
        drop(first);
        self.failed.send_replace(true);
    }

    pub fn violation(&self) -> Option<Violation> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns when a promise was broken.
    pub async fn failed(&self) {
        let mut failed = self.failed.subscribe();
        let _ = failed.wait_for(|failed| *failed).await;
    }

    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    pub fn rest(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// A pause between two requests of a client: mostly none or a short one, now and then seconds.
    pub async fn pause(&self) {
        let time = match self.dice.below(10) {
            0..=4 => Duration::ZERO,
            5..=7 => self.dice.millis(60),
            8 => self.dice.millis(900),
            _ => self.dice.millis(4000),
        };
        sleep(time).await;
    }

    pub fn say(&self, what: impl FnOnce() -> String) {
        if self.talks {
            println!("{:>10.3} {}", self.start.elapsed().as_secs_f64(), what());
        }
    }
}
