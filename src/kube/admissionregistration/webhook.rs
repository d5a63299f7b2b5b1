//! Configurations of admission webhooks.

use keelson_api::admissionregistration_k8s_io::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use keelson_registry::{KindCode, MetadataChecks, RepeatedChecks};

use crate::cells;
use crate::metadata;

const CHECKS: MetadataChecks = metadata::any_finalizer(RepeatedChecks::WHOLE);

/// Registers the rules of both kinds.
pub fn register(code: &mut KindCode) {
    code.kind::<MutatingWebhookConfiguration>()
        .metadata_checks(CHECKS)
        .cells(cells::admission::MUTATING_WEBHOOK_CONFIGURATION);
    code.kind::<ValidatingWebhookConfiguration>()
        .metadata_checks(CHECKS)
        .cells(cells::admission::VALIDATING_WEBHOOK_CONFIGURATION);
}
