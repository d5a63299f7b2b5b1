//! Dynamic messages: objects whose type is known at run time alone, such as custom resources.
//!
//! A [`DynamicMessage`] is a table and a slot for each of its fields, or, where these are many, for those that were
//! said. As Go's tree of maps, it holds what was said: any field may be absent or null, a value of another type than the
//! declared one stays as it came (validation objects to it), whole numbers stay whole, and what no field declares is
//! kept where the table says so. Its members are written in the order of their keys. All else, from codecs to
//! server-side apply, treats it as it treats a struct.

mod container;
mod object;
mod slot;
mod slots;
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod twin;
mod value;

use std::any::Any;

pub use container::{DynamicList, DynamicMap};
pub use object::DynamicObject;
pub use slot::DynamicSlot;
pub use slots::Sparse;
pub use table::DescError;
pub use value::DynamicValue;

use slots::Slots;

use crate::reflect::{Desc, FieldDesc, Map, MessageDesc, Ref, Reflect, Said, Slot, Unknown, Value};

/// A message over a table that is made at run time.
pub struct DynamicMessage {
    desc: Desc,
    slots: Slots,
    /// What is held beside the fields.
    rest: Option<Box<DynamicMap>>,
}

impl DynamicMessage {
    /// An empty one.
    pub fn new(desc: Desc) -> DynamicMessage {
        DynamicMessage {
            slots: Slots::of(desc.fields.len()),
            desc,
            rest: None,
        }
    }

    /// The value of the field with this JSON name.
    pub fn value(&self, json: &str) -> Option<&DynamicValue> {
        let (index, _) = self.desc.field(json)?;
        self.slots.get(index)
    }

    /// Makes a field one that walks over what was said come to.
    fn keep_place(&mut self, index: usize) {
        if let Slots::Sparse(_) = self.slots {
            self.slots.get_mut(index, self.desc.fields.len());
        }
    }

    #[inline]
    pub(super) fn slot(&mut self, index: usize) -> Option<DynamicSlot<'_>> {
        let fields = &self.desc.fields;
        let field = fields.get(index)?;
        Some(DynamicSlot::new(&field.ty, self.slots.get_mut(index, fields.len())?))
    }
}

impl Clone for DynamicMessage {
    fn clone(&self) -> Self {
        DynamicMessage {
            desc: self.desc.clone(),
            slots: self.slots.clone(),
            rest: self.rest.clone(),
        }
    }
}

impl Reflect for DynamicMessage {
    fn desc(&self) -> &MessageDesc {
        &self.desc
    }

    fn handle(&self) -> &Desc {
        &self.desc
    }

    fn get(&self, index: usize) -> Value<'_> {
        self.slots.get(index).map_or(Value::Absent, DynamicValue::value)
    }

    fn said<'a>(&'a self, said: &mut Vec<Said<'a>>) {
        match &self.slots {
            Slots::Dense(slots) => {
                let values = (0..).zip(slots.iter().map(DynamicValue::value));
                said.extend(values.filter(|(_, value)| !matches!(value, Value::Absent)));
            }
            Slots::Sparse(slots) => said.extend(slots.iter().map(|(index, value)| (*index, value.value()))),
        }
    }

    fn sparse(&self) -> Option<&Sparse> {
        match &self.slots {
            Slots::Dense(_) => None,
            Slots::Sparse(slots) => Some(slots),
        }
    }

    fn get_mut(&mut self, index: usize) -> Option<Slot<'_>> {
        self.slot(index).map(Slot::from)
    }

    fn rest(&self) -> Option<&dyn Map> {
        match &self.rest {
            Some(rest) if !rest.is_empty() => Some(&**rest),
            _ => None,
        }
    }

    fn rest_mut(&mut self) -> Option<&mut dyn Map> {
        if self.desc.unknown == Unknown::Dropped {
            return None;
        }
        let rest = self
            .rest
            .get_or_insert_with(|| Box::new(DynamicMap::new(Ref::Static(FieldDesc::ANY))));
        Some(&mut **rest)
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
