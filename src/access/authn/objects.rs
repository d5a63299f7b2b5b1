//! The objects that authenticators look up.

use std::sync::OnceLock;

use keelson_machinery::object::Object;
use keelson_machinery::reflect::Value;

use super::Attachment;
use crate::lister::{Getter, GetterError, Place};

/// A resource of the server, once that is known.
pub(super) struct Source {
    plural: &'static str,
    getter: OnceLock<Box<dyn Getter>>,
}

impl Source {
    /// A resource of the group "".
    pub const fn of(plural: &'static str) -> Source {
        Source {
            plural,
            getter: OnceLock::new(),
        }
    }

    pub fn attach(&self, attachment: &Attachment<'_>) {
        if let Some(getter) = attachment.listers.getter("", self.plural) {
            let _ = self.getter.set(getter);
        }
    }

    /// `Ok(None)`: there is no such object. An error is for the log.
    pub async fn find(&self, namespace: &str, name: &str) -> Result<Option<Box<dyn Object>>, GetterError> {
        match self.getter.get() {
            Some(getter) => getter.get(namespace, name).await,
            None => Ok(None),
        }
    }

    /// As [`Getter::label`].
    pub async fn label(
        &self,
        place: &Place,
        label: &str,
        value: &str,
        manager: &'static str,
    ) -> Result<(), GetterError> {
        match self.getter.get() {
            Some(getter) => getter.label(place, label, value, manager).await,
            None => Ok(()),
        }
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
