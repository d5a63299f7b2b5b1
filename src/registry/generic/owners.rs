//! Owners of objects: one that stands twice counts once.

use keelson_machinery::meta::v1::OwnerReference;
use keelson_machinery::object::Object;
use std::collections::HashSet;

use super::Warnings;

/// When an object's owners are looked at, which its warning says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OwnersRead {
    /// As the client sent them.
    Sent,
    /// As they are about to be stored.
    Admitted,
}

/// An owner that stands twice counts once; the client is told.
pub fn drop_repeated_owners(warnings: &Warnings, object: &mut dyn Object, when: OwnersRead) {
    let owners = &mut object.meta_mut().owner_references;
    if owners.len() < 2 {
        return;
    }
    let repeated = repeated(owners);
    if !repeated.is_empty() {
        warnings.borrow_mut().push(format!(
            ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            match when {
                OwnersRead::Sent => "",
                OwnersRead::Admitted => " after mutating admission happens",
            },
            repeated.join(", ")
        ));
    }
}

/// Takes those out that stand before already; their uids. One look at each: clients send many.
fn repeated(owners: &mut Vec<OwnerReference>) -> Vec<String> {
    let mut seen = HashSet::with_capacity(owners.len());
    let is_first: Vec<bool> = owners.iter().map(|owner| seen.insert(fields(owner))).collect();
    let mut is_first = is_first.into_iter();
    let repeated = owners.extract_if(.., |_| is_first.next() == Some(false));
    repeated.map(|owner| owner.uid).collect()
}

/// All that an owner says.
fn fields(owner: &OwnerReference) -> ([&str; 4], [Option<bool>; 2]) {
    let OwnerReference {
        api_version,
        kind,
        name,
        uid,
        controller,
        block_owner_deletion,
    } = owner;
    ([api_version, kind, name, uid], [*controller, *block_owner_deletion])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_owners_stays() {
        let owner = |name: &str, controller| OwnerReference {
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            controller,
            ..OwnerReference::default()
        };
        let mut owners = vec![
            owner("a", None),
            owner("b", None),
            owner("a", None),
            owner("a", Some(true)),
            owner("b", None),
        ];
        assert_eq!(repeated(&mut owners), ["uid-a", "uid-b"]);
        let kept: Vec<_> = owners
            .iter()
            .map(|owner| (owner.name.as_str(), owner.controller))
            .collect();
        assert_eq!(kept, [("a", None), ("b", None), ("a", Some(true))]);
    }
}
