//! A simulation of stores under one seed: servers, etcd, the network between them, clients and the clock run on one
//! thread, and the seed draws every interleaving of their steps.
//!
//! What is simulated: etcd ([`etcd::cluster`], behind the trait that the store asks it through), the network before it
//! ([`etcd::network`]), time (that of a tokio runtime that is paused), and which task goes on next ([`executor`]). All
//! else is the code that serves. What was written is known revision by revision ([`truth`]); every list, get, event,
//! bookmark and recollection is measured by it. When nothing goes wrong any more, everything is to be in order again
//! within a bounded time.
//!
//! A run that finds a violation prints its seed: `KEELSON_SEED=<seed> cargo test -p keelson-storage
//! simulation::tests::one -- --nocapture` repeats it and tells what happens.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a simulation is a test"
)]

pub mod actors;
pub mod etcd;
pub mod executor;
#[cfg(test)]
pub mod local;
pub mod plan;
pub mod random;
pub mod seeds;
pub mod servers;
pub mod shared_etcd;
#[cfg(test)]
mod tests;
pub mod truth;
pub mod world;

use self::world::Violation;

/// Promises that whole runs keep.
struct Promises {
    mute: &'static str,
    recovery: &'static str,
}

const PROMISES: Promises = Promises {
    mute: "a stream that is mute is replaced",
    recovery: "all is in order again soon",
};

/// What a run came to.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub violation: Option<Violation>,
    /// Of every step and its time.
    pub trace: u64,
    pub steps: u64,
    pub plan: String,
}
