//! Storage: an ordered map from keys to bytes with one global revision, as etcd has it.
//!
//! [`Store`] is the whole contract; [`memory`], [`embedded`] (one folder on disk) and [`etcd`] implement it, and one
//! test suite runs against all three. This crate knows nothing of kinds: values are opaque.

#![cfg_attr(
    not(all(feature = "etcd", feature = "kms")),
    allow(
        dead_code,
        reason = "some of the tables and of encryption is for mirrors of etcd and for services alone"
    )
)]

pub mod clock;
mod config;
pub mod embedded;
pub mod encryption;
mod entry;
#[cfg(feature = "etcd")]
pub mod etcd;
mod etcd_config;
mod lease_pool;
mod limits;
mod maintenance;
pub mod memory;
pub mod migrate;
mod mvcc;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
pub mod store;
mod timeline;

pub use clock::{Clock, SystemClock};
pub use config::{StoreConfig, open};
pub use entry::{Entry, Version};
pub use etcd_config::EtcdConfig;
pub use limits::HistoryLimits;
pub use mvcc::Snapshot;
pub use store::*;
pub use timeline::{Epoch, Position, Timeline};

/// Whether the store in etcd is built in (feature `etcd`).
pub const HAS_ETCD: bool = cfg!(feature = "etcd");
/// Whether key management services can be called (feature `kms`).
pub const HAS_KMS: bool = cfg!(feature = "kms");

#[cfg(test)]
mod tests;
