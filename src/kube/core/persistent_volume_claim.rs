//! Claims of persistent volumes: the two forms of their data source say the same.

mod keep;
mod spec;

pub use spec::{ClaimOptions, above_zero, access_modes, basic_amount, check_spec, volume_mode};

use keelson_api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeClaimStatus, TypedLocalObjectReference,
    TypedObjectReference,
};
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::validation::labels;
use keelson_registry::{Context, KindCode, Strategy};

use super::pod_spec;
use super::resource_list::round;
use super::resource_name::is_native;
use crate::cells;
use crate::faults::{self, Faults};

/// Named the class of a volume or claim before there was a field for it.
pub const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
/// How far a change of a volume's size has come, sorted.
const RESIZES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];
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
        warnings_of(new)
    }

    fn prepare_for_create(&self, _context: &Context, o: &mut PersistentVolumeClaim) {
        prepare_sources(&mut o.spec, None);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut PersistentVolumeClaim, old: &PersistentVolumeClaim) {
        prepare_sources(&mut new.spec, Some(&old.spec));
    }

    fn validate(
        &self,
        _context: &Context,
        new: &PersistentVolumeClaim,
        old: Option<&PersistentVolumeClaim>,
    ) -> ErrorList {
        faults::of_object(|f| {
            let options = old.map_or_else(Default::default, |old| ClaimOptions::of(&old.spec));
            check_spec(&mut f.at("spec"), &new.spec, &options);
            if let Some(old) = old {
                keep::check(f, new, old);
            }
        })
    }

    fn validate_status_update(
        &self,
        _context: &Context,
        new: &PersistentVolumeClaim,
        _old: &PersistentVolumeClaim,
    ) -> ErrorList {
        faults::of_status(|f| check_status(f, &new.status))
    }
}

/// Amounts that a volume has or is about to get: of storage, or of resources of others.
fn check_status(f: &mut Faults<'_>, status: &PersistentVolumeClaimStatus) {
    f.each_key("capacity", &status.capacity, |f, _, amount| {
        spec::basic_amount(f, amount)
    });
    for (name, state) in &status.allocated_resource_statuses {
        let mut f = f.at("allocatedResourceStatuses");
        resource_key(&mut f, name);
        if !RESIZES.contains(&state.as_str()) {
            f.not_supported(name, &RESIZES);
        }
    }
    for (name, amount) in &status.allocated_resources {
        let mut f = f.at("allocatedResources");
        let before = f.count();
        resource_key(&mut f, name);
        if f.count() > before {
            continue;
        }
        spec::basic_amount(&mut f.key(name), amount);
        if f.count() == before {
            f.key(name).amount(amount);
        }
    }
}

fn resource_key(f: &mut Faults<'_>, name: &str) {
    let texts = labels::qualified_name(name);
    if texts.is_empty() && is_native(name) && name != "storage" {
        f.not_supported(name, &["storage"]);
    }
    f.texts(name, texts);
}

fn warnings_of(claim: &PersistentVolumeClaim) -> Vec<String> {
    let mut found = Vec::new();
    if claim.metadata.annotations.contains_key(CLASS_ANNOTATION) {
        let path = Path::new("metadata").child("annotations").key(CLASS_ANNOTATION);
        found.push(format!(
            "{path}: deprecated since v1.8; use \"storageClassName\" attribute instead"
        ));
    }
    found.extend(warnings_of_spec(&claim.spec, &Path::new("spec")));
    found
}

/// Warnings of a claim's specification, also of one that stands in a template.
pub fn warnings_of_spec(spec: &PersistentVolumeClaimSpec, path: &Path) -> Vec<String> {
    let path = path.child("resources");
    let amounts = [
        ("requests", &spec.resources.requests),
        ("limits", &spec.resources.limits),
    ];
    let found = amounts.map(|(name, amounts)| pod_spec::warnings::of_bytes(amounts, &["storage"], &path.child(name)));
    found.concat()
}

/// Drops what only a feature that is switched off knows, and what the older of the two fields never knew from clients
/// that don't know the newer one; what was stored stays. Then both fields say the same.
fn prepare_sources(spec: &mut PersistentVolumeClaimSpec, old: Option<&PersistentVolumeClaimSpec>) {
    if old.is_none_or(|old| old.data_source_ref.is_none()) {
        drop_other_namespace(spec);
    }
    let is_stored = old.is_some_and(|old| old.data_source.is_some() || old.data_source_ref.is_some());
    let is_known = spec.data_source.as_deref().is_some_and(is_volume_or_snapshot);
    if !is_stored && spec.data_source_ref.is_none() && !is_known {
        spec.data_source = None;
    }
    join_data_sources(spec);
}

/// All that the older of the two fields knows.
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
