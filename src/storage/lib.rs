//! Storage: an ordered map from keys to bytes with one global revision, as etcd has it.
//!
//! [`Store`] is the whole contract; [`memory`], [`embedded`] (one folder on disk) and [`etcd`] implement it, and one test
//! suite runs against all three. This crate knows nothing of kinds: values are opaque.

pub mod clock;
mod config;
pub mod embedded;
pub mod encryption;
mod entry;
pub mod etcd;
mod lease_pool;
mod maintenance;
pub mod memory;
pub mod migrate;
mod mvcc;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
mod snapshot;
pub mod store;
mod timeline;

pub use clock::{Clock, SystemClock};
pub use config::{EtcdConfig, HistoryLimits, StoreConfig, open};
pub use entry::{Entry, Version};
pub use snapshot::Snapshot;
pub use store::*;
pub use timeline::{Epoch, Position, Timeline};

#[cfg(test)]
mod tests;
