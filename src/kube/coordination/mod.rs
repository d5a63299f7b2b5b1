//! The group coordination.k8s.io.

mod lease;
mod lease_candidate;

use keelson_machinery::scheme::Scheme;
use keelson_registry::KindCode;

pub(crate) const GROUP: &str = "coordination.k8s.io";

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    lease::register(code);
    lease_candidate::register(code);
}

/// Whether one of these has the group.
pub fn is_among(schemes: &[&'static Scheme]) -> bool {
    let mut groups = schemes.iter().flat_map(|scheme| scheme.groups);
    groups.any(|group| group.name == GROUP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::{self, BuiltIn};

    #[test]
    fn leases_stand_alone() {
        let alone = builtin::scheme(&[BuiltIn::Leases]);
        let names: Vec<_> = alone.groups.iter().map(|group| group.name).collect();
        assert_eq!(names, [GROUP]);
        assert!(is_among(&[alone]) && !is_among(&[]));
    }
}
