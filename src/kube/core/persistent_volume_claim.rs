//! Claims of persistent volumes: the two forms of their data source say the same.

mod keep;

use keelson_api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, TypedLocalObjectReference, TypedObjectReference,
};
use keelson_machinery::field::{ErrorList, Path};
use keelson_registry::{Context, KindCode, Strategy};

use super::pod_spec;
use super::resource_list::round;
use crate::cells;

/// Named the class of a volume or claim before there was a field for it.
pub const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const SNAPSHOT_GROUP: &str = "snapshot.storage.k8s.io";

/// Registers the rules of claims of volumes.
pub fn register(code: &mut KindCode) {
    code.kind::<PersistentVolumeClaim>()
        .strategy(PersistentVolumeClaimStrategy)
        .defaults(defaults)
        .cells(cells::storage::PERSISTENT_VOLUME_CLAIM);
}

/// The rules of claims.
struct PersistentVolumeClaimStrategy;

impl Strategy for PersistentVolumeClaimStrategy {
    type Object = PersistentVolumeClaim;

    fn warnings(&self, new: &PersistentVolumeClaim, _old: Option<&PersistentVolumeClaim>) -> Vec<String> {
        warnings_of(new, &Path::root())
    }

    fn prepare_for_create(&self, _context: &Context, o: &mut PersistentVolumeClaim) {
        if !o.spec.data_source.as_deref().is_some_and(is_volume_or_snapshot) {
            o.spec.data_source = None;
        }
        drop_other_namespace(&mut o.spec);
        join_data_sources(&mut o.spec);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut PersistentVolumeClaim, old: &PersistentVolumeClaim) {
        if old.spec.data_source.is_none() && !new.spec.data_source.as_deref().is_some_and(is_volume_or_snapshot) {
            new.spec.data_source = None;
        }
        if old.spec.data_source_ref.as_ref().is_none_or(|r| r.namespace.is_none()) {
            drop_other_namespace(&mut new.spec);
        }
        join_data_sources(&mut new.spec);
    }

    fn validate_update(
        &self,
        _context: &Context,
        new: &PersistentVolumeClaim,
        old: &PersistentVolumeClaim,
    ) -> ErrorList {
        keep::faults(new, old)
    }
}

/// Warnings of a claim, also of one that stands in a template.
pub fn warnings_of(claim: &PersistentVolumeClaim, path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    if claim.metadata.annotations.contains_key(CLASS_ANNOTATION) {
        let path = path.child("metadata").child("annotations").key(CLASS_ANNOTATION);
        found.push(format!(
            "{path}: deprecated since v1.8; use \"storageClassName\" attribute instead"
        ));
    }
    let requests = path.child("spec").child("resources").child("requests");
    found.extend(pod_spec::warnings::of_bytes(
        &claim.spec.resources.requests,
        &["storage"],
        &requests,
    ));
    found
}

/// The older of the two fields knows only these; anything else is dropped from it.
fn is_volume_or_snapshot(source: &TypedLocalObjectReference) -> bool {
    let group = source.api_group.as_deref().unwrap_or_default();
    matches!(
        (group, source.kind.as_str()),
        ("", "PersistentVolumeClaim") | (SNAPSHOT_GROUP, "VolumeSnapshot")
    )
}

/// A source in another namespace is part of a feature that is switched off.
fn drop_other_namespace(spec: &mut PersistentVolumeClaimSpec) {
    if spec
        .data_source_ref
        .as_ref()
        .is_some_and(|r| r.namespace.as_ref().is_some_and(|n| !n.is_empty()))
    {
        spec.data_source_ref = None;
    }
}

fn join_data_sources(spec: &mut PersistentVolumeClaimSpec) {
    match (&spec.data_source, &spec.data_source_ref) {
        (Some(source), None) => {
            spec.data_source_ref = Some(Box::new(TypedObjectReference {
                api_group: source.api_group.clone(),
                kind: source.kind.clone(),
                name: source.name.clone(),
                namespace: None,
            }));
        }
        (None, Some(source)) if source.namespace.as_ref().is_none_or(String::is_empty) => {
            spec.data_source = Some(Box::new(TypedLocalObjectReference {
                api_group: source.api_group.clone(),
                kind: source.kind.clone(),
                name: source.name.clone(),
            }));
        }
        _ => {}
    }
}

/// Defaults in code of claims.
fn defaults(o: &mut PersistentVolumeClaim) {
    of_claim(o);
}

/// Amounts of a claim, also of one that stands in a template.
pub fn of_claim(o: &mut PersistentVolumeClaim) {
    round(&mut o.spec.resources.limits);
    round(&mut o.spec.resources.requests);
    round(&mut o.status.capacity);
    round(&mut o.status.allocated_resources);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, read, text};

    #[test]
    fn data_sources_say_the_same() {
        let made = |spec: &str| {
            let mut o: PersistentVolumeClaim = read(&format!(r#"{{"spec":{spec}}}"#));
            PersistentVolumeClaimStrategy.prepare_for_create(&context(), &mut o);
            let source = o.spec.data_source.map(|s| text(&*s));
            (source, o.spec.data_source_ref.map(|s| text(&*s)))
        };
        let claim = r#"{"apiGroup":null,"kind":"PersistentVolumeClaim","name":"x"}"#.to_owned();
        let other = r#"{"apiGroup":"my.org","kind":"Other","name":"x"}"#.to_owned();
        assert_eq!(
            made(r#"{"dataSource":{"kind":"PersistentVolumeClaim","name":"x"}}"#),
            (Some(claim.clone()), Some(claim))
        );
        assert_eq!(made(&format!(r#"{{"dataSource":{other}}}"#)), (None, None));
        assert_eq!(
            made(&format!(r#"{{"dataSourceRef":{other}}}"#)),
            (Some(other.clone()), Some(other))
        );
        assert_eq!(
            made(r#"{"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"x","namespace":"n"}}"#),
            (None, None)
        );
    }
}
