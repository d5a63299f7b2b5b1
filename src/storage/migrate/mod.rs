//! Carrying all keys from etcd, or from one of its snapshots, into an embedded store, and from there into etcd.
//!
//! Keys and values stay as they are, byte by byte, encrypted or not. Into the embedded store revisions come along, so
//! that objects keep their resource versions; etcd counts its own.

mod bolt;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(not(feature = "etcd"))]
#[path = "no_etcd.rs"]
mod etcd;
mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use crate::embedded::fill::Filling;
use crate::embedded::offline::{self, Report};
use crate::{Entry, EtcdConfig, LeaseId, Revision, StoreError};

/// What an import made and left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imported {
    /// What the store holds now.
    pub report: Report,
    /// Keys of leases that have expired, which are left out.
    pub expired: usize,
}

/// What an export wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exported {
    pub keys: usize,
    pub value_bytes: u64,
}

/// What to carry, and what to do with what is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Keys that begin so.
    pub prefix: String,
    /// A target that holds keys already is no mistake: an embedded store is replaced whole; in etcd, keys that are
    /// carried are overwritten, and others stay.
    pub overwrite: bool,
}

/// Is told how many keys have been carried so far.
pub type Progress<'a> = &'a mut dyn FnMut(usize);

/// Makes the store of a folder from what a live etcd holds at one revision.
pub async fn from_etcd(
    config: &EtcdConfig,
    dir: &Path,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Imported, StoreError> {
    let mut filling = Filler::begin(dir, options)?;
    let source = etcd::Source::connect(config).await?;
    let revision = source.read(options, &mut filling, progress).await?;
    filling.finish(revision)
}

/// Makes the store of a folder from a snapshot of etcd (`etcdctl snapshot save`).
pub fn from_snapshot(
    file: &Path,
    dir: &Path,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Imported, StoreError> {
    let mut filling = Filler::begin(dir, options)?;
    let revision = snapshot::read(file, options, &mut filling, progress)?;
    filling.finish(revision)
}

/// Puts everything that the store of a folder holds into etcd.
pub async fn to_etcd(
    dir: &Path,
    config: &EtcdConfig,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Exported, StoreError> {
    let contents = offline::read(dir)?;
    etcd::write(config, &contents, options, progress).await
}

/// A store that is being filled, and the leases that its keys have.
struct Filler {
    filling: Filling,
    leases: HashMap<LeaseId, Duration>,
    expired: usize,
    keys: usize,
}

impl Filler {
    fn begin(dir: &Path, options: &Options) -> Result<Filler, StoreError> {
        Ok(Filler {
            filling: Filling::begin(dir, options.overwrite)?,
            leases: HashMap::new(),
            expired: 0,
            keys: 0,
        })
    }

    /// Adds entries; the times of their leases are known.
    fn add(&mut self, mut entries: Vec<Entry>) -> Result<(), StoreError> {
        let before = entries.len();
        let lasts = |id| self.leases.get(&id).is_some_and(|left| !left.is_zero());
        entries.retain(|entry| entry.lease.is_none_or(lasts));
        self.expired += before - entries.len();
        self.keys += entries.len();
        self.filling.add(entries)
    }

    fn finish(self, revision: Revision) -> Result<Imported, StoreError> {
        let mut leases: Vec<(LeaseId, Duration)> = self.leases.into_iter().collect();
        leases.retain(|(_, left)| !left.is_zero());
        Ok(Imported {
            report: self.filling.finish(revision, &leases)?,
            expired: self.expired,
        })
    }
}
