//! Attachments of volumes to nodes.

use keelson_server::registry::{Kept, KindCode};

use crate::api::storage_k8s_io::v1::VolumeAttachment;
use crate::kube::cells;
use crate::kube::core::resource_list::round;
use crate::kube::metadata;
use crate::kube::status_alone::StatusAlone;

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
