//! Values of dynamic messages.

use bytes::Bytes;

use super::{DynamicList, DynamicMap, DynamicMessage};
use crate::reflect::intstr::IntOrString;
use crate::reflect::quantity::Quantity;
use crate::reflect::raw::RawJson;
use crate::reflect::time::{Duration, MicroTime, Time};
use crate::reflect::{FieldDesc, Leaf, LeafKind, List, Make, Map, Ref, Reflect, Type, Value};

/// A value of any type.
#[derive(Default)]
pub enum DynamicValue {
    #[default]
    Absent,
    Null,
    Bool(bool),
    /// A whole number, whatever its width.
    Int(i64),
    Double(f64),
    Str(String),
    Bytes(Box<Bytes>),
    List(Box<DynamicList>),
    Map(Box<DynamicMap>),
    Message(Box<DynamicMessage>),
    /// A struct, such as the metadata of an object.
    Struct(Box<dyn Reflect>),
    Leaf(Box<dyn Leaf>),
}

impl DynamicValue {
    pub fn value(&self) -> Value<'_> {
        match self {
            DynamicValue::Absent => Value::Absent,
            DynamicValue::Null => Value::Null,
            DynamicValue::Bool(v) => Value::Bool(*v),
            DynamicValue::Int(v) => Value::Int64(*v),
            DynamicValue::Double(v) => Value::Double(*v),
            DynamicValue::Str(v) => Value::Str(v),
            DynamicValue::Bytes(v) => Value::Bytes(v),
            DynamicValue::List(v) => Value::List(&**v),
            DynamicValue::Map(v) => Value::Map(&**v),
            DynamicValue::Message(v) => Value::Message(&**v),
            DynamicValue::Struct(v) => Value::Message(&**v),
            DynamicValue::Leaf(v) => Value::Leaf(&**v),
        }
    }

    /// Whether it is a value of the type. None is absent or null.
    pub(super) fn fits(&self, ty: &Type) -> bool {
        match (self, ty) {
            (DynamicValue::Absent | DynamicValue::Null, _) => false,
            (_, Type::Any | Type::Untyped) => true,
            (DynamicValue::Bool(_), Type::Bool)
            | (DynamicValue::Int(_), Type::Int32 | Type::Int64)
            | (DynamicValue::Double(_), Type::Double)
            | (DynamicValue::Str(_), Type::String)
            | (DynamicValue::Bytes(_), Type::Bytes) => true,
            (DynamicValue::List(list), Type::List(element)) => element.is(list.element()),
            (DynamicValue::Map(map), Type::Map(element)) => element.is(map.element()),
            (DynamicValue::Message(message), Type::Message(desc)) => desc.is(message.desc()),
            (DynamicValue::Struct(message), Type::Message(desc)) => desc.is(message.desc()),
            (DynamicValue::Leaf(leaf), Type::Leaf(kind)) => leaf.kind() == *kind,
            _ => false,
        }
    }

    /// The zero of a type; null where it may be anything.
    pub(super) fn zero(ty: &Type) -> DynamicValue {
        match ty {
            Type::Bool => DynamicValue::Bool(false),
            Type::Int32 | Type::Int64 => DynamicValue::Int(0),
            Type::Double => DynamicValue::Double(0.0),
            Type::String => DynamicValue::Str(String::new()),
            Type::Bytes => DynamicValue::Bytes(Box::default()),
            Type::List(element) => DynamicValue::list(element.clone()),
            Type::Map(element) => DynamicValue::map(element.clone()),
            Type::Message(desc) if matches!(desc.make, Make::Dynamic) => {
                DynamicValue::Message(Box::new(DynamicMessage::new(desc.clone())))
            }
            Type::Message(desc) => DynamicValue::Struct(desc.new_message()),
            Type::Leaf(kind) => empty_leaf(*kind).map_or(DynamicValue::Null, DynamicValue::Leaf),
            Type::Any | Type::Untyped => DynamicValue::Null,
        }
    }

    pub(super) fn list(element: Ref<FieldDesc>) -> DynamicValue {
        DynamicValue::List(Box::new(DynamicList::new(element)))
    }

    pub(super) fn map(element: Ref<FieldDesc>) -> DynamicValue {
        DynamicValue::Map(Box::new(DynamicMap::new(element)))
    }
}

/// The zero of a leaf; `None` for unions, which only structs have.
fn empty_leaf(kind: LeafKind) -> Option<Box<dyn Leaf>> {
    Some(match kind {
        LeafKind::Quantity => Box::new(Quantity::default()),
        LeafKind::IntOrString => Box::new(IntOrString::default()),
        LeafKind::Time => Box::new(Time::default()),
        LeafKind::MicroTime => Box::new(MicroTime::default()),
        LeafKind::Duration => Box::new(Duration::default()),
        LeafKind::Raw => Box::new(RawJson::default()),
        LeafKind::Union => return None,
    })
}

impl Clone for DynamicValue {
    fn clone(&self) -> DynamicValue {
        match self {
            DynamicValue::Absent => DynamicValue::Absent,
            DynamicValue::Null => DynamicValue::Null,
            DynamicValue::Bool(v) => DynamicValue::Bool(*v),
            DynamicValue::Int(v) => DynamicValue::Int(*v),
            DynamicValue::Double(v) => DynamicValue::Double(*v),
            DynamicValue::Str(v) => DynamicValue::Str(v.clone()),
            DynamicValue::Bytes(v) => DynamicValue::Bytes(v.clone()),
            DynamicValue::List(v) => DynamicValue::List(v.clone()),
            DynamicValue::Map(v) => DynamicValue::Map(v.clone()),
            DynamicValue::Message(v) => DynamicValue::Message(v.clone()),
            DynamicValue::Struct(v) => DynamicValue::Struct(v.clone_message()),
            DynamicValue::Leaf(v) => DynamicValue::Leaf(v.clone_leaf()),
        }
    }
}
