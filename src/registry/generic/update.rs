//! Updating objects.

use std::ops::ControlFlow;

use keelson_access::request_info::RequestInfo;
use keelson_base::cooperative::{Slices, aside};
use keelson_machinery::copy;
use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::object::Object;
use keelson_machinery::scheme::NameRule;
use keelson_machinery::status::StatusError;
use keelson_machinery::validation::{declarative, meta};
use keelson_storage::Entry;

use super::admission::Operation;
use super::create::Taken;
use super::write::{
    Attempt, Lease, OBJECT_MODIFIED, Part, Show, UpdateRequest, Updated, Updater, precondition_text,
    standard_finalizers,
};
use super::{
    ChangeOrder, Confirming, Context, Reserving, Resource, Target, error_order, immutable_fields, parse_revision,
};

/// How often a write is tried again when another writer was faster, before the client is told to retry.
const MAX_ATTEMPTS: usize = 64;
impl Resource {
    /// Updates an object, trying again while other writers are faster.
    pub(super) async fn update(
        &self,
        target: &Target<'_>,
        request: &UpdateRequest<'_>,
        updater: &mut dyn Updater,
    ) -> Result<Updated, StatusError> {
        let updated = self.update_attempts(target, request, updater).await;
        target.reserved.end().await;
        updated
    }

    async fn update_attempts(
        &self,
        target: &Target<'_>,
        request: &UpdateRequest<'_>,
        updater: &mut dyn Updater,
    ) -> Result<Updated, StatusError> {
        let (context, name) = (target.context, target.name);
        let key = self.key(&context.namespace, name)?;
        let warnings = context.warnings.borrow().len();
        let mut base = self.base(context, &key).await?;
        for _ in 0..MAX_ATTEMPTS {
            // What an attempt before this one warned of is said again.
            context.warnings.borrow_mut().truncate(warnings);
            target.reserved.end().await;
            let Some(entry) = &base.entry else {
                if let Ok(created) = self.create_on_update(target, request, updater).await? {
                    return Ok(created);
                }
                // Another writer was faster: what it has made is there to be updated.
                base = self.confirmed_base(&key).await?;
                continue;
            };
            let attempt = self.try_update(target, request, entry, updater).await;
            match self.after(entry, base.confirmed, attempt).await? {
                ControlFlow::Break(object) => return Ok(Updated { object, created: false }),
                ControlFlow::Continue(now) => base = now,
            }
        }
        Err(StatusError::conflict(&self.group, &self.plural, name, OBJECT_MODIFIED))
    }

    async fn create_on_update(
        &self,
        target: &Target<'_>,
        request: &UpdateRequest<'_>,
        updater: &mut dyn Updater,
    ) -> Result<Result<Updated, Taken>, StatusError> {
        let (context, name) = (target.context, target.name);
        let Some(asked) = request.creation else {
            return Err(self.not_found(name));
        };
        let mut object = updater.make(None).await?;
        if !object.meta().uid.is_empty() {
            let uid = &object.meta().uid;
            let detail = if request.uid_is_precondition {
                let key = self.key(&context.namespace, name)?;
                precondition_text(self.told_key(context, &key), uid, "")
            } else {
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found")
            };
            return Err(StatusError::conflict(&self.group, &self.plural, name, &detail));
        }
        parse_revision(&object.meta().resource_version).map_err(StatusError::unknown)?;
        let named = std::mem::take(&mut object.meta_mut().resource_version);
        let creation = RequestInfo {
            verb: "create".to_owned(),
            namespace: context.namespace.clone(),
            ..asked.clone()
        };
        let created = self.create_unless_there(target, object, Some(&creation)).await?;
        Ok(created.map(|mut object| {
            if context.dry_run {
                object.meta_mut().resource_version = named;
            }
            Updated { object, created: true }
        }))
    }

    async fn try_update(
        &self,
        target: &Target<'_>,
        request: &UpdateRequest<'_>,
        entry: &Entry,
        updater: &mut dyn Updater,
    ) -> Result<Attempt<Box<dyn Object>>, StatusError> {
        let context = target.context;
        // Between pieces that take long where the object is large.
        let mut slices = Slices::begin();
        self.check_readable(entry)?;
        let old = self.decode_base(entry)?;
        slices.between().await;
        let mut new = updater.make(Some(&*old)).await?;
        slices.between().await;
        self.track_update(context, request.part, &mut *new, &*old).await?;
        slices.between().await;
        if request.shown.is_none() {
            self.admit(target, Operation::Update, &mut *new, Some(&*old)).await?;
        }
        if request.part != Part::Internal
            && let Some(answer) = self.strategy.authorize(context, &*new, Some(&*old))
        {
            answer.await?;
        }
        self.check_preconditions(target, request, (&*new, &*old), entry)?;
        self.confirm_namespace(context, &*new)?;
        // An update that names no version is one of the newest.
        new.meta_mut().resource_version = entry.mod_revision.to_string();
        let (part, old_object) = (request.part, Some(&*old));
        let reserving = Reserving {
            part,
            new: &mut *new,
            old: old_object,
        };
        self.reserve(target, reserving).await?;
        self.prepare_update(context, part, &mut *new, &*old);
        slices.between().await;
        self.check_update(context, part, (&*new, &*old), &mut slices).await?;
        slices.between().await;
        // Of what is valid clients are warned also where a plug-in refuses it.
        if request.part == Part::Main {
            let warnings = self.strategy.warnings(&*new, Some(&*old));
            context.warnings.borrow_mut().extend(warnings);
        }
        self.validate_update(target, request.shown, &mut *new, &*old).await?;
        if self.is_finished(&*new) {
            return self.remove_finished(target, entry, new, &*old).await;
        }
        slices.between().await;
        let value = self.encode(&mut *new).await?;
        slices.between().await;
        if context.dry_run || self.holds(entry, &value)? {
            new.meta_mut().resource_version = entry.mod_revision.to_string();
            return self.as_read(new, part).await.map(Attempt::Unwritten);
        }
        let lease = match entry.lease {
            Some(_) => Lease::New,
            None => Lease::Of(None),
        };
        let value = self.seal(&entry.key, &value)?;
        let writing = target.reserved.writing();
        let attempt = self.put_over(entry, value, lease, &mut *new).await;
        writing.end(&attempt);
        match attempt {
            // What is written must not be tried again, whatever becomes of the answer.
            Attempt::Written(()) => Ok(self
                .as_read(new, part)
                .await
                .map_or_else(Attempt::Uncertain, Attempt::Written)),
            other => Ok(other.map(|()| new)),
        }
    }

    /// Calls the plug-ins that validate, with the object or with what is shown in its place.
    async fn validate_update(
        &self,
        target: &Target<'_>,
        shown: Option<Show<'_>>,
        new: &mut dyn Object,
        old: &dyn Object,
    ) -> Result<(), StatusError> {
        let operation = Operation::Update;
        if target.chain(operation)?.validating.is_empty() {
            return Ok(());
        }
        let Some(show) = shown else {
            return target.validate(operation, Some(new), Some(old)).await;
        };
        let (mut new, old) = (show(new)?, show(old)?);
        target.validate(operation, Some(&mut *new), Some(&*old)).await
    }

    /// The resource version and uid that the client named must be those of the stored object.
    fn check_preconditions(
        &self,
        target: &Target<'_>,
        request: &UpdateRequest<'_>,
        (new, old): (&dyn Object, &dyn Object),
        entry: &Entry,
    ) -> Result<(), StatusError> {
        let (wanted, uid) = (&new.meta().resource_version, &new.meta().uid);
        if request.uid_is_precondition && !uid.is_empty() && *uid != old.meta().uid {
            let key = self.told_key(target.context, &entry.key);
            let detail = precondition_text(key, uid, &old.meta().uid);
            return Err(StatusError::conflict(&self.group, &self.plural, target.name, &detail));
        }
        match parse_revision(wanted).map_err(StatusError::unknown)? {
            Some(revision) if revision != entry.mod_revision => Err(StatusError::conflict(
                &self.group,
                &self.plural,
                target.name,
                OBJECT_MODIFIED,
            )),
            None if self.hub.conditional_update => {
                let path = Path::new("metadata").child("resourceVersion");
                let errors = FieldError::invalid(&path, 0, "must be specified for an update").into();
                Err(StatusError::invalid(&self.group, &self.plural, target.name, &errors))
            }
            _ => Ok(()),
        }
    }

    /// Puts back what this write may not change.
    fn prepare_update(&self, context: &Context, part: Part<'_>, new: &mut dyn Object, old: &dyn Object) {
        let link = context.dry_run.then(|| std::mem::take(&mut new.meta_mut().self_link));
        keep_system_fields(new, old);
        // What is not stored is not forgotten either.
        new.meta_mut().self_link = link.unwrap_or_default();
        match part {
            Part::Main => {
                if self.has_status() {
                    keep_field(new, old, "status");
                }
                self.strategy.prepare_for_update(context, new, old);
                self.count_generation(new, old);
            }
            Part::Status => {
                keep_all_but(new, old, &["metadata", "status"]);
                self.strategy.prepare_for_status_update(context, new, old);
            }
            Part::Named(subresource) => self.strategy.prepare_for_subresource(context, subresource, new, old),
            Part::Internal => {}
        }
    }

    /// Counts a change of anything but metadata and a status that is written apart, for kinds that count them.
    fn count_generation(&self, new: &mut dyn Object, old: &dyn Object) {
        if !self.hub.generation {
            return;
        }
        let apart = self.has_status();
        let same = |index: usize, name: &str| {
            name == "metadata"
                || (apart && name == "status")
                || equality::equal_field(new.as_reflect(), old.as_reflect(), index)
        };
        let unchanged = new.desc().fields.iter().enumerate().all(|(i, f)| same(i, &f.json))
            && equality::equal_rest(new.as_reflect(), old.as_reflect());
        if !unchanged {
            new.meta_mut().generation = old.meta().generation + 1;
        }
    }

    async fn check_update(
        &self,
        context: &Context,
        part: Part<'_>,
        (new, old): (&dyn Object, &dyn Object),
        slices: &mut Slices,
    ) -> Result<(), StatusError> {
        if part == Part::Internal {
            return Ok(());
        }
        let path = Path::new("metadata");
        // Whether a name is one of the kind is looked at when it is new.
        let mut errors = meta::validate_object_meta(new.meta(), self.hub.namespaced, NameRule::PathSegment, &path);
        let changes = meta::validate_object_meta_update(new.meta(), old.meta(), &path);
        errors.extend(changes.clone());
        let (mut whole, mut change) = self.repeated_checks(part, new, changes);
        let (now, before) = (new.as_reflect(), Some(old.as_reflect()));
        let declared = declarative::validate_with(now, before, &Path::root(), &self.checks);
        slices.between().await;
        if let Some(prepared) = self.strategy.prepared_validation() {
            prepared.await;
        }
        let coded = match part {
            Part::Status => self.strategy.validate_status_update(context, new, old),
            Part::Named(name) => self.strategy.validate_subresource(context, name, new, old),
            Part::Main | Part::Internal => match self.strategy.long_validation(new, Some(old)) {
                Some(work) => aside(work).await,
                None => self.strategy.validate(context, new, Some(old)),
            },
        };
        slices.between().await;
        let order = self.strategy.order_of_fields();
        let mut coded = error_order::merged(new.desc(), order, declared, coded);
        let mut of_change = match part {
            Part::Main => self.strategy.validate_change(context, new, old),
            _ => ErrorList::default(),
        };
        slices.between().await;
        let order = self.metadata_checks.order;
        // Through subresources the metadata is always looked at first.
        if part == Part::Main && order != ChangeOrder::MetadataFirst {
            whole.extend(std::mem::take(&mut coded));
            change.extend(std::mem::take(&mut of_change));
        }
        let found = match order {
            ChangeOrder::ChangeFirst => [change, whole, of_change, coded],
            _ => [whole, change, coded, of_change],
        };
        found.into_iter().for_each(|found| errors.extend(found));
        errors.extend(immutable_fields::faults(&self.kept, new, old));
        slices.between().await;
        let write = Confirming {
            part,
            new,
            old: Some(old),
        };
        let errors = self.confirmed(context, write, errors).await?;
        self.verdict(new, errors)
    }

    /// What the rules of the kind check of the metadata once more: the metadata as a whole, and what changed in it.
    fn repeated_checks(&self, part: Part<'_>, new: &dyn Object, changes: ErrorList) -> (ErrorList, ErrorList) {
        let again = match part {
            Part::Status => self.metadata_checks.status,
            Part::Named(_) => self.metadata_checks.subresource,
            Part::Main | Part::Internal => self.metadata_checks.update,
        };
        let path = Path::new("metadata");
        let finalizers = match self.metadata_checks.standard_finalizers {
            true => standard_finalizers(new.meta(), &path),
            false => ErrorList::default(),
        };
        let (mut whole, mut change) = (ErrorList::new(), ErrorList::new());
        if again.whole {
            whole = meta::validate_object_meta(new.meta(), self.hub.namespaced, self.hub.names, &path);
            whole.extend(finalizers.clone());
        }
        if again.change {
            change.extend(changes);
            change.extend(finalizers);
        }
        (whole, change)
    }

    async fn remove_finished(
        &self,
        target: &Target<'_>,
        entry: &Entry,
        mut new: Box<dyn Object>,
        old: &dyn Object,
    ) -> Result<Attempt<Box<dyn Object>>, StatusError> {
        if target.context.dry_run {
            return Ok(Attempt::Unwritten(new));
        }
        // What the object would have got as it goes is given back with it.
        target.reserved.end().await;
        self.free(target, old);
        let writing = target.reserved.writing();
        let attempt = self.remove_entry(entry, &mut *new).await;
        writing.end(&attempt);
        Ok(match attempt {
            // Another writer has removed it, which is what this write is for.
            Attempt::Overtaken(None) => Attempt::Written(new),
            done => done.map(|()| new),
        })
    }
}

/// Fields of metadata that no client sets.
fn keep_system_fields(new: &mut dyn Object, old: &dyn Object) {
    let (new, old) = (new.meta_mut(), old.meta());
    new.generation = old.generation;
    if new.uid.is_empty() {
        new.uid.clone_from(&old.uid);
    }
    new.creation_timestamp = old.creation_timestamp;
    new.self_link.clear();
    if new.namespace.is_empty() || old.namespace.is_empty() {
        new.namespace.clone_from(&old.namespace);
    }
    if old.deletion_timestamp.is_some() {
        new.deletion_timestamp.clone_from(&old.deletion_timestamp);
    }
    if old.deletion_grace_period_seconds.is_some() && new.deletion_grace_period_seconds.is_none() {
        new.deletion_grace_period_seconds = old.deletion_grace_period_seconds;
    }
}

fn keep_field(new: &mut dyn Object, old: &dyn Object, name: &str) {
    if let Some((index, _)) = new.desc().field(name) {
        copy::copy_field(new.as_reflect_mut(), old.as_reflect(), index);
    }
}

fn keep_all_but(new: &mut dyn Object, old: &dyn Object, names: &[&str]) {
    for (index, field) in old.desc().fields.iter().enumerate() {
        // What was not changed, as in most writes of a status, is compared faster than copied.
        if !names.contains(&field.json.as_str())
            && !equality::identical(new.as_reflect().get(index), old.as_reflect().get(index))
        {
            copy::copy_field(new.as_reflect_mut(), old.as_reflect(), index);
        }
    }
    copy::copy_rest(new.as_reflect_mut(), old.as_reflect());
}
