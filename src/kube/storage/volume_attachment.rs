//! Attachments of volumes to nodes.

use std::collections::BTreeMap;

use keelson_api::storage_k8s_io::v1::{VolumeAttachment, VolumeAttachmentSource, VolumeError};
use keelson_machinery::field::ErrorList;
use keelson_registry::write::Part;
use keelson_registry::{Context, Kept, KindCode, Strategy};

use crate::cells;
use crate::core::persistent_volume;
use crate::core::resource_list::round;
use crate::core::volume_source;
use crate::faults::{self, Faults};
use crate::metadata;
use crate::status_alone::StatusAlone;

const ONE_SOURCE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
/// Bytes of what a driver tells: of its attachment, and of why there is none.
const METADATA_MAX: usize = 256 * 1024;
const MESSAGE_MAX: usize = 1024;

/// Registers the rules of attachments.
pub fn register(code: &mut KindCode) {
    code.kind::<VolumeAttachment>()
        .strategy(VolumeAttachmentStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::WHOLE)
        .kept([Kept::at("spec")])
        .cells(cells::storage::VOLUME_ATTACHMENT);
}

/// The rules of attachments.
struct VolumeAttachmentStrategy;

impl Strategy for VolumeAttachmentStrategy {
    type Object = VolumeAttachment;

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        StatusAlone.reset_fields(part)
    }

    fn prepare_for_status_update(&self, context: &Context, new: &mut VolumeAttachment, old: &VolumeAttachment) {
        StatusAlone.prepare_for_status_update(context, new, old);
    }

    fn validate(&self, _context: &Context, new: &VolumeAttachment, _old: Option<&VolumeAttachment>) -> ErrorList {
        faults::of_object(|f| {
            let mut spec = f.at("spec");
            volume_source::driver(&mut spec.at("attacher"), &new.spec.attacher);
            source(&mut spec.at("source"), &new.spec.source);
            spec.at("nodeName").subdomain(&new.spec.node_name);
            let mut status = f.at("status");
            let told = &new.status.attachment_metadata;
            if size(told) > METADATA_MAX {
                status.at("attachmentMetadata").too_long(METADATA_MAX);
            }
            status.some("attachError", new.status.attach_error.as_deref(), error);
            status.some("detachError", new.status.detach_error.as_deref(), error);
            f.at("spec.source.persistentVolumeName")
                .subdomain(new.spec.source.persistent_volume_name.as_deref());
        })
    }

    fn validate_status_update(&self, context: &Context, new: &VolumeAttachment, _old: &VolumeAttachment) -> ErrorList {
        self.validate(context, new, None)
    }
}

fn size(map: &BTreeMap<String, String>) -> usize {
    map.iter().map(|(key, value)| key.len() + value.len()).sum()
}

/// A volume by its name, or one that has no object of its own.
fn source(f: &mut Faults<'_>, source: &VolumeAttachmentSource) {
    match (
        source.persistent_volume_name.as_deref(),
        source.inline_volume_spec.as_deref(),
    ) {
        (None, None) => f.required(ONE_SOURCE),
        (Some(_), Some(_)) => f.forbidden(ONE_SOURCE),
        (Some(""), None) => f
            .at("persistentVolumeName")
            .required("must specify non empty persistentVolumeName"),
        (Some(_), None) => {}
        (None, Some(spec)) => persistent_volume::check_inline(&mut f.at("inlineVolumeSpec"), spec, ""),
    }
}

fn error(f: &mut Faults<'_>, error: &VolumeError) {
    if error.message.len() > MESSAGE_MAX {
        f.at("message").too_long(METADATA_MAX);
    }
    if let Some(code) = error.error_code.filter(|code| *code < 0) {
        f.at("errorCode").within(code, (0, i32::MAX.into()));
    }
}

/// Defaults in code of attachments.
fn defaults(attachment: &mut VolumeAttachment) {
    if let Some(spec) = &mut attachment.spec.source.inline_volume_spec {
        round(&mut spec.capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn an_attachment_is_of_one_volume() {
        for (source, expected) in [
            (r#"{"persistentVolumeName":"v"}"#, ""),
            (
                "{}",
                "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            ),
            (
                r#"{"persistentVolumeName":""}"#,
                "spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName",
            ),
            (
                r#"{"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/a"}}}"#,
                "spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes",
            ),
        ] {
            let text = format!(r#"{{"spec":{{"attacher":"a.b","nodeName":"n","source":{source}}}}}"#);
            let attachment: VolumeAttachment = read(&text);
            let found = lines(&VolumeAttachmentStrategy.validate(&context(), &attachment, None));
            assert_eq!(found.lines().next().unwrap_or_default(), expected, "{source}");
        }
    }
}
