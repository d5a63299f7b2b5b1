//! The group coordination.k8s.io.

mod lease;
mod lease_candidate;

use keelson_server::registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    lease::register(code);
    lease_candidate::register(code);
}
