//! `managedFields` of what is written: who gets and who loses which fields.

use std::cell::RefCell;
use std::rc::Rc;

use keelson_machinery::apply::{hollow_in, misfit};
use keelson_machinery::copy;
use keelson_machinery::equality;
use keelson_machinery::fieldset::{FieldSet, PathElement};
use keelson_machinery::managedfields::{self, Change, Managed, VersionError, Versions, Writer};
use keelson_machinery::meta::v1::ManagedFieldsEntry;
use keelson_machinery::object::{Object, api_version};
use keelson_machinery::reflect::Reflect;
use keelson_machinery::scheme::{KindDesc, KindRef};
use keelson_machinery::status::StatusError;

use super::conversion::ConversionMemo;
use super::write::Part;
use super::{Context, Resource};

/// What a write does to `managedFields`.
#[derive(Clone, Default)]
pub enum Tracking {
    /// They stay as they are: the server itself writes.
    #[default]
    Keep,
    /// The writer owns what it changes.
    Update(RequestWriter),
    /// The new object has them already.
    Done,
}

/// Who writes, and in which version.
#[derive(Clone)]
pub struct RequestWriter {
    /// The version that was written in.
    pub kind: KindRef,
    /// Who writes, how and when.
    pub writer: Writer,
    /// The empty lists and maps that the writer's body writes out; see [`managedfields::written_empty`].
    pub written_empty: Rc<RefCell<FieldSet>>,
}

/// The versions of a resource, to convert between. Of one that two groups share, a writer knows those of its own group:
/// what was written through the other has no owners any more.
pub(crate) struct ResourceVersions<'a> {
    pub resource: &'a Resource,
    pub group: &'a str,
    /// What others have converted for this writer.
    pub memo: &'a ConversionMemo,
}

impl ResourceVersions<'_> {
    fn find(&self, version: &str) -> Option<&KindRef> {
        let mut kinds = self.resource.versions.iter();
        kinds.find(|k| k.group == self.group && api_version(&k.group, &k.version) == version)
    }
}

impl Versions for ResourceVersions<'_> {
    fn knows(&self, api_version: &str) -> bool {
        self.find(api_version).is_some()
    }

    fn convert(&self, object: &dyn Reflect, version: &str) -> Result<Box<dyn Object>, VersionError> {
        let from = self.resource.versions.iter().find(|k| k.message.is(object.desc()));
        let (Some(from), Some(to)) = (from, self.find(version)) else {
            let kind = &self.resource.hub.kind;
            let why = format!("no kind {kind:?} is registered for version {version:?}");
            return Err(VersionError::Unknown(why));
        };
        let mut copied = from.new_object();
        copy::copy_message(copied.as_reflect_mut(), object);
        match self.resource.conversion.converter() {
            Some(_) if !from.is(to) => self.memo.find(copied, to),
            _ => {
                let converted = self.resource.converted_now(copied, from, to);
                converted.map_err(|error| VersionError::Refused(error.message))
            }
        }
    }
}

impl Resource {
    /// The paths that an endpoint puts back whatever a writer says, so that nobody owns them through it.
    pub(crate) fn reset_fields(&self, part: Part<'_>) -> FieldSet {
        let mut set = FieldSet::EMPTY;
        match part {
            Part::Main => {
                if self.has_status() {
                    set = FieldSet::of_fields(&["status"]);
                }
            }
            // Whatever else an object has at its root: it is put back all the same.
            Part::Status if self.custom => set = FieldSet::of_fields(&["metadata", "spec"]),
            Part::Status => {
                for field in &self.hub.message.fields {
                    if !matches!(field.json.as_str(), "metadata" | "status") {
                        set = set.union(FieldSet::of(&[PathElement::Field(field.json.clone())]));
                    }
                }
            }
            Part::Named(_) | Part::Internal => {}
        }
        for path in self.strategy.reset_fields(part) {
            set = set.union(FieldSet::of_names(path));
        }
        set
    }

    /// Before anything is prepared: the new object's entries.
    pub(crate) async fn track_create(&self, context: &Context, object: &mut dyn Object) -> Result<(), StatusError> {
        match &context.tracking {
            Tracking::Done => Ok(()),
            Tracking::Keep => {
                object.meta_mut().managed_fields.clear();
                Ok(())
            }
            Tracking::Update(request) => {
                let given = std::mem::take(&mut object.meta_mut().managed_fields);
                let mut managed = Managed::default();
                if !managedfields::is_reset(&given) {
                    managed = Managed::read_given(&given).unwrap_or_default();
                }
                let old = request.kind.new_object();
                let written = self.strategy.as_written(object);
                let new = written.as_deref().unwrap_or(object);
                self.track(
                    request,
                    Part::Main,
                    &mut managed,
                    (&*old, new),
                    managedfields::track_new,
                )
                .await?;
                object.meta_mut().managed_fields = managed.write();
                Ok(())
            }
        }
    }

    /// The entries of an updated object. A writer may hand in a list of its own, but not through a subresource.
    pub(crate) async fn track_update(
        &self,
        context: &Context,
        part: Part<'_>,
        new: &mut dyn Object,
        old: &dyn Object,
    ) -> Result<(), StatusError> {
        let stored = &old.meta().managed_fields;
        match &context.tracking {
            Tracking::Done => return Ok(()),
            Tracking::Keep => new.meta_mut().managed_fields.clone_from(stored),
            Tracking::Update(request) => {
                let given = std::mem::take(&mut new.meta_mut().managed_fields);
                let main = request.writer.subresource.is_empty();
                if main && managedfields::is_reset(&given) {
                    return Ok(());
                }
                // Most writers hand in what they read, or nothing.
                let own = main && !given.is_empty() && !managedfields::is_same(&given, stored);
                let own = own
                    .then(|| Managed::read_given(&given).ok())
                    .flatten()
                    .filter(|m| !m.is_empty());
                let mut managed = own.unwrap_or_else(|| Managed::read(stored).unwrap_or_default());
                if managed.is_empty() {
                    // Nobody applied, so nobody asks.
                    return Ok(());
                }
                let versioned = self.versioned(&request.kind, old)?;
                let old_version = versioned.as_deref().unwrap_or(old);
                if misfit(new).is_some() || misfit(old_version).is_some() {
                    // What can't be compared has no owners.
                    return Ok(());
                }
                self.track(request, part, &mut managed, (old_version, new), managedfields::track)
                    .await?;
                new.meta_mut().managed_fields = managed.write();
            }
        }
        self.keep_times(new, old);
        Ok(())
    }

    /// A write that changes nothing but times changes nothing.
    pub(crate) fn keep_times(&self, new: &mut dyn Object, old: &dyn Object) {
        let (after, before) = (&new.meta().managed_fields, &old.meta().managed_fields);
        if times_differ(after, before) && managedfields::same_but_times(after, before) && same_but_entries(new, old) {
            managedfields::keep_times(&mut new.meta_mut().managed_fields, before);
        }
    }

    async fn track(
        &self,
        request: &RequestWriter,
        part: Part<'_>,
        managed: &mut Managed,
        (old, new): (&dyn Object, &dyn Object),
        record: fn(&mut Managed, Change<'_>, &Writer) -> Result<(), VersionError>,
    ) -> Result<(), StatusError> {
        let versioned = self.versioned(&request.kind, new)?;
        let ignored = self.reset_fields(part);
        let memo = ConversionMemo::default();
        let converter = self.conversion.converter();
        // Where a conversion is missing it is tracked once more.
        let before = converter.map(|_| managed.clone());
        loop {
            let change = Change {
                old: old.as_reflect(),
                new: versioned.as_deref().unwrap_or(new).as_reflect(),
                ignored: &ignored,
                versions: &ResourceVersions {
                    resource: self,
                    group: &request.kind.group,
                    memo: &memo,
                },
            };
            let recorded = record(managed, change, &request.writer);
            if !memo.complete(converter).await? {
                recorded.map_err(StatusError::internal_error)?;
                break;
            }
            if let Some(before) = &before {
                managed.clone_from(before);
            }
        }
        let empty = request.written_empty.borrow();
        if !empty.is_empty() {
            // What had content is another matter: that was taken out of it.
            let empty = hollow_in(old.as_reflect(), &empty).recursive_difference(&ignored);
            if !empty.is_empty() {
                managed.take(&request.writer, empty);
            }
        }
        Ok(())
    }

    /// A hub object in another version; `None`: it is that already.
    pub(crate) fn versioned(
        &self,
        kind: &KindDesc,
        object: &dyn Object,
    ) -> Result<Option<Box<dyn Object>>, StatusError> {
        if self.hub.is(kind) {
            return Ok(None);
        }
        self.from_hub(kind, object.clone_object()).map(Some)
    }
}

fn times_differ(a: &[ManagedFieldsEntry], b: &[ManagedFieldsEntry]) -> bool {
    a.len() == b.len() && a.iter().zip(b).any(|(a, b)| a.time != b.time)
}

/// Whether two objects differ in nothing but `managedFields`.
fn same_but_entries(new: &dyn Object, old: &dyn Object) -> bool {
    let mut plain = new.meta().clone();
    plain.managed_fields.clone_from(&old.meta().managed_fields);
    if !equality::equal(&plain, old.meta()) {
        return false;
    }
    let is_metadata = |name: &str| name == "metadata";
    let mut fields = new.desc().fields.iter().enumerate();
    fields.all(|(i, f)| is_metadata(&f.json) || equality::equal_field(new.as_reflect(), old.as_reflect(), i))
}
