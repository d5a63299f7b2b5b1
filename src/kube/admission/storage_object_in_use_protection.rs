//! StorageObjectInUseProtection: what may be in use gets a finalizer, which a controller takes away when it is not.

use keelson_machinery::meta::v1::ObjectMeta;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;

/// Group, plural and finalizer of what may be in use.
const PROTECTED: [(&str, &str, &str); 3] = [
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    (
        "storage.k8s.io",
        "volumeattributesclasses",
        "kubernetes.io/vac-protection",
    ),
];

pub struct StorageObjectInUseProtection;

impl Plugin for StorageObjectInUseProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let protected = PROTECTED.iter().any(|(group, plural, _)| scope.is(group, plural));
        Handles::MUTATES.when(protected && scope.operation == Operation::Create)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        let (group, plural) = (attributes.resource.group.as_str(), attributes.resource.plural.as_str());
        let found = PROTECTED.iter().find(|(g, p, _)| (*g, *p) == (group, plural));
        if let (Some((_, _, finalizer)), Some(metadata)) = (found, attributes.metadata_mut()) {
            protect(metadata, finalizer);
        }
        now(Ok(()))
    }
}

fn protect(metadata: &mut ObjectMeta, finalizer: &str) {
    let finalizers = &mut metadata.finalizers;
    if !finalizers.iter().any(|f| f == finalizer) {
        finalizers.push(finalizer.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finalizer_is_added_once() {
        let mut metadata = ObjectMeta {
            finalizers: vec!["example.com/own".to_owned()],
            ..ObjectMeta::default()
        };
        for _ in 0..2 {
            protect(&mut metadata, "kubernetes.io/pv-protection");
            assert_eq!(metadata.finalizers, ["example.com/own", "kubernetes.io/pv-protection"]);
        }
    }
}
