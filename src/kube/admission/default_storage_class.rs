//! DefaultStorageClass: a claim that names no class gets the one that is marked as the default.

use std::sync::Arc;

use keelson_access::lister::Listers;
use keelson_api::core::v1::PersistentVolumeClaim;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;
use keelson_registry::{Followed, Outcome, Verbs};

use super::default_class::{Marked, newest};

const MARKS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// Names the class of a claim as the field does.
pub const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub struct DefaultStorageClass {
    classes: Followed<Marked>,
}

impl Default for DefaultStorageClass {
    fn default() -> Self {
        DefaultStorageClass {
            classes: Followed::new(|object| Marked::of(object, &MARKS)),
        }
    }
}

impl Plugin for DefaultStorageClass {
    fn name(&self) -> &'static str {
        "DefaultStorageClass"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let creation = scope.operation == Operation::Create;
        Handles::MUTATES.when(creation && scope.is("", "persistentvolumeclaims"))
    }

    fn attach(&self, listers: &dyn Listers, _verbs: &Arc<Verbs>) {
        self.classes.attach(listers, "storage.k8s.io", "storageclasses");
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        if let Some(claim) = attributes.typed_mut::<PersistentVolumeClaim>()
            && claim.spec.storage_class_name.is_none()
            && !claim.metadata.annotations.contains_key(OLD_CLASS)
        {
            claim.spec.storage_class_name = newest(&self.classes);
        }
        now(Ok(()))
    }
}
