//! The place of a value in a dynamic message.

use super::{DynamicMessage, DynamicValue};
use crate::reflect::copy;
use crate::reflect::{FieldDesc, List, Map, OptionalSlot, Ref, Reflect, Slot, Type, Value};

/// What lists and maps are made of where none is declared.
static ANY: Ref<FieldDesc> = Ref::Static(FieldDesc::ANY);

/// A place for a value of any type, and the type that is declared there.
pub struct DynamicSlot<'a> {
    ty: &'a Type,
    value: &'a mut DynamicValue,
}

impl<'a> From<DynamicSlot<'a>> for Slot<'a> {
    fn from(slot: DynamicSlot<'a>) -> Slot<'a> {
        Slot::Optional(OptionalSlot::Dynamic(slot))
    }
}

impl<'a> DynamicSlot<'a> {
    #[inline]
    pub(super) fn new(ty: &'a Type, value: &'a mut DynamicValue) -> DynamicSlot<'a> {
        DynamicSlot { ty, value }
    }

    /// Whether there is a value; `null` is none.
    pub fn is_some(&self) -> bool {
        !matches!(self.value, DynamicValue::Absent | DynamicValue::Null)
    }

    pub fn clear(&mut self) {
        *self.value = DynamicValue::Absent;
    }

    pub fn set_null(&mut self) {
        *self.value = DynamicValue::Null;
    }

    pub fn set(&mut self, value: DynamicValue) {
        *self.value = value;
    }

    /// The same slot, for a while.
    pub fn reborrow(&mut self) -> DynamicSlot<'_> {
        DynamicSlot::new(self.ty, self.value)
    }

    /// The slot of a value of the declared type, made from its zero if there was none. Where anything may stand, it is
    /// that of what stands there.
    pub fn fill(self) -> Slot<'a> {
        if !self.value.fits(self.ty) {
            *self.value = DynamicValue::zero(self.ty);
        }
        self.open()
    }

    /// The slot of what stands here.
    pub fn open(self) -> Slot<'a> {
        match self.value {
            DynamicValue::Absent | DynamicValue::Null => self.into(),
            DynamicValue::Bool(v) => Slot::Bool(v),
            DynamicValue::Int(v) => Slot::Int64(v),
            DynamicValue::Double(v) => Slot::Double(v),
            DynamicValue::Str(v) => Slot::Str(v),
            DynamicValue::Bytes(v) => Slot::Bytes(v),
            DynamicValue::List(v) => Slot::List(&mut **v),
            DynamicValue::Map(v) => Slot::Map(&mut **v),
            DynamicValue::Message(v) => Slot::Message(&mut **v),
            DynamicValue::Struct(v) => Slot::Message(&mut **v),
            DynamicValue::Leaf(v) => Slot::Leaf(&mut **v),
        }
    }

    /// The slot of a list, made from an empty one if something else stands here: of the declared one, or of anything.
    pub(crate) fn fill_list(self) -> Slot<'a> {
        let element = match self.ty {
            Type::List(element) => element,
            _ => &ANY,
        };
        let fits = matches!(&*self.value, DynamicValue::List(list) if element.is(list.element()));
        if !fits {
            *self.value = DynamicValue::list(element.clone());
        }
        self.open()
    }

    /// The slot of an object, made from an empty one: of the declared type, or of anything where that is no object.
    pub(crate) fn fill_object(self) -> Slot<'a> {
        match self.ty {
            Type::Message(_) => self.fill(),
            _ => self.fill_map(),
        }
    }

    /// The slot of a map, made from an empty one if something else stands here: of the declared one, or of anything.
    pub(crate) fn fill_map(self) -> Slot<'a> {
        let element = match self.ty {
            Type::Map(element) => element,
            _ => &ANY,
        };
        let fits = matches!(&*self.value, DynamicValue::Map(map) if element.is(map.element()));
        if !fits {
            *self.value = DynamicValue::map(element.clone());
        }
        self.open()
    }

    /// Puts a copy of a value here, of whatever type it is.
    pub fn assign(mut self, value: Value<'_>) {
        *self.value = match value {
            Value::Absent => DynamicValue::Absent,
            Value::Null => DynamicValue::Null,
            Value::Bool(v) => DynamicValue::Bool(v),
            Value::Int32(v) => DynamicValue::Int(v.into()),
            Value::Int64(v) => DynamicValue::Int(v),
            Value::Double(v) => DynamicValue::Double(v),
            Value::Str(v) => DynamicValue::Str(v.to_owned()),
            Value::Bytes(v) => DynamicValue::Bytes(Box::new(v.clone())),
            Value::Leaf(v) => DynamicValue::Leaf(v.clone_leaf()),
            Value::Message(v) => return self.assign_message(v),
            Value::List(v) => {
                self.clear();
                return copy::assign(self.fill_list(), Value::List(v));
            }
            Value::Map(v) => {
                self.clear();
                return copy::assign(self.fill_map(), Value::Map(v));
            }
        };
    }

    fn assign_message(self, message: &dyn Reflect) {
        match self.ty {
            Type::Message(desc) if !desc.is(message.desc()) => {
                *self.value = DynamicValue::zero(self.ty);
                copy::assign(self.open(), Value::Message(message));
            }
            _ => {
                *self.value = match message.as_any().downcast_ref::<DynamicMessage>() {
                    Some(message) => DynamicValue::Message(Box::new(message.clone())),
                    None => DynamicValue::Struct(message.clone_message()),
                };
            }
        }
    }
}
