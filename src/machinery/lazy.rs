//! Messages that are read when somebody looks at them: a field that a definition says to be `lazy`.
//!
//! What the store holds of one stays the text that it is, and all copies of the object share it. A write that does not
//! touch it neither reads, copies, compares nor writes it field by field. What a client sends is read at once.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::json;
use crate::reflect::dynamic::Sparse;
use crate::reflect::{Desc, Field, Map, MessageDesc, Reflect, Said, Shared, Slot, Type, Value};

/// A message known by its JSON text, by its fields, or by both. Copies share what is known; a change parts them.
pub struct Lazy<T>(Arc<Known<T>>);

/// Where nothing is known the message is empty.
struct Known<T> {
    /// The text that it was said by, or that was written of it.
    text: OnceLock<Bytes>,
    /// The message, where it was not said by a text.
    said: Option<Box<T>>,
    /// What was read of the text.
    read: OnceLock<Box<T>>,
}

/// What may be lazy.
pub trait Message: Reflect + Field + Default + Clone {}

impl<T: Reflect + Field + Default + Clone> Message for T {}

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known {
            text: OnceLock::new(),
            said: None,
            read: OnceLock::new(),
        }
    }
}

impl<T: Clone> Clone for Known<T> {
    fn clone(&self) -> Known<T> {
        Known {
            text: self.text.clone(),
            said: self.said.clone(),
            read: self.read.clone(),
        }
    }
}

impl<T> Default for Lazy<T> {
    fn default() -> Lazy<T> {
        Lazy(Arc::default())
    }
}

impl<T> Clone for Lazy<T> {
    fn clone(&self) -> Lazy<T> {
        Lazy(self.0.clone())
    }
}

impl<T: Message> From<T> for Lazy<T> {
    fn from(message: T) -> Lazy<T> {
        Lazy(Arc::new(Known {
            said: Some(Box::new(message)),
            ..Known::default()
        }))
    }
}

impl<T: Message> Lazy<T> {
    /// The message. What the store holds is one; of a text that somebody else has put there and that is none, as much as
    /// can be read.
    pub fn message(&self) -> &T {
        let known = &*self.0;
        known.said.as_ref().unwrap_or_else(|| {
            known.read.get_or_init(|| {
                let mut message = Box::<T>::default();
                if let Some(text) = known.text.get() {
                    let _ = json::read(text, &mut *message);
                }
                message
            })
        })
    }

    /// The message, to be changed: it is parted from other copies, and its text is not known any more.
    pub fn message_mut(&mut self) -> &mut T {
        self.message();
        let known = Arc::make_mut(&mut self.0);
        known.text.take();
        let message = known.said.take().or_else(|| known.read.take());
        known.said.insert(message.unwrap_or_default())
    }

    /// The message alone; a copy where others have it too.
    pub fn into_message(mut self) -> T {
        std::mem::take(self.message_mut())
    }

    /// Its JSON, as [`json::write`] writes it or as the store holds it.
    pub fn text(&self) -> &Bytes {
        self.0.text.get_or_init(|| {
            let mut text = Vec::new();
            json::write(self.message(), &mut text);
            text.into()
        })
    }
}

impl<T: Message> Deref for Lazy<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.message()
    }
}

impl<T: Message> DerefMut for Lazy<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.message_mut()
    }
}

impl<T: Message + fmt::Debug> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message().fmt(f)
    }
}

impl<T: Message> Field for Lazy<T> {
    const TYPE: Type = T::TYPE;
    fn value(&self) -> Value<'_> {
        Value::Message(self)
    }
    fn slot(&mut self) -> Slot<'_> {
        Slot::Message(self)
    }
}

impl<T: Message> Shared for Lazy<T> {
    fn text(&self) -> &Bytes {
        Lazy::text(self)
    }

    fn set_text(&mut self, text: Bytes) {
        self.0 = Arc::new(Known {
            text: OnceLock::from(text),
            ..Known::default()
        });
    }

    fn is_same(&self, other: &dyn Shared) -> bool {
        let Some(other) = other.as_any().downcast_ref::<Self>() else {
            return false;
        };
        let same_text = || Some(self.0.text.get()? == other.0.text.get()?);
        Arc::ptr_eq(&self.0, &other.0) || same_text().unwrap_or(false)
    }

    fn share(&mut self, other: &dyn Shared) -> bool {
        let Some(other) = other.as_any().downcast_ref::<Self>() else {
            return false;
        };
        self.clone_from(other);
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// All but what is shared is the message's.
impl<T: Message> Reflect for Lazy<T> {
    fn desc(&self) -> &MessageDesc {
        self.handle()
    }
    fn handle(&self) -> &Desc {
        match &T::ELEMENT.ty {
            Type::Message(desc) => desc,
            _ => self.message().handle(),
        }
    }
    fn get(&self, index: usize) -> Value<'_> {
        self.message().get(index)
    }
    fn said<'a>(&'a self, said: &mut Vec<Said<'a>>) {
        self.message().said(said);
    }
    fn sparse(&self) -> Option<&Sparse> {
        self.message().sparse()
    }
    fn get_mut(&mut self, index: usize) -> Option<Slot<'_>> {
        self.message_mut().get_mut(index)
    }
    fn rest(&self) -> Option<&dyn Map> {
        self.message().rest()
    }
    fn rest_mut(&mut self) -> Option<&mut dyn Map> {
        self.message_mut().rest_mut()
    }
    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
    fn shared_mut(&mut self) -> Option<&mut dyn Shared> {
        Some(self)
    }
    fn clone_message(&self) -> Box<dyn Reflect> {
        Box::new(self.clone())
    }
    fn as_any(&self) -> &dyn Any {
        self.message().as_any()
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self.message_mut().as_any_mut()
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        Box::new(self.into_message())
    }
}

#[cfg(test)]
mod tests;
