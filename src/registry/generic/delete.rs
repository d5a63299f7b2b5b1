//! Deleting objects: preconditions, grace, finalizers, propagation policies.

use std::ops::ControlFlow;

use keelson_machinery::meta::v1::DeleteOptions;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_storage::{Entry, Write, Written};

use super::admission::Operation;
use super::mark_and_remove::mark_and_remove;
use super::write::{Attempt, Base, Lease, OBJECT_MODIFIED};
use super::{Context, Resource, Target, grace};

/// Finalizer that asks the garbage collector to leave dependents alone.
pub const FINALIZER_ORPHAN: &str = "orphan";
/// Finalizer that asks the garbage collector to delete dependents first.
pub const FINALIZER_FOREGROUND: &str = "foregroundDeletion";

const MAX_ATTEMPTS: usize = 64;

/// What a deletion came to.
pub struct Deleted {
    /// The object as it was last, or as it stays.
    pub object: Box<dyn Object>,
    /// It is gone.
    pub gone: bool,
}

/// What to do with an object that shall be deleted.
enum Step {
    Remove,
    /// Write the marked object; then remove it if so said.
    Mark {
        then_remove: bool,
    },
    /// It is being deleted already; nothing changes.
    Leave,
}

impl Resource {
    /// Deletes one object, trying again while others change it.
    pub(super) async fn delete(&self, target: &Target<'_>, options: &DeleteOptions) -> Result<Deleted, StatusError> {
        let refusal = self.strategy.refuses_deletion(target.name).filter(|_| !target.unnamed);
        if let Some(why) = refusal {
            return Err(StatusError::forbidden(&self.group, &self.plural, target.name, why));
        }
        let deleted = self.delete_attempts(target, options).await;
        target.reserved.end().await;
        let mut deleted = deleted?;
        if deleted.gone {
            self.strategy.decorate(&mut *deleted.object);
        }
        Ok(deleted)
    }

    async fn delete_attempts(&self, target: &Target<'_>, options: &DeleteOptions) -> Result<Deleted, StatusError> {
        let name = target.name;
        let key = self.key(&target.context.namespace, name)?;
        let mut base = self.base(target.context, &key).await?;
        for _ in 0..MAX_ATTEMPTS {
            let Base {
                entry: Some(entry),
                confirmed,
            } = &base
            else {
                return Err(self.not_found(name));
            };
            target.reserved.end().await;
            let attempt = self.try_delete(target, entry, options).await;
            match self.after(entry, *confirmed, attempt).await? {
                ControlFlow::Break(deleted) => return Ok(deleted),
                ControlFlow::Continue(now) => base = now,
            }
        }
        Err(StatusError::conflict(&self.group, &self.plural, name, OBJECT_MODIFIED))
    }

    async fn try_delete(
        &self,
        target: &Target<'_>,
        entry: &Entry,
        options: &DeleteOptions,
    ) -> Result<Attempt<Deleted>, StatusError> {
        self.check_readable(entry)?;
        let mut object = self.decode_base(entry)?;
        self.check_delete_preconditions(&*object, options)?;
        target.admit(Operation::Delete, None, Some(&*object)).await?;
        target.validate(Operation::Delete, None, Some(&*object)).await?;
        let step = self.plan_delete(target.context, &mut *object, options);
        if let Step::Leave = step {
            return Ok(Attempt::Unwritten(Deleted { object, gone: false }));
        }
        if let Step::Mark { then_remove: true } = step {
            // Its end is admitted too, of the object as it was marked.
            target.admit(Operation::Delete, None, Some(&*object)).await?;
            target.validate(Operation::Delete, None, Some(&*object)).await?;
        }
        if !matches!(step, Step::Mark { then_remove: false }) {
            self.free(target, &*object);
        }
        let writing = target.reserved.writing();
        let attempt = match step {
            Step::Mark { then_remove: false } => self.mark(target.context, entry, object).await?,
            Step::Mark { then_remove: true } => self.mark_and_remove(target.context, entry, object, options).await?,
            _ => self.remove(target.context, entry, object).await,
        };
        writing.end(&attempt);
        Ok(attempt)
    }

    /// Watchers see the mark before the object goes, as with a grace period that has run out.
    async fn mark_and_remove(
        &self,
        context: &Context,
        entry: &Entry,
        mut object: Box<dyn Object>,
        options: &DeleteOptions,
    ) -> Result<Attempt<Deleted>, StatusError> {
        let value = self.encode(&mut *object).await?;
        if context.dry_run {
            return Ok(Attempt::Unwritten(Deleted { object, gone: true }));
        }
        let mark = Write::Put {
            value: self.seal(&entry.key, &value)?,
            lease: entry.lease,
        };
        let done = mark_and_remove(self.backend.store.clone(), entry, mark).await;
        let removed = match done.marked {
            Ok(Written::Done { revision }) => {
                object.meta_mut().resource_version = revision.to_string();
                done.removed
            }
            Ok(Written::Conflict { current, .. }) => return Ok(Attempt::Overtaken(current)),
            Err(error) => return Ok(Attempt::Uncertain(self.store_error(error))),
        };
        match removed {
            Ok(Written::Done { revision }) => {
                object.meta_mut().resource_version = revision.to_string();
                Ok(Attempt::Written(Deleted { object, gone: true }))
            }
            Ok(Written::Conflict { current, .. }) => self.remove_marked(object, current, options).await,
            Err(error) => Ok(Attempt::Uncertain(self.store_error(error))),
        }
    }

    /// Removes an object that this deletion has marked and others have written since. If they have removed it, that is
    /// what was asked for.
    async fn remove_marked(
        &self,
        marked: Box<dyn Object>,
        mut current: Option<Entry>,
        options: &DeleteOptions,
    ) -> Result<Attempt<Deleted>, StatusError> {
        for _ in 0..MAX_ATTEMPTS {
            let now = match &current {
                Some(entry) => {
                    self.prepare(entry).await?;
                    Some((entry, self.decode_base(entry)?))
                }
                None => None,
            };
            let Some((entry, mut now)) = now.filter(|(_, now)| now.meta().uid == marked.meta().uid) else {
                return Ok(Attempt::Written(Deleted {
                    object: marked,
                    gone: true,
                }));
            };
            if !self.is_finished(&*now) || self.check_delete_preconditions(&*now, options).is_err() {
                break;
            }
            match self.remove_entry(entry, &mut *now).await {
                Attempt::Overtaken(by) => current = by,
                done => {
                    return Ok(done.map(|()| Deleted {
                        object: now,
                        gone: true,
                    }));
                }
            }
        }
        Ok(Attempt::Overtaken(current))
    }

    /// Marks the object in place as far as it stays, and says what is to be done.
    fn plan_delete(&self, context: &Context, object: &mut dyn Object, options: &DeleteOptions) -> Step {
        if self.strategy.is_deletion_settled(object) {
            return Step::Leave;
        }
        if self.strategy.begin_deletion(context, object) {
            return Step::Mark { then_remove: false };
        }
        let grace = match self.strategy.grace_seconds(object, options) {
            None => None,
            // What was marked then is removed now: that deletion was interrupted.
            Some(_) if grace::is_over(object.meta()) => None,
            Some(_) if object.meta().deletion_timestamp.is_some() => {
                match grace::shorten(object, options, context.now) {
                    Some(seconds) => Some(seconds),
                    None => return Step::Leave,
                }
            }
            Some(seconds) => {
                grace::start(object, context.now, seconds);
                Some(seconds)
            }
        };
        let finalizers = self.finalizers_for(object, options);
        object.meta_mut().finalizers = finalizers;
        let held = !object.meta().finalizers.is_empty() || !self.strategy.may_vanish(object);
        match grace {
            None if held => {
                if grace::mark(object, context.now) {
                    self.strategy.prepare_for_deletion(object);
                }
                Step::Mark { then_remove: false }
            }
            None => Step::Remove,
            Some(seconds) => Step::Mark {
                then_remove: !held && seconds == 0,
            },
        }
    }

    /// The uid and resource version that the client named must be those of the object.
    pub fn check_delete_preconditions(&self, object: &dyn Object, options: &DeleteOptions) -> Result<(), StatusError> {
        let Some(wanted) = &options.preconditions else {
            return Ok(());
        };
        let meta = object.meta();
        let failed = |what, wanted: Option<&String>, found: &str, guess| {
            let wanted = wanted.filter(|w| *w != found)?;
            Some(self.failed_precondition(&meta.name, what, wanted, found, guess))
        };
        let uid = failed("UID", wanted.uid.as_ref(), &meta.uid, "deleted and then recreated");
        let version = || {
            let (wanted, found) = (wanted.resource_version.as_ref(), &meta.resource_version);
            failed("ResourceVersion", wanted, found, "modified")
        };
        uid.or_else(version).map_or(Ok(()), Err)
    }

    fn failed_precondition(&self, name: &str, what: &str, wanted: &str, found: &str, guess: &str) -> StatusError {
        if let Some(text) = self.strategy.failed_precondition(what, wanted, found) {
            return StatusError::conflict(&self.group, &self.plural, name, text);
        }
        let text = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). \
             The object might have been {guess}"
        );
        StatusError::conflict(&self.hub.group, &self.hub.kind, name, text)
    }

    /// The finalizers after the propagation policy has put its own in or taken it out.
    fn finalizers_for(&self, object: &dyn Object, options: &DeleteOptions) -> Vec<String> {
        let old = &object.meta().finalizers;
        if !self.strategy.has_dependents() {
            return old.clone();
        }
        let policy = self.propagation(old, options);
        let mut new: Vec<String> = old
            .iter()
            .filter(|f| *f != FINALIZER_ORPHAN && *f != FINALIZER_FOREGROUND)
            .cloned()
            .collect();
        match policy {
            Propagation::Orphan => new.push(FINALIZER_ORPHAN.into()),
            Propagation::Foreground => new.push(FINALIZER_FOREGROUND.into()),
            Propagation::Background => {}
        }
        // The same set stays in its order.
        let same = new.len() == old.len() && new.iter().all(|f| old.contains(f));
        if same { old.clone() } else { new }
    }

    fn propagation(&self, finalizers: &[String], options: &DeleteOptions) -> Propagation {
        if let Some(orphan) = options.orphan_dependents {
            return if orphan {
                Propagation::Orphan
            } else {
                Propagation::Background
            };
        }
        match options.propagation_policy.as_deref() {
            Some("Orphan") => return Propagation::Orphan,
            Some("Foreground") => return Propagation::Foreground,
            Some(_) => return Propagation::Background,
            None => {}
        }
        for finalizer in finalizers {
            match finalizer.as_str() {
                FINALIZER_ORPHAN => return Propagation::Orphan,
                FINALIZER_FOREGROUND => return Propagation::Foreground,
                _ => {}
            }
        }
        if self.strategy.orphans_by_default() {
            Propagation::Orphan
        } else {
            Propagation::Background
        }
    }

    async fn remove(&self, context: &Context, entry: &Entry, mut object: Box<dyn Object>) -> Attempt<Deleted> {
        let written = match context.dry_run {
            true => Attempt::Unwritten(()),
            false => self.remove_entry(entry, &mut *object).await,
        };
        written.map(|()| Deleted { object, gone: true })
    }

    async fn mark(
        &self,
        context: &Context,
        entry: &Entry,
        mut object: Box<dyn Object>,
    ) -> Result<Attempt<Deleted>, StatusError> {
        let value = self.encode(&mut *object).await?;
        if context.dry_run || self.holds(entry, &value)? {
            return Ok(Attempt::Unwritten(Deleted { object, gone: false }));
        }
        let value = self.seal(&entry.key, &value)?;
        let lease = Lease::Of(entry.lease);
        let marked = self.put_over(entry, value, lease, &mut *object).await;
        Ok(marked.map(|()| Deleted { object, gone: false }))
    }
}

enum Propagation {
    Orphan,
    Foreground,
    Background,
}
