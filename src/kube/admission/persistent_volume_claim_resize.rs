//! PersistentVolumeClaimResize: only a bound claim grows, and only where its class lets volumes grow.

use keelson_api::core::v1::PersistentVolumeClaim;
use keelson_api::storage_k8s_io::v1::StorageClass;
use keelson_machinery::quantity::Quantity;
use keelson_machinery::status::StatusError;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};

use super::default_storage_class::OLD_CLASS;
use super::lookup;

const CLASSES: (&str, &str) = ("storage.k8s.io", "storageclasses");

pub struct PersistentVolumeClaimResize;

impl Plugin for PersistentVolumeClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let update = scope.operation == Operation::Update;
        Handles::VALIDATES.when(update && scope.is("", "persistentvolumeclaims"))
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[CLASSES]
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        match (attributes.typed(), attributes.old_typed()) {
            (Some(new), Some(old)) if size(new) > size(old) => later(check(attributes, new, old)),
            _ => now(Ok(())),
        }
    }
}

fn size(claim: &PersistentVolumeClaim) -> Quantity {
    let requests = &claim.spec.resources.requests;
    requests.get("storage").cloned().unwrap_or_default()
}

fn class(claim: &PersistentVolumeClaim) -> &str {
    let old = claim.metadata.annotations.get(OLD_CLASS);
    old.or(claim.spec.storage_class_name.as_ref())
        .map_or("", String::as_str)
}

async fn check(
    attributes: &Attributes<'_>,
    new: &PersistentVolumeClaim,
    old: &PersistentVolumeClaim,
) -> Result<(), StatusError> {
    if old.status.phase != "Bound" {
        return Err(attributes.forbidden("Only bound persistent volume claims can be expanded"));
    }
    if class(new) == class(old) && !class(new).is_empty() {
        let found = lookup::find::<StorageClass>(attributes, CLASSES, "", class(new)).await;
        if found.is_ok_and(|found| found.is_some_and(|class| class.allow_volume_expansion == Some(true))) {
            return Ok(());
        }
    }
    Err(attributes.forbidden(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn the_annotation_names_the_class_before_the_field() {
        for (claim, expected) in [
            ("{}", ""),
            (r#"{"spec":{"storageClassName":"a"}}"#, "a"),
            (
                r#"{"metadata":{"annotations":{"volume.beta.kubernetes.io/storage-class":"b"}},"spec":{"storageClassName":"a"}}"#,
                "b",
            ),
        ] {
            assert_eq!(class(&read(claim)), expected, "{claim}");
        }
    }

    #[test]
    fn sizes_compare_as_numbers() {
        let claim = |size: &str| -> PersistentVolumeClaim {
            read(&format!(
                r#"{{"spec":{{"resources":{{"requests":{{"storage":"{size}"}}}}}}}}"#
            ))
        };
        assert!(size(&claim("1Gi")) > size(&claim("1G")) && size(&claim("1")) > size(&read("{}")));
        assert!(size(&claim("1024Mi")) == size(&claim("1Gi")));
    }
}
