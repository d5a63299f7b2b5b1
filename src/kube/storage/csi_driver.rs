//! Drivers of volumes.

use keelson_api::storage_k8s_io::v1::{CSIDriver, CSIDriverSpec};
use keelson_machinery::equality;
use keelson_machinery::field::ErrorList;
use keelson_registry::{Context, Kept, KindCode, Strategy};

use crate::cells;
use crate::faults::{self, Faults, Unique};
use crate::metadata;

const FS_GROUP_POLICIES: [&str; 3] = ["File", "None", "ReadWriteOnceWithFSType"];
/// Bounds of how long a token is valid.
const SECONDS_MIN: i64 = 600;
const SECONDS_MAX: i64 = 1 << 32;
const KEPT: &[Kept] = &[
    Kept {
        told: "spec.attachedRequired",
        ..Kept::at("spec.attachRequired")
    },
    Kept::at("spec.volumeLifecycleModes"),
];

/// Registers the rules of drivers.
pub fn register(code: &mut KindCode) {
    code.kind::<CSIDriver>()
        .strategy(CsiDriverStrategy)
        .metadata_checks(metadata::CHANGE)
        .kept(KEPT)
        .cells(cells::storage::CSI_DRIVER);
}

/// The rules of drivers.
struct CsiDriverStrategy;

impl Strategy for CsiDriverStrategy {
    type Object = CSIDriver;

    fn warnings(&self, new: &CSIDriver, old: Option<&CSIDriver>) -> Vec<String> {
        let asks_anew = |o: &CSIDriver| {
            let (new, old) = (&o.spec.token_requests, old.map(|old| &old.spec.token_requests));
            let same = |old: &Vec<_>| old.len() == new.len() && old.iter().zip(new).all(|(a, b)| equality::equal(a, b));
            !new.is_empty() && !old.is_some_and(same)
        };
        let open = asks_anew(new) && new.spec.service_account_token_in_secrets.is_none();
        let text = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
                    possible logging of tokens in volume attributes";
        open.then(|| text.to_owned()).into_iter().collect()
    }

    fn prepare_for_create(&self, _context: &Context, object: &mut CSIDriver) {
        drop_disabled(object, None);
    }

    fn validate(&self, _context: &Context, new: &CSIDriver, _old: Option<&CSIDriver>) -> ErrorList {
        faults::of_spec(|f| check(f, &new.spec))
    }

    /// Changes are counted from whatever number the object was made with.
    fn prepare_for_update(&self, _context: &Context, new: &mut CSIDriver, old: &CSIDriver) {
        drop_disabled(new, Some(old));
        if !equality::equal(&new.spec, &old.spec) {
            new.metadata.generation = old.metadata.generation + 1;
        }
    }
}

fn check(f: &mut Faults<'_>, spec: &CSIDriverSpec) {
    f.at("fsGroupPolicy")
        .one_of(spec.fs_group_policy.as_deref(), &FS_GROUP_POLICIES);
    let mut audiences = Unique::default();
    f.each("tokenRequests", &spec.token_requests, |f, request| {
        if !audiences.check(&mut f.at("audience"), &request.audience) {
            return;
        }
        let mut f = f.at("expirationSeconds");
        match request.expiration_seconds {
            Some(seconds) if seconds < SECONDS_MIN => {
                f.invalid(seconds, "may not specify a duration less than 10 minutes")
            }
            Some(seconds) if seconds > SECONDS_MAX => {
                f.invalid(seconds, "may not specify a duration larger than 2^32 seconds");
            }
            _ => {}
        }
    });
    for mode in &spec.volume_lifecycle_modes {
        f.at("volumeLifecycleModes").one_of(mode, &["Persistent", "Ephemeral"]);
    }
    if let Some(seconds) = spec
        .node_allocatable_update_period_seconds
        .filter(|seconds| *seconds < 10)
    {
        f.at("nodeAllocatableUpdatePeriodSeconds")
            .invalid(seconds, "must be greater than or equal to 10 seconds");
    }
    if let Some(is_secret) = spec
        .service_account_token_in_secrets
        .filter(|_| spec.token_requests.is_empty())
    {
        let text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        f.at("serviceAccountTokenInSecrets").invalid(is_secret, text);
    }
}

/// Fields of features that are not enabled, unless they are stored.
fn drop_disabled(o: &mut CSIDriver, old: Option<&CSIDriver>) {
    let stored = old.is_some_and(|o| o.spec.prevent_pod_scheduling_if_missing.is_some());
    if !stored {
        o.spec.prevent_pod_scheduling_if_missing = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, read_defaulted, text};

    #[test]
    fn a_driver_has_defaults_and_counts_changes() {
        let old: CSIDriver = read_defaulted(r#"{"metadata":{"generation":7}}"#);
        assert_eq!(
            text(&old.spec),
            concat!(
                r#"{"attachRequired":true,"podInfoOnMount":false,"volumeLifecycleModes":["Persistent"],"#,
                r#""storageCapacity":false,"fsGroupPolicy":"ReadWriteOnceWithFSType","requiresRepublish":false,"#,
                r#""seLinuxMount":false}"#
            )
        );
        let mut new = old.clone();
        new.metadata.labels.insert("a".to_owned(), "b".to_owned());
        CsiDriverStrategy.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new.metadata.generation, 7);
        new.spec.requires_republish = Some(true);
        CsiDriverStrategy.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new.metadata.generation, 8);
    }
}
