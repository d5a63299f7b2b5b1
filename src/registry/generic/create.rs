//! Creating objects.

use keelson_access::request_info::RequestInfo;
use keelson_base::cooperative::{Slices, aside};
use keelson_machinery::copy;
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::object::Object;
use keelson_machinery::scheme::NameRule;
use keelson_machinery::status::StatusError;
use keelson_machinery::time::Time;
use keelson_machinery::validation::{declarative, meta};
use keelson_storage::{Expect, Revision, Written};

use super::admission::Operation;
use super::managed::Tracking;
use super::write::{Attempt, Lease, Part, standard_finalizers};
use super::{Backend, Confirming, Context, Reserving, Resource, Stored, Target, error_order, parse_revision};

/// How many generated names are tried.
const MAX_GENERATED_NAMES: usize = 8;
/// Generated names end in so many random characters, of these.
const SUFFIX_LENGTH: usize = 5;
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The longest base a generated name keeps (63 characters in all).
const MAX_GENERATED_BASE: usize = 63 - SUFFIX_LENGTH;

/// The name of a new object that exists already.
pub(super) struct Taken(String);

impl Resource {
    /// Creates an object (hub version); the answer has its final metadata.
    pub(super) async fn create(
        &self,
        target: &Target<'_>,
        object: Box<dyn Object>,
    ) -> Result<Box<dyn Object>, StatusError> {
        let created = self.create_unless_there(target, object, None).await;
        target.reserved.end().await;
        match created? {
            Ok(object) => Ok(object),
            Err(Taken(name)) => Err(self.exists_already(&target.context.namespace, &name).await),
        }
    }

    /// Creates an object whose name nobody else has taken. With `creation` the request was let through as another one:
    /// whether its sender may do this too is asked when the object is known to be a valid one.
    pub(super) async fn create_unless_there(
        &self,
        target: &Target<'_>,
        mut object: Box<dyn Object>,
        creation: Option<&RequestInfo>,
    ) -> Result<Result<Box<dyn Object>, Taken>, StatusError> {
        let context = target.context;
        if !matches!(context.tracking, Tracking::Done) {
            wipe_system_fields(&mut *object);
        }
        object.meta_mut().self_link.clear();
        // Between pieces that take long where the object is large.
        let mut slices = Slices::begin();
        self.track_create(context, &mut *object).await?;
        slices.between().await;
        self.admit(target, Operation::Create, &mut *object, None).await?;
        if let Some(answer) = self.strategy.authorize(context, &*object, None) {
            answer.await?;
        }
        // What is no version counts as none; it is the store that minds, which a dry run does not come to.
        if !context.dry_run && matches!(parse_revision(&object.meta().resource_version), Ok(Some(_))) {
            return Err(StatusError::unknown(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        self.confirm_namespace(context, &*object)?;
        let generated = object.meta().name.is_empty() && !object.meta().generate_name.is_empty();
        self.fill_metadata(context, &mut *object);
        let attempts = if generated { MAX_GENERATED_NAMES } else { 1 };
        let mut taken = String::new();
        for _ in 0..attempts {
            if generated {
                self.generate_name(&mut *object);
            }
            slices.between().await;
            self.make_ready(target, &mut *object, creation, &mut slices).await?;
            slices.between().await;
            match self.insert(target, &mut *object).await? {
                Ok(revision) => {
                    // It stays where nothing is written.
                    if let Some(revision) = revision {
                        object.meta_mut().resource_version = revision.to_string();
                    }
                    return self.as_read(object, Part::Main).await.map(Ok);
                }
                Err(Taken(name)) => taken = name,
            }
        }
        Ok(Err(Taken(taken)))
    }

    /// Makes of an object that has its name one that may be stored: whatever an attempt to create goes through behind
    /// the plug-ins that mutate.
    async fn make_ready(
        &self,
        target: &Target<'_>,
        object: &mut dyn Object,
        creation: Option<&RequestInfo>,
        slices: &mut Slices,
    ) -> Result<(), StatusError> {
        let context = target.context;
        target.reserved.end().await;
        let reserving = Reserving {
            part: Part::Main,
            new: &mut *object,
            old: None,
        };
        self.reserve(target, reserving).await?;
        self.strategy.prepare_for_create(context, object);
        slices.between().await;
        self.check_create(context, object, slices).await?;
        slices.between().await;
        let warnings = self.strategy.warnings(object, None);
        context.warnings.borrow_mut().extend(warnings);
        if let Some(creation) = creation {
            context.confirm(creation).await?;
        }
        target.validate(Operation::Create, Some(object), None).await
    }

    /// 409 for a name that is taken; the client is told when that will end.
    async fn exists_already(&self, namespace: &str, name: &str) -> StatusError {
        let mut error = StatusError::already_exists(&self.group, &self.plural, name);
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

    async fn check_create(
        &self,
        context: &Context,
        object: &dyn Object,
        slices: &mut Slices,
    ) -> Result<(), StatusError> {
        let path = Path::new("metadata");
        let metadata = |rule| meta::validate_object_meta(object.meta(), self.hub.namespaced, rule, &path);
        let mut errors = ErrorList::new();
        if self.metadata_checks.create {
            errors.extend(metadata(self.hub.names));
        }
        if self.metadata_checks.create && self.metadata_checks.standard_finalizers {
            errors.extend(standard_finalizers(object.meta(), &path));
        }
        let declared = declarative::validate_with(object.as_reflect(), None, &Path::root(), &self.checks);
        slices.between().await;
        if let Some(prepared) = self.strategy.prepared_validation() {
            prepared.await;
        }
        let coded = match self.strategy.long_validation(object, None) {
            Some(work) => aside(work).await,
            None => self.strategy.validate(context, object, None),
        };
        slices.between().await;
        let order = self.strategy.order_of_fields();
        errors.extend(error_order::merged(object.desc(), order, declared, coded));
        // What every kind checks is told where the kind's own rules find nothing, and finds more than some of these.
        let is_known = self.metadata_checks.create && !matches!(self.hub.names, NameRule::LongName | NameRule::Any);
        if errors.is_empty() && !is_known {
            errors = metadata(NameRule::PathSegment);
        }
        let write = Confirming {
            part: Part::Main,
            new: object,
            old: None,
        };
        let errors = self.confirmed(context, write, errors).await?;
        self.verdict(object, errors)
    }

    /// Writes a new object; no revision for a dry run.
    async fn insert(
        &self,
        target: &Target<'_>,
        object: &mut dyn Object,
    ) -> Result<Result<Option<Revision>, Taken>, StatusError> {
        let name = object.meta().name.clone();
        let key = self.key(&object.meta().namespace, &name)?;
        let value = self.encode(object).await?;
        if target.context.dry_run {
            let got = self.backend.store.get(&key).await.map_err(|e| self.store_error(e))?;
            return Ok(if got.entry.is_some() {
                Err(Taken(name))
            } else {
                Ok(None)
            });
        }
        let value = self.seal(&key, &value)?;
        let writing = target.reserved.writing();
        let attempt = match self.put(&key, Expect::Absent, value, Lease::New).await {
            Ok(Written::Done { revision, .. }) => Attempt::Written(revision),
            Ok(Written::Conflict { current, .. }) => Attempt::Overtaken(current),
            Err(error) => Attempt::Uncertain(self.store_error(error)),
        };
        writing.end(&attempt);
        match attempt {
            Attempt::Written(revision) | Attempt::Unwritten(revision) => {
                self.index_written(&key, revision, object);
                Ok(Ok(Some(revision)))
            }
            Attempt::Overtaken(_) => Ok(Err(Taken(name))),
            Attempt::Uncertain(error) => Err(error),
        }
    }

    fn generate_name(&self, object: &mut dyn Object) {
        let meta = object.meta_mut();
        let base: String = meta.generate_name.chars().take(MAX_GENERATED_BASE).collect();
        meta.name = base + &self.backend.new_suffix();
    }
}

impl Backend {
    /// The random end of a generated name.
    pub fn new_suffix(&self) -> String {
        let mut random = [0u8; SUFFIX_LENGTH];
        self.entropy.fill(&mut random);
        let letter = |byte: &u8| char::from(SUFFIX_ALPHABET[usize::from(*byte) % SUFFIX_ALPHABET.len()]);
        random.iter().map(letter).collect()
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

fn clear_field(object: &mut dyn Object, name: &str) {
    let Some((index, _)) = object.desc().field(name) else {
        return;
    };
    if let Some(slot) = object.as_reflect_mut().get_mut(index) {
        copy::clear(slot);
    }
}
