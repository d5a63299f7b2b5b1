//! Server-side apply of a document to an object of a resource.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use keelson_base::cooperative::aside;
use keelson_machinery::apply::{Apply, ApplyError, Document, compare, merge, misfit, read_document, sort_raw_values};
use keelson_machinery::fieldset::FieldSet;
use keelson_machinery::json;
use keelson_machinery::managedfields::{Conflict, Managed, Writer};
use keelson_machinery::object::{Gvk, Object};
use keelson_machinery::reflect::Reflect;
use keelson_machinery::scheme::KindRef;
use keelson_machinery::status::{Cause, Details, StatusError, reason};

use super::Resource;
use super::conversion::ConversionMemo;
use super::managed::ResourceVersions;
use super::outcome::{Outcome, later, now};
use super::write::Part;

/// kubectl's record of what it applied before the server could.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager that keeps that record up to date.
const KUBECTL: &str = "kubectl";
/// The most bytes that the annotations of an object may have.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// Bytes of a document and of sets of fields from which on an apply takes long.
const LONG_BYTES: usize = 64 * 1024;

/// Why a cause of a conflict is one.
const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";

/// The document of an apply request.
pub struct Applying {
    /// To an object of this.
    pub resource: Arc<Resource>,
    /// In this version of it.
    pub kind: KindRef,
    /// Who applies.
    pub writer: Writer,
    /// Fields that the writer gets no ownership of, see [`Applying::ignored`].
    pub ignored: FieldSet,
    /// Conflicts are overridden.
    pub force: bool,
    /// As JSON.
    pub text: Vec<u8>,
    /// The document, read.
    pub document: Document,
    /// As an object, without defaults.
    pub applied: Box<dyn Object>,
    /// Why it is refused when it has been applied without a conflict: what strict decoding says comes after that.
    pub refused: Option<StatusError>,
    /// Whether it has been applied, whatever becomes of the object then.
    pub made: AtomicBool,
}

impl Applying {
    /// The fields that a write of this part leaves as they are.
    pub fn ignored(resource: &Resource, part: Part<'_>) -> FieldSet {
        resource.reset_fields(part)
    }

    fn by_kubectl(&self) -> bool {
        self.writer.manager == KUBECTL
    }

    /// Whether it takes long: by the texts of the document and of the sets of fields that it is compared with.
    fn is_long(&self, current: Option<&dyn Object>) -> bool {
        let owners = current.map_or(&[][..], |current| &current.meta().managed_fields);
        let sets = owners.iter().filter_map(|owner| owner.fields_v1.as_ref());
        let sets: usize = sets.map(|fields| fields.as_bytes().len()).sum();
        self.text.len() + sets > LONG_BYTES
    }

    /// The object with the document applied (`None`: there was none), on a thread made for such work where it takes
    /// long.
    pub(super) fn apply<'a>(self: &Arc<Self>, current: Option<&'a dyn Object>) -> Outcome<'a, Box<dyn Object>> {
        let converts = self.resource.conversion.converter().is_some();
        let is_long = self.is_long(current);
        if !is_long && !converts {
            return now(self.make(current, &ConversionMemo::default()));
        }
        let (applying, current) = (self.clone(), current.map(|current| current.clone_object()));
        later(applying.run(current, is_long))
    }

    fn make(&self, current: Option<&dyn Object>, memo: &ConversionMemo) -> Result<Box<dyn Object>, StatusError> {
        let made = self.resource.apply(current, self, memo)?;
        self.made.store(true, Ordering::Relaxed);
        match &self.refused {
            Some(error) => Err(error.clone()),
            None => Ok(made),
        }
    }

    /// With the conversions that it needs: they are asked for when it has ended without one, and it runs again.
    async fn run(
        self: Arc<Self>,
        current: Option<Box<dyn Object>>,
        is_long: bool,
    ) -> Result<Box<dyn Object>, StatusError> {
        let mut memo = ConversionMemo::default();
        let current = current.map(Arc::<dyn Object>::from);
        loop {
            let (applying, current) = (self.clone(), current.clone());
            let work = move || {
                let made = applying.make(current.as_deref(), &memo);
                (made, memo)
            };
            let made;
            (made, memo) = if is_long { aside(work).await } else { work() };
            if !memo.complete(self.resource.conversion.converter()).await? {
                return made;
            }
        }
    }
}

impl Resource {
    /// What an apply makes of an object of the hub version (`None`: there is none yet), with its `managedFields`.
    fn apply(
        &self,
        current: Option<&dyn Object>,
        applying: &Applying,
        memo: &ConversionMemo,
    ) -> Result<Box<dyn Object>, StatusError> {
        let kind = &applying.kind;
        let live = match current {
            Some(hub) => self.from_hub(kind, hub.clone_object())?,
            None => kind.new_object(),
        };
        let apply = Apply {
            writer: &applying.writer,
            live: live.as_reflect(),
            applied: applying.applied.as_reflect(),
            document: &applying.document,
            force: applying.force,
            ignored: &applying.ignored,
            versions: &ResourceVersions {
                resource: self,
                group: &kind.group,
                memo,
            },
        };
        if let Some(why) = misfit(&*live) {
            let name = document_name(live.as_reflect(), &kind.gvk());
            return Err(StatusError::unknown(format!(
                "failed to create typed live object ({name}): {why}"
            )));
        }
        let migrates = applying.by_kubectl() && live.meta().annotations.contains_key(LAST_APPLIED);
        if let (Some(hub), false) = (current, migrates)
            && apply.is_noop(&live.meta().managed_fields)
        {
            return Ok(hub.clone_object());
        }
        let mut managed = Managed::read(&live.meta().managed_fields)
            .map_err(|e| StatusError::unknown(format!("failed to decode managed fields: {e}")))?;
        let mut target = live.clone_object();
        let mut changed = apply_or_migrate(apply, applying.by_kubectl(), &mut managed, &*live, &mut *target)?;
        if let Some(why) = &applying.document.unfit {
            return Err(unfit(applying.applied.as_reflect(), &kind.gvk(), why));
        }
        if migrates {
            changed |= record_last_applied(&mut *target, &applying.text);
        }
        let mut new = match current {
            Some(hub) if !changed => hub.clone_object(),
            _ => {
                sort_raw_values(target.as_reflect_mut());
                self.apply_defaults_to_sent(kind, &mut *target)?;
                self.to_hub(kind, target)?
            }
        };
        new.meta_mut().managed_fields = managed.write();
        if let Some(hub) = current {
            self.keep_times(&mut *new, hub);
        }
        Ok(new)
    }
}

/// Conflicts of kubectl with what it applied itself from the client's side are none.
fn apply_or_migrate(
    mut apply: Apply<'_>,
    by_kubectl: bool,
    managed: &mut Managed,
    live: &dyn Object,
    target: &mut dyn Object,
) -> Result<bool, StatusError> {
    let owners = by_kubectl.then(|| managed.clone());
    let mut found = match apply.run(managed, target.as_reflect_mut()) {
        Ok(changed) => return Ok(changed),
        Err(ApplyError::Convert(why)) => return Err(StatusError::unknown(why)),
        Err(ApplyError::Conflicts(found)) => found,
    };
    if let Some(owners) = owners
        && let Some(own) = last_applied_fields(live)
    {
        found
            .iter_mut()
            .for_each(|c| c.fields = std::mem::take(&mut c.fields).difference(&own));
        found.retain(|c| !c.fields.is_empty());
        if found.is_empty() {
            apply.force = true;
            *managed = owners;
            let fresh = live.clone_object();
            for index in 0..target.desc().fields.len() {
                keelson_machinery::copy::copy_field(target.as_reflect_mut(), fresh.as_reflect(), index);
            }
            let outcome = apply.run(managed, target.as_reflect_mut());
            return outcome.map_err(|e| match e {
                ApplyError::Conflicts(found) => conflict(&found),
                ApplyError::Convert(why) => StatusError::unknown(why),
            });
        }
    }
    Err(conflict(&found))
}

/// The fields of kubectl's record that the object still has as they stand there.
fn last_applied_fields(live: &dyn Object) -> Option<FieldSet> {
    let text = live.meta().annotations.get(LAST_APPLIED)?.as_bytes();
    json::validate(text).ok()?;
    let named = json::type_meta(text).ok()?;
    if named.api_version != live.gvk().api_version() || text.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let mut applied = live.handle().new_message();
    let document = read_document(text, &mut *applied).ok()?;
    let mut there = live.clone_object();
    merge(there.as_reflect_mut(), &*applied, &document.fields);
    let found = compare(live.as_reflect(), there.as_reflect());
    let mut own = document.fields;
    for other in [&found.added, &found.modified, &found.removed, &document.restated] {
        own = own.difference(other);
    }
    Some(own)
}

/// Makes kubectl's record the document that was applied. Returns whether it was another one.
fn record_last_applied(target: &mut dyn Object, text: &[u8]) -> bool {
    let Ok(mut document) = serde_json::from_slice::<serde_json::Value>(text) else {
        return false;
    };
    if let Some(metadata) = document.get_mut("metadata").and_then(|m| m.as_object_mut()) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(|a| a.as_object_mut()) {
            annotations.remove(LAST_APPLIED);
        }
    }
    let mut record = json::sorted(document.to_string().as_bytes());
    record.push(b'\n');
    let record = String::from_utf8_lossy(&record).into_owned();
    let annotations = &mut target.meta_mut().annotations;
    if annotations.get(LAST_APPLIED) == Some(&record) {
        return false;
    }
    annotations.insert(LAST_APPLIED.to_owned(), record);
    let size: usize = annotations.iter().map(|(k, v)| k.len() + v.len()).sum();
    if size > MAX_ANNOTATION_BYTES {
        annotations.remove(LAST_APPLIED);
    }
    true
}

/// The failure of a document that fits the schema, but not the kind.
pub fn unfit(applied: &dyn Reflect, gvk: &Gvk, why: &str) -> StatusError {
    let shown = gvk_text(&gvk.api_version(), &gvk.kind);
    let name = document_name(applied, gvk);
    StatusError::unknown(format!(
        "failed to convert new object ({name}) to proper version: unable to convert unstructured object to {shown}: {why}"
    ))
}

/// How failures name a document: `/name; apps/v1, Kind=Deployment`.
pub fn document_name(applied: &dyn Reflect, gvk: &Gvk) -> String {
    let of = |path: &str| keelson_machinery::jsonpath::lookup_text(applied, path).into_owned();
    let (namespace, name) = (of("metadata.namespace"), of("metadata.name"));
    format!("{namespace}/{name}; {}", gvk_text(&gvk.api_version(), &gvk.kind))
}

/// `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`; `/, Kind=` where nothing is said.
pub fn gvk_text(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// 409 with all fields that others own.
pub fn conflict(conflicts: &[Conflict]) -> StatusError {
    let mut sorted: Vec<&Conflict> = conflicts.iter().collect();
    sorted.sort_by(|a, b| a.owner.cmp(&b.owner));
    let (mut causes, mut parts) = (Vec::new(), Vec::new());
    for found in sorted {
        let owner = &found.owner;
        parts.push(format!("conflicts with {owner}:"));
        for path in found.paths() {
            parts.push(format!("- {path}"));
            causes.push(Cause {
                reason: FIELD_MANAGER_CONFLICT.into(),
                message: format!("conflict with {owner}"),
                field: path,
            });
        }
    }
    let message = match causes.as_slice() {
        [only] => format!("Apply failed with 1 conflict: {}: {}", only.message, only.field),
        several => format!("Apply failed with {} conflicts: {}", several.len(), parts.join("\n")),
    };
    let mut error = StatusError::new(409, reason::CONFLICT, message);
    error.details = Some(Box::new(Details {
        causes,
        ..Details::default()
    }));
    error
}
