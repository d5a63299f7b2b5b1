//! Built-in kinds for servers of other kinds: groups of them that stand by themselves, each with its rules and with
//! what it needs at the start.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use keelson_machinery::scheme::{GroupDesc, KindDesc, Scheme, VersionDesc};
use keelson_registry::KindCode;
use keelson_server::server::Hook;

use crate::core::namespace_finalizer::NamespaceFinalizer;
use crate::{CodeOptions, SCHEME, authentication, authorization, bootstrap, coordination, core, metadata, rbac};

/// Kinds that belong together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum BuiltIn {
    /// Namespaces, with those that every cluster has.
    Namespaces,
    /// Roles and their bindings, with the default ones.
    Rbac,
    /// What clients ask of themselves and others: who somebody is, and what they may do.
    Reviews,
    /// Leases, by which controllers elect a leader.
    Leases,
    /// Events, in both of their groups.
    Events,
    /// CustomResourceDefinitions.
    CustomResources,
}

impl BuiltIn {
    fn has(self, kind: &KindDesc) -> bool {
        let (group, plural) = (kind.group.as_str(), kind.plural.as_str());
        match self {
            BuiltIn::Namespaces => (group, plural) == ("", "namespaces"),
            BuiltIn::Rbac => group == "rbac.authorization.k8s.io",
            BuiltIn::Reviews => matches!(group, "authentication.k8s.io" | "authorization.k8s.io"),
            BuiltIn::Leases => group == coordination::GROUP,
            BuiltIn::Events => plural == "events",
            BuiltIn::CustomResources => group == "apiextensions.k8s.io",
        }
    }

    fn register(self, code: &mut KindCode, options: &CodeOptions) {
        match self {
            BuiltIn::Namespaces => core::namespace::register(code),
            BuiltIn::Rbac => rbac::register(code),
            BuiltIn::Reviews => {
                authentication::register(code);
                authorization::register(code);
            }
            BuiltIn::Leases => coordination::register(code),
            BuiltIn::Events => core::event::register(code, options.event_time_to_live),
            // Their code is that of the API extensions server.
            BuiltIn::CustomResources => {}
        }
    }
}

/// The kinds of these groups alone. It is made once for each choice.
pub fn scheme(chosen: &[BuiltIn]) -> &'static Scheme {
    static MADE: Mutex<BTreeMap<Vec<BuiltIn>, &'static Scheme>> = Mutex::new(BTreeMap::new());
    let mut key = chosen.to_vec();
    key.sort();
    key.dedup();
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = made.entry(key);
    known.or_insert_with_key(|chosen| Box::leak(Box::new(make(chosen))))
}

fn make(chosen: &[BuiltIn]) -> Scheme {
    let group = |group: &GroupDesc| {
        let versions: Vec<VersionDesc> = group.versions.iter().filter_map(|one| version(one, chosen)).collect();
        let desc = GroupDesc {
            versions: versions.leak(),
            ..*group
        };
        (!desc.versions.is_empty()).then_some(desc)
    };
    let groups: Vec<GroupDesc> = SCHEME.groups.iter().filter_map(group).collect();
    Scheme {
        groups: groups.leak(),
        types: &[],
        definitions: SCHEME.definitions,
        name_description: SCHEME.name_description,
        creation_description: SCHEME.creation_description,
    }
}

fn version(version: &VersionDesc, chosen: &[BuiltIn]) -> Option<VersionDesc> {
    let is_chosen = |kind: &&KindDesc| chosen.iter().any(|group| group.has(kind));
    let kinds: Vec<KindDesc> = version.kinds.iter().filter(is_chosen).cloned().collect();
    (!kinds.is_empty()).then(|| VersionDesc {
        kinds: kinds.leak(),
        ..*version
    })
}

/// The code of these groups.
pub fn code(chosen: &[BuiltIn], options: &CodeOptions) -> KindCode {
    let mut code = KindCode::default();
    code.usual_metadata_checks(scheme(chosen), metadata::USUAL);
    for group in chosen {
        group.register(&mut code, options);
    }
    code
}

/// What is made when the server starts.
pub fn hooks(chosen: &[BuiltIn]) -> Vec<Hook> {
    let mut hooks = Vec::new();
    if chosen.contains(&BuiltIn::Namespaces) {
        hooks.push(bootstrap::namespaces());
        hooks.push(Hook::controller(NamespaceFinalizer));
    }
    hooks.extend(chosen.contains(&BuiltIn::Rbac).then(bootstrap::default_roles));
    hooks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(chosen: &[BuiltIn]) -> Vec<String> {
        let kinds = scheme(chosen).groups.iter().flat_map(|group| group.versions);
        let kinds = kinds
            .filter(|version| version.enabled)
            .flat_map(|version| version.kinds);
        kinds
            .map(|kind| format!("{}/{} {}", kind.group, kind.version, kind.plural))
            .collect()
    }

    #[test]
    fn groups_have_their_kinds_alone() {
        assert_eq!(resources(&[]), [""; 0]);
        assert_eq!(resources(&[BuiltIn::Namespaces]), ["/v1 namespaces"]);
        assert_eq!(resources(&[BuiltIn::Events]), ["/v1 events", "events.k8s.io/v1 events"]);
        let reviews = resources(&[BuiltIn::Reviews]);
        assert!(
            reviews.contains(&"authorization.k8s.io/v1 selfsubjectaccessreviews".to_owned()),
            "{reviews:?}"
        );
        assert!(
            reviews.contains(&"authentication.k8s.io/v1 selfsubjectreviews".to_owned()),
            "{reviews:?}"
        );
        let both = resources(&[BuiltIn::Leases, BuiltIn::Rbac, BuiltIn::Leases]);
        let groups = ["coordination.k8s.io/", "rbac.authorization.k8s.io/"];
        assert!(
            both.iter().all(|one| groups.iter().any(|group| one.starts_with(group))),
            "{both:?}"
        );
        assert!(std::ptr::eq(
            scheme(&[BuiltIn::Leases, BuiltIn::Rbac]),
            scheme(&[BuiltIn::Rbac, BuiltIn::Leases])
        ));
    }
}
