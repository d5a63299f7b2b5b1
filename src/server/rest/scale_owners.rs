//! Managers of the number of replicas after a write to a scale.

use keelson_machinery::apply::{Apply, ApplyError};
use keelson_machinery::fieldset::FieldSet;
use keelson_machinery::jsonpath;
use keelson_machinery::managedfields::{Change, Managed, VersionError, Versions, Writer, track};
use keelson_machinery::meta::v1::ManagedFieldsEntry;
use keelson_machinery::object::{Object, api_version};
use keelson_machinery::reflect::Reflect;
use keelson_machinery::scheme::SubresourceDesc;
use keelson_machinery::status::StatusError;
use keelson_registry::apply::conflict;
use keelson_registry::managed::RequestWriter;

use super::apply::ApplyBody;

/// A Scale has one version.
struct OneVersion<'a>(&'a str);

impl Versions for OneVersion<'_> {
    fn knows(&self, api_version: &str) -> bool {
        api_version == self.0
    }

    fn convert(&self, _: &dyn Reflect, version: &str) -> Result<Box<dyn Object>, VersionError> {
        Err(VersionError::Unknown(format!(
            "no Scale is registered for version {version:?}"
        )))
    }
}

/// The owners of an object and of its scale.
pub(super) struct ScaleOwners<'a> {
    scale: &'a SubresourceDesc,
    /// The version of the object.
    version: String,
    all: Managed,
    of_scale: Managed,
    writer: Writer,
}

impl<'a> ScaleOwners<'a> {
    /// Of the stored entries.
    pub fn new(scale: &'a SubresourceDesc, request: &RequestWriter, stored: &[ManagedFieldsEntry]) -> Self {
        let all = Managed::read(stored).unwrap_or_default();
        let scale_version = api_version(&scale.group, &scale.version);
        ScaleOwners {
            scale,
            version: request.writer.api_version.clone(),
            of_scale: all.of_scale(&scale.spec_replicas_path, &scale_version),
            all,
            writer: Writer {
                api_version: scale_version,
                ..request.writer.clone()
            },
        }
    }

    /// What the Scale itself says in `managedFields`; patches see it, and plug-ins that mutate.
    pub fn shown(&self) -> Vec<ManagedFieldsEntry> {
        self.of_scale.clone().write()
    }

    /// Counts an update from one Scale to another.
    pub fn update(&mut self, old: &dyn Reflect, new: &dyn Reflect) -> Result<(), StatusError> {
        if self.of_scale.is_empty() {
            return Ok(());
        }
        let change = Change {
            old,
            new,
            ignored: &FieldSet::of_fields(&["status"]),
            versions: &OneVersion(&self.writer.api_version),
        };
        track(&mut self.of_scale, change, &self.writer).map_err(StatusError::internal_error)
    }

    /// An apply to the scale of a custom resource whose replicas nobody owns: kube-apiserver can't convert the empty
    /// Scale that it compares with then, and fails.
    pub fn check_applicable(&self) -> Result<(), StatusError> {
        if !self.of_scale.is_empty() {
            return Ok(());
        }
        let failure = self.conversion_failure("live", "");
        Err(StatusError::unknown(format!(
            "failed to create manager for existing fields: {failure}"
        )))
    }

    /// An apply to the scale of a custom resource that changes something: kube-apiserver can't convert the Scale that
    /// comes of it.
    pub fn unconverted(&self, applied: &dyn Reflect) -> StatusError {
        let name = jsonpath::lookup_text(applied, "metadata.name");
        StatusError::unknown(self.conversion_failure("new", &name))
    }

    fn conversion_failure(&self, which: &str, name: &str) -> String {
        let version = &self.writer.api_version;
        format!(
            "failed to convert {which} object (/{name}; {version}, Kind={}) to proper version: request to convert CR to an \
             invalid group/version: {version}",
            self.scale.kind
        )
    }

    /// The Scale that an apply makes of the present one, and whether that is another one.
    pub fn apply(
        &mut self,
        live: &dyn Reflect,
        applied: &dyn Reflect,
        body: &ApplyBody,
        force: bool,
    ) -> Result<(Box<dyn Reflect>, bool), StatusError> {
        let mut target = live.clone_message();
        let apply = Apply {
            writer: &self.writer,
            live,
            applied,
            document: &body.document,
            force,
            ignored: &FieldSet::of_fields(&["status"]),
            versions: &OneVersion(&self.writer.api_version),
        };
        match apply.run(&mut self.of_scale, &mut *target) {
            Ok(changed) => Ok((target, changed)),
            Err(ApplyError::Conflicts(found)) => Err(conflict(&found)),
            Err(ApplyError::Convert(why)) => Err(StatusError::unknown(why)),
        }
    }

    /// The entries of the object.
    pub fn entries(self) -> Vec<ManagedFieldsEntry> {
        let path = &self.scale.spec_replicas_path;
        self.all.after_scale(self.of_scale, path, &self.version).write()
    }
}
