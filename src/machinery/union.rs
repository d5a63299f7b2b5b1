//! The unions of JSON schemas: a message, or something shorter in its place.
//!
//! Each is a leaf, for its JSON is no object in general. What stands in it is read as the message it is, but without
//! strict problems: kube-apiserver's decoder does not look for them there either.

mod nesting;
#[cfg(test)]
mod tests;

use nesting::{Again, Ahead, Attempt, Nesting};

use crate::json;
use crate::protobuf::{read_message_within, write_message};
use crate::reflect::budget::{self, Budget};
use crate::reflect::equality;
use crate::reflect::{Field, Leaf, LeafKind, LeafResult, Reflect, Slot, Type, Value};
use crate::wire::{self, Reader, Wire};

/// A message, or `true` or `false`: JSONSchemaPropsOrBool. `false` is the zero value.
#[derive(Clone, Debug)]
pub enum OrBool<T> {
    Bool(bool),
    Message(Box<T>),
}

/// A message or a list of messages: JSONSchemaPropsOrArray.
#[derive(Clone, Debug, Default)]
pub enum OrArray<T> {
    /// Neither, `null`: the zero value.
    #[default]
    Empty,
    Message(Box<T>),
    Array(Vec<T>),
}

/// A message or a list of strings: JSONSchemaPropsOrStringArray. The empty list is the zero value.
#[derive(Clone, Debug)]
pub enum OrStringArray<T> {
    Message(Box<T>),
    Array(Vec<String>),
}

impl<T> Default for OrBool<T> {
    fn default() -> Self {
        OrBool::Bool(false)
    }
}

impl<T> Default for OrStringArray<T> {
    fn default() -> Self {
        OrStringArray::Array(Vec::new())
    }
}

/// What all unions share as leaves.
macro_rules! union {
    ($ty:ident) => {
        impl<T: Reflect + Field + Default + Clone> Field for $ty<T> {
            const TYPE: Type = Type::Leaf(LeafKind::Union);
            fn value(&self) -> Value<'_> {
                Value::Leaf(self)
            }
            fn slot(&mut self) -> Slot<'_> {
                Slot::Leaf(self)
            }
        }
    };
}
union!(OrBool);
union!(OrArray);
union!(OrStringArray);

macro_rules! leaf_parts {
    () => {
        fn kind(&self) -> LeafKind {
            LeafKind::Union
        }
        fn read_json(&mut self, json: &[u8]) -> LeafResult {
            self.read_json_within(json, &Budget::unlimited())
        }
        fn read_json_prefix(&mut self, text: &[u8], budget: &Budget) -> LeafResult<Option<usize>> {
            let read = read_prefix(text, budget)?;
            Ok(read.map(|(message, length)| {
                *self = Self::Message(message);
                length
            }))
        }
        fn read_protobuf(&mut self, body: &[u8]) -> LeafResult {
            self.read_protobuf_within(body, &Budget::unlimited())
        }
        fn clear(&mut self) {
            *self = Self::default();
        }
        fn eq_leaf(&self, other: &dyn Leaf) -> bool {
            other
                .as_any()
                .downcast_ref::<Self>()
                .is_some_and(|o| self.equals(o))
        }
        fn assign(&mut self, other: &dyn Leaf) {
            match other.as_any().downcast_ref::<Self>() {
                Some(other) => self.clone_from(other),
                None => self.clear(),
            }
        }
        fn clone_leaf(&self) -> Box<dyn Leaf> {
            Box::new(self.clone())
        }
        fn as_any(&self) -> &dyn std::any::Any {
            self
        }
        fn as_any_mut(&mut self) -> &mut dyn std::any::Any {
            self
        }
    };
}

fn read_json<T: Reflect + Default>(json: &[u8], budget: &Budget) -> LeafResult<Box<T>> {
    let _again = Again::enter();
    let _level = Nesting::enter()?;
    let mut message = Box::<T>::default();
    json::read_within(json, &mut *message, budget).map_err(|e| e.to_string())?;
    Ok(message)
}

/// The message that a text begins with, and its length; see [`Leaf::read_json_prefix`].
fn read_prefix<T: Reflect + Default>(text: &[u8], budget: &Budget) -> LeafResult<Option<(Box<T>, usize)>> {
    let outermost = match Ahead::enter() {
        Attempt::Nobody => return Ok(None),
        Attempt::Outermost(ahead) => Some(ahead),
        Attempt::Part => None,
    };
    let (left, mut message) = (budget.left(), Box::<T>::default());
    let read = Nesting::enter().and_then(|_level| {
        let read = json::read_prefix(text, &mut *message, budget);
        read.map_err(|error| error.to_string())
    });
    match (read, outermost) {
        (Ok(length), _) => Ok(Some((message, length))),
        (Err(_), Some(ahead)) => {
            ahead.fail();
            budget.put_back(left);
            Ok(None)
        }
        (Err(reason), None) => Err(reason),
    }
}

fn are_identical<T: Reflect>(a: &T, b: &T) -> bool {
    equality::identical(Value::Message(a), Value::Message(b))
}

fn read_protobuf<T: Reflect + Default>(body: &[u8], message: &mut T, budget: &Budget) -> LeafResult {
    let _level = Nesting::enter()?;
    if !budget.take(message.desc().size) {
        return Err(crate::decode::EXHAUSTED.to_owned());
    }
    read_message_within(body, message, budget).map_err(|e| e.to_string())
}

fn write_field<T: Reflect>(number: u32, message: &T, out: &mut Vec<u8>) {
    let mut body = Vec::new();
    write_message(message, &mut body);
    wire::write_bytes_field(number, &body, out);
}

fn lists_equal<T: Reflect>(a: &[T], b: &[T]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equality::equal(a, b))
}

impl<T: Reflect + Field + Default + Clone> OrBool<T> {
    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (OrBool::Bool(a), OrBool::Bool(b)) => a == b,
            (OrBool::Message(a), OrBool::Message(b)) => equality::equal(&**a, &**b),
            _ => false,
        }
    }
}

impl<T: Reflect + Field + Default + Clone> Leaf for OrBool<T> {
    leaf_parts!();

    fn is_identical(&self, other: &dyn Leaf) -> bool {
        let Some(other) = other.as_any().downcast_ref::<Self>() else {
            return false;
        };
        match (self, other) {
            (OrBool::Bool(a), OrBool::Bool(b)) => a == b,
            (OrBool::Message(a), OrBool::Message(b)) => are_identical(&**a, &**b),
            _ => false,
        }
    }

    fn is_zero(&self) -> bool {
        matches!(self, OrBool::Bool(false))
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            OrBool::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
            OrBool::Message(m) => json::write(&**m, out),
        }
    }

    fn read_json_within(&mut self, json: &[u8], budget: &Budget) -> LeafResult {
        *self = match json.first() {
            Some(b'{') => OrBool::Message(read_json(json, budget)?),
            Some(b't') => OrBool::Bool(true),
            Some(b'f') => OrBool::Bool(false),
            _ => return Err("boolean or JSON schema expected".to_owned()),
        };
        Ok(())
    }

    fn write_protobuf(&self, out: &mut Vec<u8>) {
        let allows = !matches!(self, OrBool::Bool(false));
        wire::write_varint_field(1, u64::from(allows), out);
        if let OrBool::Message(m) = self {
            write_field(2, &**m, out);
        }
    }

    fn read_protobuf_within(&mut self, body: &[u8], budget: &Budget) -> LeafResult {
        let (mut allows, mut message) = (false, None);
        let mut fields = Reader::new(body);
        while let Some(field) = fields.next()? {
            match field {
                (1, Wire::Varint(n)) => allows = n != 0,
                (2, Wire::Bytes(b)) => read_protobuf(b, message.get_or_insert_with(T::default), budget)?,
                (1, other) => return Err(other.mismatch("Allows")),
                (2, other) => return Err(other.mismatch("Schema")),
                _ => {}
            }
        }
        *self = match message {
            Some(m) => OrBool::Message(Box::new(m)),
            None => OrBool::Bool(allows),
        };
        Ok(())
    }
}

impl<T: Reflect + Field + Default + Clone> OrArray<T> {
    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (OrArray::Empty, OrArray::Empty) => true,
            (OrArray::Message(a), OrArray::Message(b)) => equality::equal(&**a, &**b),
            (OrArray::Array(a), OrArray::Array(b)) => lists_equal(a, b),
            _ => false,
        }
    }
}

impl<T: Reflect + Field + Default + Clone> Leaf for OrArray<T> {
    leaf_parts!();

    fn is_identical(&self, other: &dyn Leaf) -> bool {
        let Some(other) = other.as_any().downcast_ref::<Self>() else {
            return false;
        };
        match (self, other) {
            (OrArray::Empty, OrArray::Empty) => true,
            (OrArray::Array(a), OrArray::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| are_identical(a, b))
            }
            (OrArray::Message(a), OrArray::Message(b)) => are_identical(&**a, &**b),
            _ => false,
        }
    }

    fn is_zero(&self) -> bool {
        matches!(self, OrArray::Empty)
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            OrArray::Empty => out.extend_from_slice(b"null"),
            OrArray::Message(m) => json::write(&**m, out),
            OrArray::Array(list) if list.is_empty() => out.extend_from_slice(b"null"),
            OrArray::Array(list) => {
                for (i, m) in list.iter().enumerate() {
                    out.push(if i == 0 { b'[' } else { b',' });
                    json::write(m, out);
                }
                out.push(b']');
            }
        }
    }

    fn read_json_within(&mut self, json: &[u8], budget: &Budget) -> LeafResult {
        *self = match json.first() {
            Some(b'{') => OrArray::Message(read_json(json, budget)?),
            Some(b'[') => {
                let _level = Nesting::enter()?;
                let mut list = Vec::<T>::new();
                json::read_value_within(json, Vec::<T>::ELEMENT, list.slot(), budget).map_err(|e| e.to_string())?;
                OrArray::Array(list)
            }
            _ => OrArray::Empty,
        };
        Ok(())
    }

    fn write_protobuf(&self, out: &mut Vec<u8>) {
        match self {
            OrArray::Empty => {}
            OrArray::Message(m) => write_field(1, &**m, out),
            OrArray::Array(list) => list.iter().for_each(|m| write_field(2, m, out)),
        }
    }

    fn read_protobuf_within(&mut self, body: &[u8], budget: &Budget) -> LeafResult {
        let (mut message, mut list) = (None, Vec::new());
        let mut fields = Reader::new(body);
        while let Some(field) = fields.next()? {
            match field {
                (1, Wire::Bytes(b)) => read_protobuf(b, message.get_or_insert_with(T::default), budget)?,
                (2, Wire::Bytes(b)) => {
                    let mut element = T::default();
                    read_protobuf(b, &mut element, budget)?;
                    list.push(element);
                }
                (1, other) => return Err(other.mismatch("Schema")),
                (2, other) => return Err(other.mismatch("JSONSchemas")),
                _ => {}
            }
        }
        *self = match message {
            Some(m) if list.is_empty() => OrArray::Message(Box::new(m)),
            None if list.is_empty() => OrArray::Empty,
            _ => OrArray::Array(list),
        };
        Ok(())
    }
}

impl<T: Reflect + Field + Default + Clone> OrStringArray<T> {
    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (OrStringArray::Message(a), OrStringArray::Message(b)) => equality::equal(&**a, &**b),
            (OrStringArray::Array(a), OrStringArray::Array(b)) => a == b,
            _ => false,
        }
    }
}

impl<T: Reflect + Field + Default + Clone> Leaf for OrStringArray<T> {
    leaf_parts!();

    fn is_identical(&self, other: &dyn Leaf) -> bool {
        let Some(other) = other.as_any().downcast_ref::<Self>() else {
            return false;
        };
        match (self, other) {
            (OrStringArray::Array(a), OrStringArray::Array(b)) => a == b,
            (OrStringArray::Message(a), OrStringArray::Message(b)) => are_identical(&**a, &**b),
            _ => false,
        }
    }

    fn is_zero(&self) -> bool {
        matches!(self, OrStringArray::Array(list) if list.is_empty())
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            OrStringArray::Message(m) => json::write(&**m, out),
            OrStringArray::Array(list) => {
                out.push(b'[');
                for (i, text) in list.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    json::write_string(text, out);
                }
                out.push(b']');
            }
        }
    }

    fn read_json_within(&mut self, json: &[u8], budget: &Budget) -> LeafResult {
        *self = match json.first() {
            Some(b'{') => OrStringArray::Message(read_json(json, budget)?),
            Some(b'[') => {
                let mut list = Vec::<String>::new();
                json::read_value_within(json, Vec::<String>::ELEMENT, list.slot(), budget)
                    .map_err(|e| e.to_string())?;
                OrStringArray::Array(list)
            }
            _ => OrStringArray::default(),
        };
        Ok(())
    }

    fn write_protobuf(&self, out: &mut Vec<u8>) {
        match self {
            OrStringArray::Message(m) => write_field(1, &**m, out),
            OrStringArray::Array(list) => list
                .iter()
                .for_each(|text| wire::write_bytes_field(2, text.as_bytes(), out)),
        }
    }

    fn read_protobuf_within(&mut self, body: &[u8], budget: &Budget) -> LeafResult {
        let (mut message, mut list) = (None, Vec::new());
        let mut fields = Reader::new(body);
        while let Some(field) = fields.next()? {
            match field {
                (1, Wire::Bytes(b)) => read_protobuf(b, message.get_or_insert_with(T::default), budget)?,
                (2, Wire::Bytes(b)) => {
                    if !budget.take(budget::item(String::ELEMENT)) {
                        return Err(crate::decode::EXHAUSTED.to_owned());
                    }
                    list.push(String::from_utf8_lossy(b).into_owned());
                }
                (1, other) => return Err(other.mismatch("Schema")),
                (2, other) => return Err(other.mismatch("Property")),
                _ => {}
            }
        }
        *self = match message {
            Some(m) if list.is_empty() => OrStringArray::Message(Box::new(m)),
            _ => OrStringArray::Array(list),
        };
        Ok(())
    }
}
