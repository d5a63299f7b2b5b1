//! ClusterTrustBundleAttest: who vouches for authorities in the name of a signer needs the right to `attest` for it.

use keelson_api::certificates_k8s_io::v1beta1::ClusterTrustBundle;
use keelson_machinery::field::text::quote;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};

use crate::certificates::signers::{GROUP, may};
use crate::rbac::is_only_collected;

const PLURAL: &str = "clustertrustbundles";

pub struct ClusterTrustBundleAttest;

impl Plugin for ClusterTrustBundleAttest {
    fn name(&self) -> &'static str {
        "ClusterTrustBundleAttest"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let writes = matches!(scope.operation, Operation::Create | Operation::Update);
        Handles::VALIDATES.when(writes && scope.is(GROUP, PLURAL))
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        let old = attributes.old_typed::<ClusterTrustBundle>();
        let old = old.map(|old| old as &dyn Object);
        match attributes.typed::<ClusterTrustBundle>() {
            Some(new) if !new.spec.signer_name.is_empty() && !is_only_collected(new, old) => {
                later(check(attributes, new))
            }
            _ => now(Ok(())),
        }
    }
}

async fn check(attributes: &Attributes<'_>, bundle: &ClusterTrustBundle) -> Result<(), StatusError> {
    let signer = &bundle.spec.signer_name;
    if may(attributes.context, "attest", signer).await {
        return Ok(());
    }
    let why = format!("user not permitted to attest for signerName {}", quote(signer));
    Err(StatusError::forbidden(GROUP, PLURAL, &bundle.metadata.name, why))
}
