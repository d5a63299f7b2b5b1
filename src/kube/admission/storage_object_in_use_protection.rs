//! StorageObjectInUseProtection: what may be in use gets a finalizer, which a controller takes away when it is not.

use keelson_machinery::object::Object;
use keelson_server::registry::{KindCode, Mutation};

pub fn register(code: &mut KindCode) {
    let mut add = |group, plural, mutate| code.mutation(group, plural, Mutation { updates: false, mutate });
    add("", "persistentvolumeclaims", |o| {
        protect(o, "kubernetes.io/pvc-protection")
    });
    add("", "persistentvolumes", |o| protect(o, "kubernetes.io/pv-protection"));
    add("storage.k8s.io", "volumeattributesclasses", |o| {
        protect(o, "kubernetes.io/vac-protection");
    });
}

fn protect(object: &mut dyn Object, finalizer: &str) {
    let finalizers = &mut object.meta_mut().finalizers;
    if !finalizers.iter().any(|f| f == finalizer) {
        finalizers.push(finalizer.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::core::v1::PersistentVolume;

    #[test]
    fn a_finalizer_is_added_once() {
        let mut volume = PersistentVolume::default();
        volume.metadata.finalizers = vec!["example.com/own".to_owned()];
        for _ in 0..2 {
            protect(&mut volume, "kubernetes.io/pv-protection");
            assert_eq!(
                volume.metadata.finalizers,
                ["example.com/own", "kubernetes.io/pv-protection"]
            );
        }
    }
}
