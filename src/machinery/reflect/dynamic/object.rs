//! Objects whose kind is known at run time alone.

use std::any::Any;

use super::{DynamicMessage, Sparse};
use crate::meta::v1::ObjectMeta;
use crate::reflect::object::{Gvk, Kind, Object};
use crate::reflect::{Desc, Map, MessageDesc, Ref, Reflect, Said, Slot, Value};

/// A [`DynamicMessage`] with the metadata of an object, which is a struct for all kinds.
#[derive(Clone)]
pub struct DynamicObject {
    message: DynamicMessage,
    gvk: Ref<Gvk>,
    /// The index of the field `metadata`; `None` where the table has none of that type.
    meta_at: Option<usize>,
    meta: ObjectMeta,
}

static NO_KIND: Gvk = Gvk::new_static("", "", "");

impl DynamicObject {
    /// An empty one. Its table should say which kind it is and have a field `metadata` of the type [`ObjectMeta`].
    pub fn new(desc: Desc) -> DynamicObject {
        let meta_at = desc.field("metadata").and_then(|(index, field)| {
            let is_meta = field.message()?.is(ObjectMeta::message_desc());
            (is_meta && field.ty.is_message()).then_some(index)
        });
        let mut message = DynamicMessage::new(desc.clone());
        if let Some(at) = meta_at {
            // Metadata is always there: its place is among those of a message that has only such.
            message.keep_place(at);
        }
        DynamicObject {
            gvk: desc.gvk.clone().unwrap_or(Ref::Static(&NO_KIND)),
            meta_at,
            meta: ObjectMeta::default(),
            message,
        }
    }

    /// The object without its metadata.
    pub fn message(&self) -> &DynamicMessage {
        &self.message
    }
}

impl Reflect for DynamicObject {
    fn desc(&self) -> &MessageDesc {
        self.message.desc()
    }

    fn handle(&self) -> &Desc {
        self.message.handle()
    }

    fn get(&self, index: usize) -> Value<'_> {
        match self.meta_at {
            Some(at) if at == index => Value::Message(&self.meta),
            _ => self.message.get(index),
        }
    }

    fn said<'a>(&'a self, said: &mut Vec<Said<'a>>) {
        let begin = said.len();
        self.message.said(said);
        let Some(at) = self.meta_at.and_then(|at| u16::try_from(at).ok()) else {
            return;
        };
        said.retain({
            let mut place = 0;
            move |(index, _)| {
                place += 1;
                place <= begin || *index != at
            }
        });
        let own = said.get(begin..).unwrap_or_default();
        let place = begin + own.partition_point(|(index, _)| *index < at);
        said.insert(place, (at, Value::Message(&self.meta)));
    }

    fn sparse(&self) -> Option<&Sparse> {
        self.message.sparse()
    }

    fn get_mut(&mut self, index: usize) -> Option<Slot<'_>> {
        match self.meta_at {
            Some(at) if at == index => Some(Slot::Message(&mut self.meta)),
            _ => self.message.get_mut(index),
        }
    }

    fn rest(&self) -> Option<&dyn Map> {
        self.message.rest()
    }

    fn rest_mut(&mut self) -> Option<&mut dyn Map> {
        self.message.rest_mut()
    }

    fn clone_message(&self) -> Box<dyn Reflect> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Kind for DynamicObject {
    fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    fn as_reflect(&self) -> &dyn Reflect {
        self
    }

    fn as_reflect_mut(&mut self) -> &mut dyn Reflect {
        self
    }
}

impl Object for DynamicObject {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }

    fn clone_object(&self) -> Box<dyn Object> {
        Box::new(self.clone())
    }
}
