//! Codecs of kinds: between stored bytes and objects of the hub version, between hub and served versions.

use keelson_machinery::budget::Budget;
use keelson_machinery::copy;
use keelson_machinery::decode::DecodeError;
use keelson_machinery::defaults;
use keelson_machinery::field::{FieldError, Path};
use keelson_machinery::json;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::{Kind, Object};
use keelson_machinery::protobuf::{self, Mask};
use keelson_machinery::reflect::{Reflect, Value};
use keelson_machinery::scheme::{Conversion, ConversionFault, ConvertError, KindDesc, KindRef};
use keelson_machinery::status::StatusError;
use keelson_machinery::yaml;
use keelson_storage::{Entry, Revision};

use super::encryption::unreadable;
use super::write::Part;
use super::{ConversionStrategy, Media, Resource};

/// Where objects have their metadata.
const METADATA: &str = "metadata";

impl Resource {
    /// As [`Resource::apply_defaults`], to what a client sends.
    ///
    /// # Errors
    /// 413: the defaults come to more than a request may become.
    pub fn apply_defaults_to_sent(&self, kind: &KindDesc, object: &mut dyn Object) -> Result<(), StatusError> {
        match defaults::apply_within(object.as_reflect_mut(), &Budget::of_request()) {
            true => self.apply_defaults_of_code(kind, object),
            false => return Err(StatusError::entity_too_large(DecodeError::TooLarge)),
        }
        Ok(())
    }

    /// Applies the defaults of a version, of the definition first, then of code.
    pub fn apply_defaults(&self, kind: &KindDesc, object: &mut dyn Object) {
        defaults::apply(object.as_reflect_mut());
        self.apply_defaults_of_code(kind, object);
    }

    fn apply_defaults_of_code(&self, kind: &KindDesc, object: &mut dyn Object) {
        let id = kind.id();
        if let Some((_, fill)) = self.code_defaults.iter().find(|(of, _)| *of == id) {
            fill(object);
        }
    }

    /// An object of a served version, as the hub version.
    ///
    /// # Errors
    /// 422: code of the conversion refuses it, with the field that it names.
    pub fn to_hub(&self, kind: &KindDesc, object: Box<dyn Object>) -> Result<Box<dyn Object>, StatusError> {
        if let Conversion::None = kind.conversion {
            return Ok(object);
        }
        let name = object.meta().name.clone();
        kind.to_hub(object).map_err(|error| refused(kind, &name, *error.fault))
    }

    /// A hub object as a served version.
    pub fn from_hub(&self, kind: &KindDesc, object: Box<dyn Object>) -> Result<Box<dyn Object>, StatusError> {
        kind.from_hub(object).map_err(internal)
    }

    /// The bytes to store: storage version, without a resource version; protobuf in its envelope unless the kind or the
    /// server wants something else.
    pub(crate) async fn encode(&self, object: &mut dyn Object) -> Result<Vec<u8>, StatusError> {
        let meta = object.meta_mut();
        let kept = [&mut meta.resource_version, &mut meta.self_link].map(std::mem::take);
        let encoded = match self.storage.is(&self.hub) {
            true => self.encode_stored(as_kind(object)),
            false => {
                let stored = self.converted(object.clone_object(), &self.hub, &self.storage).await;
                stored.and_then(|stored| self.encode_stored(as_kind(&*stored)))
            }
        };
        let meta = object.meta_mut();
        [meta.resource_version, meta.self_link] = kept;
        encoded
    }

    /// Of an object of the storage version.
    pub(super) fn encode_stored(&self, stored: &dyn Kind) -> Result<Vec<u8>, StatusError> {
        let media = match self.storage.stored_as_json {
            true => Media::Json,
            false => self.backend.placement.media,
        };
        let json = || {
            let mut out = Vec::new();
            json::write_kind(stored, &mut out);
            out.push(b'\n');
            out
        };
        match media {
            Media::Protobuf => Ok(protobuf::encode(stored)),
            Media::Json => Ok(json()),
            Media::Yaml => yaml::from_json(&json()).map_err(|e| StatusError::internal_error(e.to_string())),
        }
    }

    /// An object that was just written, as it will be read: with defaults for what preparing took out of it. `part`:
    /// what of it was written; other parts than the object itself are answered without what the strategy decorates it
    /// with.
    pub(crate) async fn as_read(
        &self,
        object: Box<dyn Object>,
        part: Part<'_>,
    ) -> Result<Box<dyn Object>, StatusError> {
        let mut stored = self.converted(object, &self.hub, &self.storage).await?;
        self.apply_defaults(&self.storage, &mut *stored);
        let mut read = self.converted(stored, &self.storage, &self.hub).await?;
        if part == Part::Main {
            self.strategy.decorate(&mut *read);
        }
        Ok(read)
    }

    /// The object that an entry holds, with its resource version, as the hub version, and as it is shown.
    pub fn decode(&self, entry: &Entry) -> Result<Box<dyn Object>, StatusError> {
        let mut object = self.decode_base(entry)?;
        self.strategy.decorate(&mut *object);
        Ok(object)
    }

    /// As [`Resource::decode`], but as it is stored: a write begins with that.
    pub(super) fn decode_base(&self, entry: &Entry) -> Result<Box<dyn Object>, StatusError> {
        let value = match self.known_conversion(entry) {
            Some(converted) => converted,
            None => self.plain_value(entry).map_err(|error| unreadable(entry, &error))?,
        };
        let (kind, stored) = self
            .decode_stored(&value)
            .map_err(|error| self.corrupt(entry, &error.to_string()))?;
        let mut hub = self
            .converted_now(stored, kind, &self.hub)
            .map_err(|error| match &self.conversion {
                ConversionStrategy::Webhook(_) => {
                    StatusError::internal_error(format!("unable to decode {}: {}", entry.key, error.message))
                }
                _ => self.corrupt(entry, &error.message),
            })?;
        hub.meta_mut().resource_version = entry.mod_revision.to_string();
        Ok(hub)
    }

    /// The metadata of the object that an entry holds, as of the hub version.
    pub fn decode_metadata(&self, entry: &Entry) -> Result<ObjectMeta, StatusError> {
        let value = self.plain_value(entry).map_err(|error| unreadable(entry, &error))?;
        match self.metadata_alone(&value) {
            Some(mut metadata) => {
                metadata.resource_version = entry.mod_revision.to_string();
                Ok(metadata)
            }
            None => Ok(std::mem::take(self.decode(entry)?.meta_mut())),
        }
    }

    /// The metadata and one other field, a message, of the object that an entry holds; without defaults where the rest
    /// is not looked at.
    pub(crate) fn decode_part<T: Reflect + Default>(
        &self,
        entry: &Entry,
        field: &str,
    ) -> Result<(ObjectMeta, T), StatusError> {
        let value = self.plain_value(entry).map_err(|error| unreadable(entry, &error))?;
        let (mut metadata, mut part) = (ObjectMeta::default(), T::default());
        let is_json = value.starts_with(b"{") && !self.strategy.defaults_metadata();
        let meta = is_json.then(|| json::type_meta(&value).ok()).flatten();
        let mut wanted: [(&str, &mut dyn Reflect); 2] = [(METADATA, &mut metadata), (field, &mut part)];
        if let Some(meta) = meta
            && self.stored_as_hub(&meta.api_version, &meta.kind).is_some()
            && json::read_members(&value, &mut wanted).is_ok()
        {
            metadata.resource_version = entry.mod_revision.to_string();
            return Ok((metadata, part));
        }
        let (mut object, mut part) = (self.decode(entry)?, T::default());
        let place = object.desc().field(field).map(|(index, _)| index);
        if let Some(Value::Message(found)) = place.map(|index| object.as_reflect().get(index)) {
            copy::copy_message(&mut part, found);
        }
        Ok((std::mem::take(object.meta_mut()), part))
    }

    /// Without a look at the rest of the object; `None` where the rest may matter.
    fn metadata_alone(&self, value: &[u8]) -> Option<ObjectMeta> {
        if self.strategy.defaults_metadata() {
            return None;
        }
        let mut metadata = ObjectMeta::default();
        if value.starts_with(b"{") {
            let meta = json::type_meta(value).ok()?;
            let stored = self.stored_kind(&meta.api_version, &meta.kind).ok()?;
            self.metadata_stays(stored).then_some(())?;
            json::read_members(value, &mut [(METADATA, &mut metadata)]).ok()?;
        } else {
            protobuf::read_message(self.metadata_part(value)?, &mut metadata).ok()?;
        }
        Some(metadata)
    }

    /// Whether the hub version has the metadata that an object of another version has.
    fn metadata_stays(&self, stored: &KindRef) -> bool {
        let by_code = |kind: &KindRef| match kind.conversion {
            Conversion::None => true,
            Conversion::Code { metadata_stays, .. } => metadata_stays,
        };
        match self.conversion {
            _ if self.hub.is(stored) => true,
            ConversionStrategy::Code => by_code(stored) && by_code(&self.hub),
            ConversionStrategy::None => true,
            ConversionStrategy::Webhook(_) => false,
        }
    }

    /// The metadata of the object that an entry holds, as of the hub version, in protobuf, with this resource version.
    /// It is not read: what stands in the store is what clients would be sent. `None`: it has to be.
    pub(crate) fn encoded_metadata(&self, entry: &Entry, revision: Revision) -> Result<Option<Vec<u8>>, StatusError> {
        let value = self.plain_value(entry).map_err(|error| unreadable(entry, &error))?;
        let encoded = self.metadata_part(&value).and_then(|part| {
            let desc = ObjectMeta::message_desc();
            let (_, field) = desc.field("resourceVersion")?;
            protobuf::with_string(part, desc, field.number, &revision.to_string())
        });
        Ok(encoded)
    }

    /// As [`Resource::decode`], but of the object only a part; `None` where the rest may matter to that, and where all
    /// of it has to be read anyway.
    pub(crate) fn decode_masked(
        &self,
        entry: &Entry,
        mask: Option<&Mask>,
    ) -> Result<Option<Box<dyn Object>>, StatusError> {
        let Some(mask) = mask else { return Ok(None) };
        let value = self.plain_value(entry).map_err(|error| unreadable(entry, &error))?;
        Ok(self.part(&value, mask))
    }

    fn part(&self, value: &[u8], mask: &Mask) -> Option<Box<dyn Object>> {
        if !protobuf::has_envelope(value) {
            return None;
        }
        let unknown = protobuf::decode_envelope(value).ok()?;
        self.stored_as_hub(&unknown.api_version, &unknown.kind)?;
        let mut object = self.hub.new_object();
        protobuf::read_masked(unknown.raw, object.as_reflect_mut(), mask).ok()?;
        self.apply_defaults(&self.hub, &mut *object);
        self.strategy.decorate(&mut *object);
        Some(object)
    }

    /// The metadata in a stored protobuf object of the hub version; see [`Resource::stored_as_hub`].
    fn metadata_part<'v>(&self, value: &'v [u8]) -> Option<&'v [u8]> {
        if self.strategy.defaults_metadata() || !protobuf::has_envelope(value) {
            return None;
        }
        let unknown = protobuf::decode_envelope(value).ok()?;
        self.stored_as_hub(&unknown.api_version, &unknown.kind)?;
        let (_, field) = self.hub.message.field(METADATA)?;
        protobuf::field(unknown.raw, field.number)
    }

    /// `None` for what is stored in another version than the hub's: converting it may take something of a part from the
    /// rest of the object.
    fn stored_as_hub(&self, api_version: &str, name: &str) -> Option<()> {
        let stored = self.stored_kind(api_version, name).ok()?;
        (self.hub.id() == stored.id()).then_some(())
    }

    /// A stored object in the version that it is stored in, with the defaults of that.
    pub(super) fn decode_stored(&self, value: &[u8]) -> Result<(&KindRef, Box<dyn Object>), StoredError> {
        if value.starts_with(b"{") || protobuf::has_envelope(value) {
            return self.decode_form(value);
        }
        let json = yaml::to_json(value)?;
        self.decode_form(&json)
    }

    /// Of JSON or protobuf.
    fn decode_form(&self, value: &[u8]) -> Result<(&KindRef, Box<dyn Object>), StoredError> {
        let (kind, mut object) = if value.starts_with(b"{") {
            let meta = json::type_meta(value)?;
            let kind = self.stored_kind(&meta.api_version, &meta.kind)?;
            let mut object = kind.new_object();
            json::read_stored(value, object.as_reflect_mut())?;
            (kind, object)
        } else {
            let unknown = protobuf::decode_envelope(value)?;
            let kind = self.stored_kind(&unknown.api_version, &unknown.kind)?;
            let mut object = kind.new_object();
            protobuf::read_message(unknown.raw, object.as_reflect_mut())?;
            (kind, object)
        };
        self.apply_defaults(kind, &mut *object);
        Ok((kind, object))
    }

    /// The version that a stored object names.
    fn stored_kind(&self, api_version: &str, name: &str) -> Result<&KindRef, StoredError> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let is = |k: &&KindRef| k.group == group && k.version == version && k.kind == name;
        let found = self.versions.iter().find(is);
        found.ok_or_else(|| StoredError::Unregistered {
            kind: name.to_owned(),
            version: api_version.to_owned(),
        })
    }
}

/// Why stored bytes are no object of their resource.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoredError {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// They name a version or kind that the resource does not have.
    #[error("no kind {kind:?} is registered for version {version:?}")]
    Unregistered { kind: String, version: String },
}

/// A client's object that the hub version has no form for.
fn refused(kind: &KindDesc, name: &str, fault: ConversionFault) -> StatusError {
    let path = match fault.field.is_empty() {
        true => Path::root(),
        false => Path::new(fault.field),
    };
    let error = FieldError::invalid(&path, fault.value, fault.reason);
    StatusError::invalid(&kind.group, &kind.kind, name, &error.into())
}

pub(super) fn internal(error: ConvertError) -> StatusError {
    StatusError::internal_error(error.to_string())
}

fn as_kind(object: &dyn Object) -> &dyn Kind {
    object
}
