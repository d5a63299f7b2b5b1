//! Configurations of admission webhooks.

use keelson_server::registry::{Again, KindCode, MetadataChecks};

use crate::api::admissionregistration_k8s_io::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use crate::kube::cells;
use crate::kube::metadata;

const CHECKS: MetadataChecks = metadata::any_finalizer(Again::WHOLE);

/// Registers the rules of both kinds.
pub fn register(code: &mut KindCode) {
    code.kind::<MutatingWebhookConfiguration>()
        .metadata_checks(CHECKS)
        .cells(cells::admission::MUTATING_WEBHOOK_CONFIGURATION);
    code.kind::<ValidatingWebhookConfiguration>()
        .metadata_checks(CHECKS)
        .cells(cells::admission::VALIDATING_WEBHOOK_CONFIGURATION);
}
