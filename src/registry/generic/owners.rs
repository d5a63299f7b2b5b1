//! Owners of objects: one that stands twice counts once.

use keelson_machinery::equality;
use keelson_machinery::meta::v1::OwnerReference;
use keelson_machinery::object::Object;

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
    let (mut kept, mut repeated): (Vec<OwnerReference>, Vec<String>) = (Vec::new(), Vec::new());
    for owner in owners.drain(..) {
        match kept.iter().any(|k| equality::equal(k, &owner)) {
            true => repeated.push(owner.uid),
            false => kept.push(owner),
        }
    }
    *owners = kept;
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
