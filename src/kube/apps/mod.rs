//! The group apps.

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
pub mod rollout;
mod stateful_set;
mod workload;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    controller_revision::register(code);
    daemon_set::register(code);
    deployment::register(code);
    replica_set::register(code);
    stateful_set::register(code);
}
