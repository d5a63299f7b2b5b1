//! Common parts of all writes.

use std::ops::ControlFlow;

use bytes::Bytes;
use keelson_access::request_info::RequestInfo;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::{Kind, Object};
use keelson_machinery::scheme::SubresourceDesc;
use keelson_machinery::status::StatusError;
use keelson_storage::{Entry, Expect, LeaseId, StoreError, Write, Written};

use super::admission::Operation;
use super::delete::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};
use super::outcome::{Outcome, now};
use super::owners::{OwnersRead, drop_repeated_owners};
use super::{Confirming, Context, Reserving, Resource, Target};

/// What is said of an object of another namespace than that of the request.
pub const OTHER_NAMESPACE: &str =
    "the namespace of the provided object does not match the namespace sent on the request";
/// Leases that are tried for one write.
pub(super) const MAX_LEASES: usize = 4;

/// Which part of an object an update may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part<'a> {
    /// Everything but status, where the kind has a status subresource.
    Main,
    /// The status alone.
    Status,
    /// What the strategy lets through for this subresource.
    Named(&'a str),
    /// What the server itself changes (a binding, an eviction): the rules for clients don't hold.
    Internal,
}

impl<'a> Part<'a> {
    /// What a write through this subresource may change; `None`: the object itself is written.
    pub fn of(subresource: Option<&'a SubresourceDesc>) -> Part<'a> {
        match subresource {
            None => Part::Main,
            Some(sub) if sub.name == "status" => Part::Status,
            Some(sub) => Part::Named(&sub.name),
        }
    }
}

/// Shows an object as its subresource has it (Scale).
pub type Show<'a> = &'a dyn Fn(&dyn Object) -> Result<Box<dyn Kind>, StatusError>;

/// What an update asks for beside the new object.
#[derive(Clone, Copy)]
pub struct UpdateRequest<'a> {
    /// What of the object is written.
    pub part: Part<'a>,
    /// Makes the object if it is absent, for a sender who may create it too: what the request asks for, as it was let
    /// through. `None`: the object has to be there.
    pub creation: Option<&'a RequestInfo>,
    /// Another uid than the stored one is a conflict (PUT), not a change of an immutable field (PATCH).
    pub uid_is_precondition: bool,
    /// What validating plug-ins see in the place of the object. The updater has shown that to those that mutate.
    pub shown: Option<Show<'a>>,
}

impl UpdateRequest<'_> {
    /// A change of a part of an object that is there.
    pub fn of(part: Part<'_>) -> UpdateRequest<'_> {
        UpdateRequest {
            part,
            creation: None,
            uid_is_precondition: true,
            shown: None,
        }
    }
}

/// What became of an update.
pub struct Updated {
    /// As it is stored.
    pub object: Box<dyn Object>,
    /// There was none before.
    pub created: bool,
}

/// Makes the new object of an update. Called for each attempt; nothing is locked meanwhile.
pub trait Updater {
    /// From the stored object; `None`: there is none.
    fn make<'a>(&'a mut self, current: Option<&'a dyn Object>) -> Outcome<'a, Box<dyn Object>>;
}

/// A function that waits for nothing.
impl<F> Updater for F
where
    F: FnMut(Option<&dyn Object>) -> Result<Box<dyn Object>, StatusError>,
{
    fn make<'a>(&'a mut self, current: Option<&'a dyn Object>) -> Outcome<'a, Box<dyn Object>> {
        now(self(current))
    }
}

/// What a write begins with.
pub(super) struct Base {
    /// `None`: there is no such object.
    pub entry: Option<Entry>,
    /// The store has said so since the request came. Else memory says that it was so a moment ago: good enough for a
    /// write, which the store compares with what it replaces, but nothing that a client may be told.
    pub confirmed: bool,
}

/// How long what is written lives.
pub(super) enum Lease {
    /// As long as the kind says, from now on.
    New,
    /// As long as this lease; `None`: for ever.
    Of(Option<LeaseId>),
}

/// What came of an attempt to write.
pub(super) enum Attempt<T> {
    Written(T),
    /// Nothing was to be written: true as long as what the attempt began with is.
    Unwritten(T),
    /// Another writer was faster, and this is there now.
    Overtaken(Option<Entry>),
    /// The store failed: it may have been written, so that it must not be tried again.
    Uncertain(StatusError),
}

impl<T> Attempt<T> {
    /// With something else made of what was written.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Attempt<U> {
        match self {
            Attempt::Written(what) => Attempt::Written(f(what)),
            Attempt::Unwritten(what) => Attempt::Unwritten(f(what)),
            Attempt::Overtaken(by) => Attempt::Overtaken(by),
            Attempt::Uncertain(why) => Attempt::Uncertain(why),
        }
    }
}

impl Resource {
    /// What memory holds of a key, or else the store. Nobody compares what a dry run does not write.
    pub(super) async fn base(&self, context: &Context, key: &str) -> Result<Base, StatusError> {
        if !context.dry_run
            && let Some(entry) = self.backend.store.recall(&self.key_prefix, key)
        {
            self.prepare(&entry).await?;
            return Ok(Base {
                entry: Some(entry),
                confirmed: false,
            });
        }
        self.confirmed_base(key).await
    }

    /// What the store holds of a key.
    pub(super) async fn confirmed_base(&self, key: &str) -> Result<Base, StatusError> {
        let got = self.backend.store.get(key).await.map_err(|e| self.store_error(e))?;
        if let Some(entry) = &got.entry {
            self.prepare(entry).await?;
        }
        Ok(Base {
            entry: got.entry,
            confirmed: true,
        })
    }

    /// What follows an attempt on `entry`: an answer, or another attempt on what is there now. What was not written,
    /// because of a refusal or because nothing changes, is told only of what the store has confirmed.
    pub(super) async fn after<T>(
        &self,
        entry: &Entry,
        confirmed: bool,
        attempt: Result<Attempt<T>, StatusError>,
    ) -> Result<ControlFlow<T, Base>, StatusError> {
        let told = match attempt {
            Ok(Attempt::Written(what)) => return Ok(ControlFlow::Break(what)),
            Ok(Attempt::Overtaken(entry)) => {
                if let Some(entry) = &entry {
                    self.prepare(entry).await?;
                }
                return Ok(ControlFlow::Continue(Base { entry, confirmed: true }));
            }
            Ok(Attempt::Uncertain(error)) => return Err(error),
            Ok(Attempt::Unwritten(what)) => Ok(what),
            Err(error) => Err(error),
        };
        if !confirmed {
            let now = self.confirmed_base(&entry.key).await?;
            if now.entry.as_ref().map(|now| now.mod_revision) != Some(entry.mod_revision) {
                return Ok(ControlFlow::Continue(now));
            }
        }
        told.map(ControlFlow::Break)
    }

    /// What validation found, behind what only authorizers and other objects know.
    pub(super) async fn confirmed(
        &self,
        context: &Context,
        write: Confirming<'_>,
        found: ErrorList,
    ) -> Result<ErrorList, StatusError> {
        let Some(answer) = self.strategy.confirm(context, write, !found.is_empty()) else {
            return Ok(found);
        };
        let mut errors = answer.await?;
        errors.extend(found);
        Ok(errors)
    }

    /// Calls the plug-ins that mutate, with the object itself.
    pub(super) async fn admit(
        &self,
        target: &Target<'_>,
        operation: Operation,
        new: &mut dyn Object,
        old: Option<&dyn Object>,
    ) -> Result<(), StatusError> {
        if target.chain(operation)?.mutating.is_empty() {
            return Ok(());
        }
        target
            .admit(operation, Some(&mut *new), old.map(|o| o as &dyn Kind))
            .await?;
        drop_repeated_owners(&target.context.warnings, new, OwnersRead::Admitted);
        Ok(())
    }

    /// 400 for an object that plug-ins have put into another namespace than that of the request.
    pub(super) fn confirm_namespace(&self, context: &Context, object: &dyn Object) -> Result<(), StatusError> {
        let namespace = &object.meta().namespace;
        match !self.hub.namespaced || namespace.is_empty() || *namespace == context.namespace {
            true => Ok(()),
            false => Err(StatusError::bad_request(OTHER_NAMESPACE)),
        }
    }

    /// Has the kind take what the write needs.
    pub(super) async fn reserve(&self, target: &Target<'_>, write: Reserving<'_>) -> Result<(), StatusError> {
        if let Some(answer) = self.strategy.reserve(target.context, write) {
            target.reserved.hold(answer.await?);
        }
        Ok(())
    }

    /// Has the kind give back, once the object is removed, what others may have then.
    pub(super) fn free(&self, target: &Target<'_>, object: &dyn Object) {
        if let Some(guard) = self.strategy.frees(target.context, object) {
            target.reserved.hold(guard);
        }
    }

    pub(super) fn verdict(&self, object: &dyn Object, errors: ErrorList) -> Result<(), StatusError> {
        if errors.is_empty() {
            return Ok(());
        }
        // Of objects that two groups share, faults are told in the name of the group that they are stored in.
        Err(StatusError::invalid(
            &self.hub.group,
            &self.hub.kind,
            &object.meta().name,
            &errors,
        ))
    }

    /// Writes a value. A lease that has ended by then is replaced: the object was to live on from now.
    pub(super) async fn put(
        &self,
        key: &str,
        expect: Expect,
        value: Bytes,
        mut lease: Lease,
    ) -> Result<Written, StoreError> {
        let store = &self.backend.store;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let id = match lease {
                Lease::Of(id) => id,
                Lease::New => match self.strategy.time_to_live() {
                    Some(ttl) => Some(store.grant(ttl).await?),
                    None => None,
                },
            };
            let value = value.clone();
            match store.write(key, expect, Write::Put { value, lease: id }).await {
                Err(StoreError::LeaseNotFound(_)) if attempts < MAX_LEASES => lease = Lease::New,
                done => return done,
            }
        }
    }

    /// Writes a value in the place of an entry and gives the object the revision of that.
    pub(super) async fn put_over(
        &self,
        entry: &Entry,
        value: Bytes,
        lease: Lease,
        object: &mut dyn Object,
    ) -> Attempt<()> {
        let expect = Expect::Revision(entry.mod_revision);
        let written = self.put(&entry.key, expect, value, lease).await;
        if let Ok(Written::Done { revision }) = &written {
            self.index_written(&entry.key, *revision, object);
        }
        self.attempt(written, object)
    }

    /// Removes an entry and gives the object the revision of that.
    pub(super) async fn remove_entry(&self, entry: &Entry, object: &mut dyn Object) -> Attempt<()> {
        let expect = Expect::Revision(entry.mod_revision);
        let written = self.backend.store.write(&entry.key, expect, Write::Delete).await;
        self.attempt(written, object)
    }

    fn attempt(&self, written: Result<Written, StoreError>, object: &mut dyn Object) -> Attempt<()> {
        match written {
            Ok(Written::Done { revision }) => {
                object.meta_mut().resource_version = revision.to_string();
                Attempt::Written(())
            }
            Ok(Written::Conflict { current, .. }) => Attempt::Overtaken(current),
            Err(error) => Attempt::Uncertain(self.store_error(error)),
        }
    }

    /// Marked as deleted, and nothing holds it any longer.
    pub(crate) fn is_finished(&self, object: &dyn Object) -> bool {
        let meta = object.meta();
        meta.deletion_timestamp.is_some()
            && meta.finalizers.is_empty()
            && meta.deletion_grace_period_seconds.unwrap_or(0) == 0
            && self.strategy.may_vanish(object)
    }

    /// The key of an object as failed preconditions tell it: of a dry run, which does not ask the store, without the
    /// prefix of all keys.
    pub fn told_key<'k>(&self, context: &Context, key: &'k str) -> &'k str {
        let (slashes, path) = ("//".len(), self.storage.storage_path.len());
        let prefix = self.key_prefix.len().saturating_sub(path + slashes);
        match context.dry_run {
            true => key.get(prefix..).unwrap_or(key),
            false => key,
        }
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

/// Names of finalizers without a domain that are none of those that kinds of Kubernetes may have.
pub fn standard_finalizers(meta: &ObjectMeta, path: &Path) -> ErrorList {
    let path = path.child("finalizers");
    let mut errors = ErrorList::new();
    for (index, finalizer) in meta.finalizers.iter().enumerate() {
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer.as_str()) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&path.index(index), finalizer.as_str(), detail));
        }
    }
    errors
}
