//! Limits of the history that stores keep.

use std::time::Duration;

/// How much history a store keeps for watches and for lists at an old revision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistoryLimits {
    /// Changes stay at least so long, and at most twice as long; `None`: no limit by age.
    pub age: Option<Duration>,
    /// History over this many bytes of keys and values is cut to half of it, however young.
    pub bytes: usize,
}

impl Default for HistoryLimits {
    /// Five minutes, as kube-apiserver compacts etcd, and 256 MiB.
    fn default() -> Self {
        HistoryLimits {
            age: Some(Duration::from_secs(300)),
            bytes: 256 << 20,
        }
    }
}
