//! The objects that authenticators look up: read from the store's memory, from the store only if that has none.

use std::sync::{Arc, OnceLock};

use keelson_machinery::object::Object;
use keelson_machinery::reflect::Value;

use super::Attachment;
use crate::authz::Followed;
use crate::registry::{Registry, Resource};

/// A resource of the server, once that is known.
pub(super) struct Source {
    plural: &'static str,
    resource: OnceLock<Arc<Resource>>,
}

impl Source {
    /// A resource of the group "".
    pub const fn of(plural: &'static str) -> Source {
        Source {
            plural,
            resource: OnceLock::new(),
        }
    }

    pub fn attach(&self, attachment: &Attachment<'_>) -> Option<Followed> {
        self.attach_to(attachment.registry)
    }

    fn attach_to(&self, registry: &Registry) -> Option<Followed> {
        let resource = registry.resource("", self.plural)?;
        let followed = Followed::of(&resource);
        let _ = self.resource.set(resource);
        Some(followed)
    }

    /// `Ok(None)`: there is no such object. An error is for the log.
    pub async fn find(&self, namespace: &str, name: &str) -> Result<Option<Box<dyn Object>>, String> {
        let Some(resource) = self.resource.get() else {
            return Ok(None);
        };
        let key = resource.key(namespace, name).map_err(|e| e.to_string())?;
        let held = resource.backend.store.held(&resource.key_prefix);
        if let Some(entry) = held.and_then(|held| held.get(&key)) {
            resource.prepare(&entry).await;
            return resource.decode(&entry).map(Some).map_err(|e| e.to_string());
        }
        let found = resource.find(namespace, name).await.map_err(|e| e.to_string())?;
        Ok(found.map(|stored| stored.object))
    }
}

/// A text field of an object; "" if it has none of this name.
pub(super) fn text<'a>(object: &'a dyn Object, field: &str) -> &'a str {
    match object.desc().field(field).map(|(index, _)| object.get(index)) {
        Some(Value::Str(text)) => text,
        _ => "",
    }
}

/// The value at a key of a Secret's data.
pub(super) fn secret_data<'a>(secret: &'a dyn Object, key: &str) -> Option<&'a [u8]> {
    let Some(Value::Map(data)) = secret.desc().field("data").map(|(index, _)| secret.get(index)) else {
        return None;
    };
    match data.get(key)? {
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}
