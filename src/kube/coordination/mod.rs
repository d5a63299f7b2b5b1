//! The group coordination.k8s.io.

mod lease;
mod lease_candidate;

use std::sync::LazyLock;

use keelson_machinery::scheme::Scheme;
use keelson_registry::KindCode;

const GROUP: &str = "coordination.k8s.io";

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    lease::register(code);
    lease_candidate::register(code);
}

/// The kinds of this group alone, for servers of other kinds that elect a leader among them.
pub fn scheme() -> &'static Scheme {
    static ALONE: LazyLock<Scheme> = LazyLock::new(|| {
        let all = &keelson_api::SCHEME;
        let own = all.groups.iter().position(|group| group.name == GROUP);
        Scheme {
            groups: own.and_then(|place| all.groups.get(place..=place)).unwrap_or_default(),
            types: &[],
            definitions: all.definitions,
            name_description: all.name_description,
            creation_description: all.creation_description,
        }
    });
    &ALONE
}

/// Whether one of these has the group.
pub fn is_among(schemes: &[&'static Scheme]) -> bool {
    let mut groups = schemes.iter().flat_map(|scheme| scheme.groups);
    groups.any(|group| group.name == GROUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_stand_alone() {
        let names: Vec<_> = scheme().groups.iter().map(|group| group.name).collect();
        assert_eq!(names, [GROUP]);
        assert!(is_among(&[scheme()]) && !is_among(&[]));
    }
}
