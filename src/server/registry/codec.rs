//! Between stored bytes and objects of the hub version; between hub and served versions.

use keelson_machinery::defaults;
use keelson_machinery::object::Object;
use keelson_machinery::protobuf;
use keelson_machinery::scheme::KindDesc;
use keelson_machinery::status::StatusError;
use keelson_storage::{Entry, Revision};

use super::Resource;

impl Resource {
    /// Applies the defaults of a version, of the definition first, then of code.
    pub fn apply_defaults(&self, kind: &KindDesc, object: &mut dyn Object) {
        defaults::apply(object.as_reflect_mut());
        if let Some(f) = self.code_defaults.get(kind.version) {
            f(object);
        }
    }

    /// An object of a served version, as the hub version.
    pub fn to_hub(&self, kind: &KindDesc, object: Box<dyn Object>) -> Result<Box<dyn Object>, StatusError> {
        (kind.to_hub)(object).map_err(|e| StatusError::internal_error(e.to_string()))
    }

    /// A hub object as a served version.
    pub fn from_hub(&self, kind: &KindDesc, object: Box<dyn Object>) -> Result<Box<dyn Object>, StatusError> {
        (kind.from_hub)(object).map_err(|e| StatusError::internal_error(e.to_string()))
    }

    /// The bytes to store: storage version, protobuf in its envelope, without a resource version.
    pub(crate) fn encode(&self, object: &dyn Object) -> Result<Vec<u8>, StatusError> {
        let mut stored = self.from_hub(self.storage, object.clone_object())?;
        stored.meta_mut().resource_version.clear();
        stored.meta_mut().self_link.clear();
        Ok(protobuf::encode(as_kind(&*stored)))
    }

    /// The object that an entry holds, with its resource version, as the hub version.
    pub(crate) fn decode(&self, entry: &Entry) -> Result<Box<dyn Object>, StatusError> {
        self.decode_bytes(&entry.value, entry.mod_revision)
            .map_err(|reason| StatusError::internal_error(format!("unable to decode {}: {reason}", entry.key)))
    }

    fn decode_bytes(&self, value: &[u8], revision: Revision) -> Result<Box<dyn Object>, String> {
        let unknown = protobuf::decode_envelope(value).map_err(|e| e.to_string())?;
        let api_version = &*unknown.api_version;
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let kind = self
            .versions
            .iter()
            .find(|k| k.version == version && k.kind == unknown.kind)
            .ok_or_else(|| format!("no kind {:?} is registered for version {api_version:?}", unknown.kind))?;
        let mut object = (kind.new)();
        protobuf::read_message(unknown.raw, object.as_reflect_mut()).map_err(|e| e.to_string())?;
        self.apply_defaults(kind, &mut *object);
        let mut hub = (kind.to_hub)(object).map_err(|e| e.to_string())?;
        hub.meta_mut().resource_version = revision.to_string();
        Ok(hub)
    }
}

fn as_kind(object: &dyn Object) -> &dyn keelson_machinery::object::Kind {
    object
}
