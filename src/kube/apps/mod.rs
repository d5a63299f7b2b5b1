//! The group apps.

pub mod controller_revision;
pub mod daemon_set;
pub mod deployment;
pub mod replica_set;
mod rollout;
pub mod stateful_set;
mod workload;
