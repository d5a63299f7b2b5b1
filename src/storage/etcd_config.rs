//! The configuration of a store in etcd.

use std::path::PathBuf;
use std::time::Duration;

/// How to reach etcd.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct EtcdConfig {
    /// `http://host:port` or `https://host:port`, one per member.
    pub endpoints: Vec<String>,
    /// PEM file of the authorities that sign etcd's certificates. https needs it: the system's are not asked.
    pub ca: Option<PathBuf>,
    /// PEM file of the client certificate; with `key`.
    pub cert: Option<PathBuf>,
    /// PEM file of the client certificate's key; with `cert`.
    pub key: Option<PathBuf>,
    /// How often history is compacted, in turn with the other servers of the same etcd; `None`: never.
    pub compaction_interval: Option<Duration>,
}
