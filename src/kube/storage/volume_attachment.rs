//! Attachments of volumes to nodes.

use keelson_machinery::object::Object;

use crate::api::storage_k8s_io::v1::VolumeAttachment;
use crate::kube::core::resource_list::round;
use crate::kube::typed::typed_mut;

/// Defaults in code of attachments.
pub fn defaults(object: &mut dyn Object) {
    let spec = typed_mut::<VolumeAttachment>(object).and_then(|o| o.spec.source.inline_volume_spec.as_mut());
    if let Some(spec) = spec {
        round(&mut spec.capacity);
    }
}
