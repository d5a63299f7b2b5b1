//! Derivations from stored entries, each made at most once: metadata for selectors, bytes for answers.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::MetaVersion;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_machinery::table::{RowTemplate, write_partial_metadata, write_partial_protobuf};
use keelson_machinery::{json, jsonpath, protobuf};
use keelson_storage::{Entry, Event, Position, Revision, Snapshot};

use super::presentation::Presented;
use super::{Endpoint, Resource};
use crate::cache::{Block, Derived, KindKey, Made, Meta, Rendition, Shape, Source};

/// Number of the field that holds the items, in the protobuf form of every list kind.
pub const LIST_ITEMS: u32 = 2;

impl Resource {
    /// What is asked of an object without having it decoded.
    pub(crate) fn meta<'e>(&self, entry: &'e Entry) -> Result<&'e Meta, StatusError> {
        let derived = derived(entry)?;
        if let Some(meta) = derived.meta(self.selectable_id) {
            return Ok(meta);
        }
        let object = self.decode(entry)?;
        Ok(derived.set_meta(self.read_meta(&*object)))
    }

    /// Keeps what selectors will ask of an object that was written at a revision, if memory has it already.
    pub(super) fn index_written(&self, key: &str, revision: Revision, object: &dyn Object) {
        if !self.strategy.is_indexed() {
            return;
        }
        let held = self.backend.store.held(&self.key_prefix);
        let entry = held.and_then(|snapshot| snapshot.get(key));
        let entry = entry.filter(|entry| entry.mod_revision == revision);
        if let Some(derived) = entry.as_ref().and_then(Derived::of) {
            derived.set_meta(self.read_meta(object));
        }
    }

    fn read_meta(&self, object: &dyn Object) -> Meta {
        let labels = object.meta().labels.iter();
        let fields = self.selectable.iter();
        Meta {
            of: self.selectable_id,
            next: OnceLock::new(),
            deleted: object.meta().deletion_timestamp.is_some(),
            labels: labels.map(|(k, v)| (k.as_str().into(), v.as_str().into())).collect(),
            fields: fields.map(|path| self.field_of(object, path).as_ref().into()).collect(),
        }
    }

    /// The value of a field label of an object (hub version).
    pub fn field_of<'a>(&self, object: &'a dyn Object, path: &str) -> Cow<'a, str> {
        match path {
            "metadata.name" => Cow::Borrowed(&object.meta().name),
            "metadata.namespace" => Cow::Borrowed(&object.meta().namespace),
            paths => {
                let mut values = paths
                    .split('|')
                    .map(|path| jsonpath::lookup_text(object.as_reflect(), path));
                values.find(|value| !value.is_empty()).unwrap_or_default()
            }
        }
    }

    /// The value of a field label of an entry whose metadata this is; "" if it has none.
    pub(crate) fn field<'a>(&self, entry: &'a Entry, meta: &'a Meta, label: &str) -> Cow<'a, str> {
        let path = entry.key.strip_prefix(&*self.key_prefix).unwrap_or_default();
        let (namespace, name) = path.rsplit_once('/').unwrap_or(("", path));
        Cow::Borrowed(match label {
            "metadata.name" => name,
            "metadata.namespace" => namespace,
            path => {
                let place = self.selectable.iter().position(|selectable| *selectable == path);
                place.and_then(|place| meta.fields.get(place)).map_or("", |value| value)
            }
        })
    }
}

impl Endpoint {
    /// The bytes of an object in the version of this endpoint, plain; with `gone` those of an object that went at this
    /// revision, of which there is one for each version of an object.
    pub fn plain(&self, entry: &Entry, shape: Shape, gone: Option<Revision>) -> Result<Bytes, StatusError> {
        let what = Made::shape(shape, gone);
        let derived = derived(entry)?;
        if let Some(Rendition::Plain(made)) = derived.rendition(KindKey::of(&self.kind), what) {
            return Ok(made);
        }
        let made = self.render(entry, derived, shape, gone)?;
        self.keep(entry, derived, what, Rendition::Plain(made.clone()));
        Ok(made)
    }

    /// An item of a list as a block of gzip: of JSON the bare object, of protobuf the object with its tag and length.
    pub fn block(&self, entry: &Entry, shape: Shape) -> Result<Block, StatusError> {
        let derived = derived(entry)?;
        if let Some(Rendition::Gzip(made)) = derived.rendition(KindKey::of(&self.kind), Made::Gzip(shape)) {
            return Ok(made);
        }
        let mut item = Vec::new();
        let bytes = self.plain(entry, shape, None)?;
        if shape.is_protobuf() {
            protobuf::write_tag_len(LIST_ITEMS, bytes.len(), &mut item);
        }
        item.extend_from_slice(&bytes);
        let made = Block::compress(&item);
        self.keep(entry, derived, Made::Gzip(shape), Rendition::Gzip(made.clone()));
        Ok(made)
    }

    /// What a Table shows of an object; `gone` as in [`Endpoint::plain`].
    pub fn row(&self, entry: &Entry, gone: Option<Revision>) -> Result<Arc<RowTemplate>, StatusError> {
        let what = if gone.is_some() { Made::RowGone } else { Made::Row };
        let derived = derived(entry)?;
        if let Some(Rendition::Row(made)) = derived.rendition(KindKey::of(&self.kind), what) {
            return Ok(made);
        }
        let object = match self.resource.decode_masked(entry, self.row_mask.as_deref())? {
            Some(mut object) => {
                object.meta_mut().resource_version = gone.unwrap_or(entry.mod_revision).to_string();
                object
            }
            None => self.object(entry, derived, gone)?,
        };
        let shown = Presented::new(self, object, self.columns.read_paths())?;
        let made = Arc::new(self.columns.template(&shown.row()));
        self.keep(entry, derived, what, Rendition::Row(made.clone()));
        Ok(made)
    }

    fn keep(&self, entry: &Entry, derived: &Derived, what: Made, made: Rendition) {
        let budget = &self.resource.backend.budget;
        derived.keep(&entry.held, KindKey::of(&self.kind), what, made, budget);
    }

    fn render(
        &self,
        entry: &Entry,
        derived: &Derived,
        shape: Shape,
        gone: Option<Revision>,
    ) -> Result<Bytes, StatusError> {
        let bytes = match shape {
            Shape::Metadata(version) => metadata_json(&self.metadata(entry, gone)?, version),
            Shape::MetadataProtobuf => self.metadata_protobuf(entry, gone)?,
            Shape::Json | Shape::Protobuf => {
                let object = self.object(entry, derived, gone)?;
                let object = self.resource.from_hub(&self.kind, object)?;
                // Objects are often a little larger as JSON than as they are stored.
                let mut bytes = Vec::with_capacity(entry.value.len() * 3 / 2 + 256);
                match shape.is_protobuf() {
                    true => protobuf::write_message(object.as_reflect(), &mut bytes),
                    false => json::write_item(&*object, &mut bytes),
                }
                bytes.shrink_to_fit();
                bytes
            }
        };
        Ok(bytes.into())
    }

    /// The object that an entry holds, as of the hub version; what is asked of it later is kept with the entry.
    fn object(&self, entry: &Entry, derived: &Derived, gone: Option<Revision>) -> Result<Box<dyn Object>, StatusError> {
        let mut object = self.resource.decode(entry)?;
        if derived.meta(self.resource.selectable_id).is_none() {
            derived.set_meta(self.resource.read_meta(&*object));
        }
        if let Some(revision) = gone {
            object.meta_mut().resource_version = revision.to_string();
        }
        Ok(object)
    }

    /// The metadata as it is shown alone.
    fn metadata(&self, entry: &Entry, gone: Option<Revision>) -> Result<ObjectMeta, StatusError> {
        let mut metadata = self.resource.decode_metadata(entry)?;
        if let Some(revision) = gone {
            metadata.resource_version = revision.to_string();
        }
        for name in self.resource.strategy.versioned_annotations() {
            metadata.annotations.remove(*name);
        }
        Ok(metadata)
    }

    fn metadata_protobuf(&self, entry: &Entry, gone: Option<Revision>) -> Result<Vec<u8>, StatusError> {
        let as_stored = match self.resource.strategy.versioned_annotations() {
            [] => self
                .resource
                .encoded_metadata(entry, gone.unwrap_or(entry.mod_revision))?,
            _ => None,
        };
        let mut encoded = Vec::new();
        match as_stored {
            Some(stored) => encoded = stored,
            None => protobuf::write_message(&self.metadata(entry, gone)?, &mut encoded),
        }
        let mut out = Vec::with_capacity(encoded.len() + 8);
        write_partial_protobuf(&encoded, &mut out);
        Ok(out)
    }
}

fn metadata_json(metadata: &ObjectMeta, version: MetaVersion) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    write_partial_metadata(metadata, version.api_version(), &mut out);
    out.shrink_to_fit();
    out
}

fn derived(entry: &Entry) -> Result<&Derived, StatusError> {
    Derived::of(entry).ok_or_else(|| StatusError::internal_error("an entry of the store carries foreign data"))
}

/// How the indexes of a resource learn what happened.
pub(super) struct History<'a> {
    pub resource: &'a Resource,
    pub snapshot: &'a Snapshot,
}

impl Source for History<'_> {
    fn events(&self, after: Position, limit: usize) -> Option<Vec<Event>> {
        let store = &self.resource.backend.store;
        store.events(&self.resource.key_prefix, after, self.snapshot.revision(), limit)
    }

    fn unprepared(&self, entry: &Entry) -> Option<BoxFuture<'static, Result<(), StatusError>>> {
        self.resource.unprepared(entry)
    }

    fn meta<'e>(&self, entry: &'e Entry) -> Result<&'e Meta, StatusError> {
        self.resource.meta(entry)
    }
}
