//! Attachments of volumes to nodes.

use keelson_api::storage_k8s_io::v1::VolumeAttachment;
use keelson_registry::{Kept, KindCode};

use crate::cells;
use crate::core::resource_list::round;
use crate::metadata;
use crate::status_alone::StatusAlone;

/// Registers the rules of attachments.
pub fn register(code: &mut KindCode) {
    code.kind::<VolumeAttachment>()
        .any_strategy(StatusAlone)
        .defaults(defaults)
        .metadata_checks(metadata::WHOLE)
        .kept([Kept::at("spec")])
        .cells(cells::storage::VOLUME_ATTACHMENT);
}

/// Defaults in code of attachments.
fn defaults(attachment: &mut VolumeAttachment) {
    if let Some(spec) = &mut attachment.spec.source.inline_volume_spec {
        round(&mut spec.capacity);
    }
}
