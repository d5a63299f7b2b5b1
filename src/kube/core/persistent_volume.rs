//! Persistent volumes: they start pending, and know since when they are in their phase.

mod keep;
mod spec;

pub use spec::check_inline;

use keelson_api::core::v1::{PersistentVolume, PersistentVolumeStatus};
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::scheme::NameRule;
use keelson_machinery::validation::meta::validate_object_meta;
use keelson_registry::write::standard_finalizers;
use keelson_registry::{ChangeOrder, Context, KindCode, MetadataChecks, Strategy};

use super::persistent_volume_claim::CLASS_ANNOTATION;
use super::pod_spec;
use super::resource_list::round;
use crate::cells;
use crate::faults;
use crate::metadata;

const PENDING: &str = "Pending";
/// What becomes of a volume that nobody claims any longer.
const RETAIN: &str = "Retain";
const RECYCLE: &str = "Recycle";
/// Said how a volume is mounted before there was a field for it.
const MOUNT_ANNOTATION: &str = "volume.beta.kubernetes.io/mount-options";
/// How a volume appears in a pod.
const FILESYSTEM: &str = "Filesystem";

const CHECKS: MetadataChecks = MetadataChecks {
    order: ChangeOrder::WholeFirst,
    ..metadata::WHOLE
};

/// Registers the rules of persistent volumes.
pub fn register(code: &mut KindCode) {
    code.kind::<PersistentVolume>()
        .strategy(PersistentVolumeStrategy)
        .defaults(defaults)
        .metadata_checks(CHECKS)
        .cells(cells::storage::PERSISTENT_VOLUME);
}

/// The rules of persistent volumes.
struct PersistentVolumeStrategy;

impl Strategy for PersistentVolumeStrategy {
    type Object = PersistentVolume;

    fn warnings(&self, new: &PersistentVolume, _old: Option<&PersistentVolume>) -> Vec<String> {
        warnings_of(new)
    }

    fn prepare_for_create(&self, context: &Context, object: &mut PersistentVolume) {
        object.status = PersistentVolumeStatus {
            phase: PENDING.to_owned(),
            last_phase_transition_time: Some(context.now.truncate_to_seconds()),
            ..PersistentVolumeStatus::default()
        };
    }

    fn validate(&self, _context: &Context, new: &PersistentVolume, old: Option<&PersistentVolume>) -> ErrorList {
        faults::of_spec(|f| {
            spec::check(f, &new.spec, &new.metadata.name, old.map(|old| &old.spec));
        })
    }

    /// The API looks at the whole once more here, its metadata too, and not at what changed in that.
    fn validate_change(&self, context: &Context, new: &PersistentVolume, old: &PersistentVolume) -> ErrorList {
        let path = Path::new("metadata");
        let mut errors = validate_object_meta(&new.metadata, false, NameRule::DnsSubdomain, &path);
        errors.extend(standard_finalizers(&new.metadata, &path));
        errors.extend(self.validate(context, new, Some(old)));
        errors.extend(faults::of_object(|f| keep::check(f, &new.spec, &old.spec)));
        errors
    }

    fn prepare_for_status_update(&self, context: &Context, new: &mut PersistentVolume, old: &PersistentVolume) {
        let (now, was) = (&mut new.status, &old.status);
        let told = now.last_phase_transition_time.is_some()
            && now.last_phase_transition_time != was.last_phase_transition_time;
        if told {
            return;
        }
        now.last_phase_transition_time = match now.phase == was.phase {
            true => was.last_phase_transition_time,
            false => Some(context.now.truncate_to_seconds()),
        };
    }
}

fn warnings_of(volume: &PersistentVolume) -> Vec<String> {
    let (spec, path) = (&volume.spec, Path::new("spec"));
    let annotations = Path::new("metadata").child("annotations");
    let mut found: Vec<String> = [
        (
            CLASS_ANNOTATION,
            "deprecated since v1.8; use \"storageClassName\" attribute instead",
        ),
        (
            MOUNT_ANNOTATION,
            "deprecated since v1.31; use \"mountOptions\" attribute instead",
        ),
    ]
    .into_iter()
    .filter(|(key, _)| volume.metadata.annotations.contains_key(*key))
    .map(|(key, text)| format!("{}: {text}", annotations.key(key)))
    .collect();
    if spec.persistent_volume_reclaim_policy == RECYCLE {
        found.push(format!(
            "{}: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic \
             provisioning.",
            path.child("persistentVolumeReclaimPolicy")
        ));
    }
    if let Some(required) = spec.node_affinity.as_ref().and_then(|a| a.required.as_ref()) {
        let path = path.child("nodeAffinity").child("required").child("nodeSelectorTerms");
        found.extend(pod_spec::warnings::of_node_terms(&required.node_selector_terms, &path));
    }
    let source = &spec.persistent_volume_source;
    let gone = [
        (
            "photonPersistentDisk",
            source.photon_persistent_disk.is_some(),
            "v1.11",
            "v1.16",
        ),
        ("scaleIO", source.scale_io.is_some(), "v1.16", "v1.22"),
        ("storageOS", source.storageos.is_some(), "v1.22", "v1.25"),
        ("glusterfs", source.glusterfs.is_some(), "v1.25", "v1.26"),
        ("cephfs", source.cephfs.is_some(), "v1.28", "v1.31"),
        ("rbd", source.rbd.is_some(), "v1.28", "v1.31"),
    ];
    found.extend(pod_spec::warnings::of_ended_volumes(&gone, &path));
    found
}

/// Defaults in code of persistent volumes. They are not of a specification that stands inline elsewhere.
fn defaults(o: &mut PersistentVolume) {
    round(&mut o.spec.capacity);
    if o.status.phase.is_empty() {
        o.status.phase = PENDING.to_owned();
    }
    if o.spec.persistent_volume_reclaim_policy.is_empty() {
        o.spec.persistent_volume_reclaim_policy = RETAIN.to_owned();
    }
    o.spec.volume_mode.get_or_insert_with(|| FILESYSTEM.to_owned());
}

#[cfg(test)]
mod tests {
    use keelson_machinery::time::Time;

    use super::*;
    use crate::testing::{context, read};

    #[test]
    fn a_change_is_looked_at_as_a_whole_once_more() {
        let old: PersistentVolume = read(r#"{"metadata":{"name":"p"},"spec":{"hostPath":{"path":"/a"}}}"#);
        let mut new = old.clone();
        new.metadata.finalizers = vec!["1".to_owned()];
        let (once, again) = (
            PersistentVolumeStrategy.validate(&context(), &new, Some(&old)),
            PersistentVolumeStrategy.validate_change(&context(), &new, &old),
        );
        let fields = |errors: ErrorList| errors.into_iter().map(|e| e.field).collect::<Vec<_>>();
        let (once, again) = (fields(once), fields(again));
        assert!(!once.is_empty());
        assert_eq!(again, [vec!["metadata.finalizers[0]".to_owned()], once].concat());
    }

    #[test]
    fn a_phase_has_its_time() {
        let mut old: PersistentVolume = read(r#"{"status":{"phase":"Bound","message":"m"}}"#);
        PersistentVolumeStrategy.prepare_for_create(&context(), &mut old);
        assert_eq!((&*old.status.phase, &*old.status.message), ("Pending", ""));
        old.status.last_phase_transition_time = Some(Time::from_unix(1, 0));
        let mut new = old.clone();
        PersistentVolumeStrategy.prepare_for_status_update(&context(), &mut new, &old);
        assert_eq!(new.status.last_phase_transition_time, Some(Time::from_unix(1, 0)));
        new.status.last_phase_transition_time = None;
        PersistentVolumeStrategy.prepare_for_status_update(&context(), &mut new, &old);
        assert_eq!(new.status.last_phase_transition_time, Some(Time::from_unix(1, 0)));
        new.status.phase = "Bound".to_owned();
        PersistentVolumeStrategy.prepare_for_status_update(&context(), &mut new, &old);
        assert_eq!(new.status.last_phase_transition_time, Some(context().now));
        let mut new = old.clone();
        new.status.phase = "Bound".to_owned();
        new.status.last_phase_transition_time = Some(Time::from_unix(2, 0));
        PersistentVolumeStrategy.prepare_for_status_update(&context(), &mut new, &old);
        assert_eq!(new.status.last_phase_transition_time, Some(Time::from_unix(2, 0)));
    }
}
