//! Creating and updating objects.

use keelson_machinery::copy;
use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_machinery::time::Time;
use keelson_machinery::validation::{declarative, meta};
use keelson_storage::{Entry, Expect, LeaseId, Revision, Write, Written};

use super::delete::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};
use super::managed::Tracking;
use super::{Context, Resource, Stored, parse_revision};

/// How often a write is tried again when another writer was faster, before the client is told to retry.
const MAX_ATTEMPTS: usize = 64;
/// How many generated names are tried.
const MAX_GENERATED_NAMES: usize = 8;
/// Generated names end in so many random characters, of these.
const SUFFIX_LENGTH: usize = 5;
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The longest base a generated name keeps (63 characters in all).
const MAX_GENERATED_BASE: usize = 63 - SUFFIX_LENGTH;

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
    /// Creates an object (hub version); the answer has its final metadata.
    pub async fn create(&self, context: &Context, mut object: Box<dyn Object>) -> Result<Box<dyn Object>, StatusError> {
        // What is no version counts as none.
        if matches!(parse_revision(&object.meta().resource_version), Ok(Some(_))) {
            return Err(StatusError::unknown(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        if !matches!(context.tracking, Tracking::Done) {
            wipe_system_fields(&mut *object);
        }
        object.meta_mut().self_link.clear();
        self.track_create(context, &mut *object)?;
        let generated = object.meta().name.is_empty() && !object.meta().generate_name.is_empty();
        self.fill_metadata(context, &mut *object);
        let attempts = if generated { MAX_GENERATED_NAMES } else { 1 };
        for attempt in 1..=attempts {
            if generated {
                self.generate_name(&mut *object);
            }
            self.strategy.prepare_for_create(context, &mut *object);
            self.check_create(context, &*object)?;
            match self.insert(context, &*object).await? {
                Ok(revision) => {
                    object.meta_mut().resource_version = revision.map(|r| r.to_string()).unwrap_or_default();
                    return Ok(object);
                }
                Err(name) if attempt == attempts => {
                    return Err(self.exists_already(&object.meta().namespace, &name).await);
                }
                Err(_) => {}
            }
        }
        Err(StatusError::already_exists(
            self.group,
            self.plural,
            &object.meta().name,
        ))
    }

    /// 409 for a name that is taken; the client is told when that will end.
    async fn exists_already(&self, namespace: &str, name: &str) -> StatusError {
        let mut error = StatusError::already_exists(self.group, self.plural, name);
        let going = |stored: &Stored| stored.object.meta().deletion_timestamp.is_some();
        if let Ok(Some(stored)) = self.find(namespace, name).await
            && going(&stored)
        {
            error.message = format!("object is being deleted: {}", error.message);
        }
        error
    }

    /// What a new object gets from the system.
    fn fill_metadata(&self, context: &Context, object: &mut dyn Object) {
        let uid = self.backend.new_uid();
        let meta = object.meta_mut();
        meta.creation_timestamp = context.now.truncate_to_seconds();
        meta.uid = uid;
        if self.hub.namespaced {
            meta.namespace.clone_from(&context.namespace);
        } else {
            meta.namespace.clear();
        }
        if self.hub.generation {
            meta.generation = 1;
        }
        if self.has_status() && !self.strategy.keeps_new_status() {
            clear_field(object, "status");
        }
    }

    fn check_create(&self, context: &Context, object: &dyn Object) -> Result<(), StatusError> {
        let mut errors = meta::validate_object_meta(
            object.meta(),
            self.hub.namespaced,
            self.hub.names,
            &Path::new("metadata"),
        );
        if self.is_builtin() {
            errors.extend(builtin_finalizers(object, &Path::new("metadata")));
        }
        errors.extend(declarative::validate(object.as_reflect(), None, &Path::root()));
        errors.extend(self.strategy.validate(context, object));
        self.verdict(object, errors)
    }

    fn verdict(&self, object: &dyn Object, errors: ErrorList) -> Result<(), StatusError> {
        if errors.is_empty() {
            return Ok(());
        }
        Err(StatusError::invalid(
            self.group,
            self.hub.kind,
            &object.meta().name,
            &errors,
        ))
    }

    /// Writes a new object. The inner error is the name that exists already; no revision for a dry run.
    async fn insert(
        &self,
        context: &Context,
        object: &dyn Object,
    ) -> Result<Result<Option<Revision>, String>, StatusError> {
        let name = object.meta().name.clone();
        let key = self.key(&object.meta().namespace, &name)?;
        let value = self.encode(object)?;
        let store = &self.backend.store;
        if context.dry_run {
            let got = store.get(&key).await.map_err(|e| self.store_error(e))?;
            return Ok(if got.entry.is_some() { Err(name) } else { Ok(None) });
        }
        let lease = self.lease().await?;
        let write = Write::Put {
            value: value.into(),
            lease,
        };
        match store
            .write(&key, Expect::Absent, write)
            .await
            .map_err(|e| self.store_error(e))?
        {
            Written::Done { revision, .. } => Ok(Ok(Some(revision))),
            Written::Conflict { .. } => Ok(Err(name)),
        }
    }

    /// The lease of kinds that live for a limited time.
    async fn lease(&self) -> Result<Option<LeaseId>, StatusError> {
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

    /// Updates an object, trying again while other writers are faster.
    pub async fn update(
        &self,
        context: &Context,
        request: &UpdateRequest<'_>,
        updater: Updater<'_>,
    ) -> Result<Updated, StatusError> {
        let key = self.key(&context.namespace, request.name)?;
        for _ in 0..MAX_ATTEMPTS {
            let got = self.backend.store.get(&key).await.map_err(|e| self.store_error(e))?;
            let Some(entry) = got.entry else {
                return self.create_on_update(context, request, updater).await;
            };
            if let Some(object) = self.try_update(context, request, &entry, updater).await? {
                return Ok(Updated { object, created: false });
            }
        }
        Err(StatusError::conflict(
            self.group,
            self.plural,
            request.name,
            OBJECT_MODIFIED,
        ))
    }

    async fn create_on_update(
        &self,
        context: &Context,
        request: &UpdateRequest<'_>,
        updater: Updater<'_>,
    ) -> Result<Updated, StatusError> {
        if !request.may_create {
            return Err(self.not_found(request.name));
        }
        let mut object = updater(None)?;
        if !object.meta().uid.is_empty() {
            let uid = &object.meta().uid;
            let detail = if request.uid_is_precondition {
                precondition_text(&self.key(&context.namespace, request.name)?, uid, "")
            } else {
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found")
            };
            return Err(StatusError::conflict(self.group, self.plural, request.name, &detail));
        }
        parse_revision(&object.meta().resource_version).map_err(StatusError::unknown)?;
        let named = std::mem::take(&mut object.meta_mut().resource_version);
        let mut object = self.create(context, object).await?;
        if context.dry_run {
            object.meta_mut().resource_version = named;
        }
        Ok(Updated { object, created: true })
    }

    /// One attempt; `None`: the object changed meanwhile.
    async fn try_update(
        &self,
        context: &Context,
        request: &UpdateRequest<'_>,
        entry: &Entry,
        updater: Updater<'_>,
    ) -> Result<Option<Box<dyn Object>>, StatusError> {
        let old = self.decode(entry)?;
        let mut new = updater(Some(&*old))?;
        self.check_preconditions(request, &*new, &*old, entry)?;
        self.track_update(context, request.part, &mut *new, &*old)?;
        // An update that names no version is one of the newest.
        new.meta_mut().resource_version = entry.mod_revision.to_string();
        self.prepare_update(context, request.part, &mut *new, &*old);
        self.check_update(context, request.part, &*new, &*old)?;
        if self.is_finished(&*new) {
            return self.remove_finished(context, entry, new).await;
        }
        let value = self.encode(&*new)?;
        if value == entry.value || context.dry_run {
            new.meta_mut().resource_version = entry.mod_revision.to_string();
            return Ok(Some(new));
        }
        let lease = if entry.lease.is_some() {
            self.lease().await?
        } else {
            None
        };
        let write = Write::Put {
            value: value.into(),
            lease,
        };
        let expect = Expect::Revision(entry.mod_revision);
        match self
            .backend
            .store
            .write(&entry.key, expect, write)
            .await
            .map_err(|e| self.store_error(e))?
        {
            Written::Done { revision, .. } => {
                new.meta_mut().resource_version = revision.to_string();
                Ok(Some(new))
            }
            Written::Conflict { .. } => Ok(None),
        }
    }

    /// The resource version and uid that the client named must be those of the stored object.
    fn check_preconditions(
        &self,
        request: &UpdateRequest<'_>,
        new: &dyn Object,
        old: &dyn Object,
        entry: &Entry,
    ) -> Result<(), StatusError> {
        let name = request.name;
        let (wanted, uid) = (&new.meta().resource_version, &new.meta().uid);
        if request.uid_is_precondition && !uid.is_empty() && *uid != old.meta().uid {
            let detail = precondition_text(&entry.key, uid, &old.meta().uid);
            return Err(StatusError::conflict(self.group, self.plural, name, &detail));
        }
        match parse_revision(wanted).map_err(StatusError::unknown)? {
            Some(revision) if revision != entry.mod_revision => {
                Err(StatusError::conflict(self.group, self.plural, name, OBJECT_MODIFIED))
            }
            None if self.hub.conditional_update => {
                let path = Path::new("metadata").child("resourceVersion");
                let errors = FieldError::invalid(&path, 0, "must be specified for an update").into();
                Err(StatusError::invalid(self.group, self.plural, name, &errors))
            }
            _ => Ok(()),
        }
    }

    /// Puts back what this write may not change.
    fn prepare_update(&self, context: &Context, part: Part, new: &mut dyn Object, old: &dyn Object) {
        keep_system_fields(new, old);
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

    /// Counts a change of anything but metadata and status, for kinds that count them.
    fn count_generation(&self, new: &mut dyn Object, old: &dyn Object) {
        if !self.hub.generation {
            return;
        }
        let same = |index: usize, name: &str| {
            matches!(name, "metadata" | "status") || equality::equal_field(new.as_reflect(), old.as_reflect(), index)
        };
        let unchanged = new.desc().fields.iter().enumerate().all(|(i, f)| same(i, f.json));
        if !unchanged {
            new.meta_mut().generation = old.meta().generation + 1;
        }
    }

    fn check_update(
        &self,
        context: &Context,
        part: Part,
        new: &dyn Object,
        old: &dyn Object,
    ) -> Result<(), StatusError> {
        if part == Part::Internal {
            return Ok(());
        }
        let path = Path::new("metadata");
        let mut errors = meta::validate_object_meta(new.meta(), self.hub.namespaced, self.hub.names, &path);
        let changes = meta::validate_object_meta_update(new.meta(), old.meta(), &path);
        if self.is_builtin() {
            // The rules of built-in kinds check the metadata once more, and clients see each cause twice.
            let again = errors.clone();
            errors.extend(again);
            errors.extend(changes.clone());
            let finalizers = builtin_finalizers(new, &path);
            errors.extend(finalizers.clone());
            errors.extend(finalizers);
        }
        errors.extend(changes);
        errors.extend(declarative::validate(
            new.as_reflect(),
            Some(old.as_reflect()),
            &Path::root(),
        ));
        errors.extend(match part {
            Part::Status => self.strategy.validate_status_update(context, new, old),
            Part::Named(name) => self.strategy.validate_subresource(context, name, new, old),
            Part::Main | Part::Internal => self.strategy.validate_update(context, new, old),
        });
        self.verdict(new, errors)
    }

    /// Marked as deleted, and nothing holds it any longer.
    pub(crate) fn is_finished(&self, object: &dyn Object) -> bool {
        let meta = object.meta();
        meta.deletion_timestamp.is_some()
            && meta.finalizers.is_empty()
            && meta.deletion_grace_period_seconds.unwrap_or(0) == 0
            && self.strategy.may_vanish(object)
    }

    async fn remove_finished(
        &self,
        context: &Context,
        entry: &Entry,
        mut new: Box<dyn Object>,
    ) -> Result<Option<Box<dyn Object>>, StatusError> {
        if context.dry_run {
            return Ok(Some(new));
        }
        let expect = Expect::Revision(entry.mod_revision);
        match self
            .backend
            .store
            .write(&entry.key, expect, Write::Delete)
            .await
            .map_err(|e| self.store_error(e))?
        {
            Written::Done { revision, .. } => {
                new.meta_mut().resource_version = revision.to_string();
                Ok(Some(new))
            }
            Written::Conflict { .. } => Ok(None),
        }
    }

    /// A kind of Kubernetes itself, whose rules are a little stricter than those of everybody's kinds.
    fn is_builtin(&self) -> bool {
        (self.hub.message)().name.starts_with("io.k8s.")
    }

    pub(crate) fn has_status(&self) -> bool {
        self.hub.subresources.iter().any(|s| s.name == "status")
    }

    fn generate_name(&self, object: &mut dyn Object) {
        let mut random = [0u8; SUFFIX_LENGTH];
        self.backend.entropy.fill(&mut random);
        let meta = object.meta_mut();
        let base: String = meta.generate_name.chars().take(MAX_GENERATED_BASE).collect();
        let suffix = random
            .iter()
            .map(|b| char::from(SUFFIX_ALPHABET[usize::from(*b) % SUFFIX_ALPHABET.len()]));
        meta.name = base.chars().chain(suffix).collect();
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

/// Finalizers without a domain that built-in kinds may have.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", FINALIZER_ORPHAN, FINALIZER_FOREGROUND];

fn builtin_finalizers(object: &dyn Object, path: &Path) -> ErrorList {
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

/// What a new object may not bring along.
fn wipe_system_fields(object: &mut dyn Object) {
    let meta = object.meta_mut();
    meta.uid.clear();
    meta.creation_timestamp = Time::default();
    meta.deletion_timestamp = None;
    meta.deletion_grace_period_seconds = None;
}

fn keep_field(new: &mut dyn Object, old: &dyn Object, name: &str) {
    if let Some((index, _)) = new.desc().field(name) {
        copy::copy_field(new.as_reflect_mut(), old.as_reflect(), index);
    }
}

fn keep_all_but(new: &mut dyn Object, old: &dyn Object, names: &[&str]) {
    for (index, field) in new.desc().fields.iter().enumerate() {
        if !names.contains(&field.json) {
            copy::copy_field(new.as_reflect_mut(), old.as_reflect(), index);
        }
    }
}

fn clear_field(object: &mut dyn Object, name: &str) {
    let Some((index, _)) = object.desc().field(name) else {
        return;
    };
    if let Some(slot) = object.as_reflect_mut().get_mut(index) {
        copy::clear(slot);
    }
}
