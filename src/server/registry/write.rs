//! What all writes of objects have in common.

use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_storage::{Entry, Expect, LeaseId, Write, Written};

use super::Resource;
use super::delete::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};

/// Which part of an object an update may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Everything but status, where the kind has a status subresource.
    Main,
    Status,
    /// What the strategy lets through for this subresource.
    Named(&'static str),
    /// What the server itself changes (a binding, an eviction): the rules for clients don't hold.
    Internal,
}

/// What an update asks for beside the new object.
#[derive(Clone, Debug)]
pub struct UpdateRequest<'a> {
    pub name: &'a str,
    pub part: Part,
    /// May make the object if it is absent.
    pub may_create: bool,
    /// Another uid than the stored one is a conflict (PUT), not a change of an immutable field (PATCH).
    pub uid_is_precondition: bool,
}

impl<'a> UpdateRequest<'a> {
    /// A change of the main part of an object that is there.
    pub fn of(name: &'a str) -> UpdateRequest<'a> {
        UpdateRequest {
            name,
            part: Part::Main,
            may_create: false,
            uid_is_precondition: true,
        }
    }
}

pub struct Updated {
    pub object: Box<dyn Object>,
    pub created: bool,
}

/// Makes the new object of an update from the stored one (`None`: there is none).
pub type Updater<'a> = &'a mut dyn FnMut(Option<&dyn Object>) -> Result<Box<dyn Object>, StatusError>;

impl Resource {
    /// Writes in the place of an entry and gives the object the revision of that. False: the entry changed meanwhile, and
    /// nothing is written.
    pub(crate) async fn write_over(
        &self,
        entry: &Entry,
        write: Write,
        object: &mut dyn Object,
    ) -> Result<bool, StatusError> {
        let expect = Expect::Revision(entry.mod_revision);
        let written = self.backend.store.write(&entry.key, expect, write).await;
        match written.map_err(|e| self.store_error(e))? {
            Written::Done { revision, .. } => {
                object.meta_mut().resource_version = revision.to_string();
                Ok(true)
            }
            Written::Conflict { .. } => Ok(false),
        }
    }

    pub(super) fn verdict(&self, object: &dyn Object, errors: ErrorList) -> Result<(), StatusError> {
        if errors.is_empty() {
            return Ok(());
        }
        // Of objects that two groups share, faults are told in the name of the group that they are stored in.
        Err(StatusError::invalid(
            self.hub.group,
            self.hub.kind,
            &object.meta().name,
            &errors,
        ))
    }

    /// The lease of kinds that live for a limited time.
    pub(super) async fn lease(&self) -> Result<Option<LeaseId>, StatusError> {
        let Some(ttl) = self.strategy.time_to_live() else {
            return Ok(None);
        };
        self.backend
            .store
            .grant(ttl)
            .await
            .map(Some)
            .map_err(|e| self.store_error(e))
    }

    /// Marked as deleted, and nothing holds it any longer.
    pub(crate) fn is_finished(&self, object: &dyn Object) -> bool {
        let meta = object.meta();
        meta.deletion_timestamp.is_some()
            && meta.finalizers.is_empty()
            && meta.deletion_grace_period_seconds.unwrap_or(0) == 0
            && self.strategy.may_vanish(object)
    }

    pub(crate) fn has_status(&self) -> bool {
        self.hub.subresources.iter().any(|s| s.name == "status")
    }
}

pub(crate) const OBJECT_MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// The text of a failed uid precondition, as kube-apiserver's store words it.
pub(crate) fn precondition_text(key: &str, wanted: &str, actual: &str) -> String {
    failed_precondition(key, "UID", wanted, actual)
}

/// The text of a precondition on `what` (`UID`, `ResourceVersion`) that does not hold; `None` if it does, or if nothing
/// is wanted.
pub fn precondition_failed(key: &str, what: &str, wanted: &str, actual: &str) -> Option<String> {
    (!wanted.is_empty() && wanted != actual).then(|| failed_precondition(key, what, wanted, actual))
}

fn failed_precondition(key: &str, what: &str, wanted: &str, actual: &str) -> String {
    format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {actual}"
    )
}

/// Finalizers without a domain that kinds of Kubernetes may have.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", FINALIZER_ORPHAN, FINALIZER_FOREGROUND];

pub(super) fn standard_finalizers(object: &dyn Object, path: &Path) -> ErrorList {
    let path = path.child("finalizers");
    let mut errors = ErrorList::new();
    for (index, finalizer) in object.meta().finalizers.iter().enumerate() {
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer.as_str()) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&path.index(index), finalizer.as_str(), detail));
        }
    }
    errors
}
