//! Reflection over API objects: one table per message and two accessors.
//!
//! `#[derive(Message)]` writes a [`MessageDesc`] and the [`Reflect`] accessors for a plain struct; a
//! [`DynamicMessage`](crate::reflect::dynamic::DynamicMessage) has both for a table that is made at run time. Codecs,
//! defaulting, equality, pruning, patches, columns and everything else is written once against these, never per type.
//! There is no unsafe code: a field of a struct is reached by its index through a `match` that the derive writes.
//!
//! Presence follows Go: an `Option` field is a pointer there; any other is a plain value whose zero means absent,
//! unless [`Flags::ALWAYS`] says that it is written anyway. What is known at run time alone is a tree of maps in Go:
//! its fields are all optional, and may be null.

pub mod budget;
pub mod copy;
mod desc;
pub mod dynamic;
pub mod equality;
mod field;
pub mod intstr;
pub(crate) mod leaf;
pub mod object;
pub mod quantity;
pub mod raw;
mod rules;
pub mod time;

use std::any::Any;

use crate::reflect::budget::Budget;
use crate::reflect::dynamic::{DynamicSlot, Sparse};

pub use desc::{
    Desc, FieldDesc, Flags, Id, LeafKind, ListType, Make, MessageDesc, Name, Names, Patch, Ref, Type, Unknown,
};
pub use field::Field;
pub use rules::{
    BY_SCHEMA, Compiled, Details, Member, MessageRules, NO_DETAILS, NO_MESSAGE_RULES, NO_RULES, Rules, Union,
    ValidationRule,
};

/// The bytes of a `bytes` field.
pub use bytes::Bytes;

/// An API message: values with a table of its fields.
pub trait Reflect: Any + Send + Sync {
    /// The table of this message's fields.
    fn desc(&self) -> &MessageDesc;
    /// The same, to be kept.
    fn handle(&self) -> &Desc;
    /// The value of field `index` (its place in [`MessageDesc::fields`]); [`Value::Absent`] for an index out of range.
    fn get(&self, index: usize) -> Value<'_>;
    /// Appends the fields that say something with their indexes, in their order: all but the absent and empty ones that
    /// JSON does not show. For walks over whole messages, most of whose fields are empty.
    fn said<'a>(&'a self, said: &mut Vec<Said<'a>>);
    /// The values that were said of a message of so many fields that it holds no others, by the indexes of fields. What
    /// the value of one is says [`Reflect::get`].
    fn sparse(&self) -> Option<&Sparse> {
        None
    }
    /// The slot of field `index`; `None` for an index out of range.
    fn get_mut(&mut self, index: usize) -> Option<Slot<'_>>;
    /// What it holds beside its fields, with keys that none of these has; `None` where that is nothing.
    fn rest(&self) -> Option<&dyn Map> {
        None
    }
    /// The place of the same; `None` where nothing is kept beside the fields.
    fn rest_mut(&mut self) -> Option<&mut dyn Map> {
        None
    }
    /// It as a message that copies share, where it is one.
    fn shared(&self) -> Option<&dyn Shared> {
        None
    }
    /// The same, to take the place of another one.
    fn shared_mut(&mut self) -> Option<&mut dyn Shared> {
        None
    }
    /// A copy that is independent of this one.
    fn clone_message(&self) -> Box<dyn Reflect>;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// A message that its copies share as long as none is changed, and that is read of its JSON text when somebody looks at
/// its fields.
pub trait Shared {
    /// The JSON text.
    fn text(&self) -> &Bytes;
    /// Makes it the message of this JSON object, which is known to be one, and is not read before somebody looks at it.
    fn set_text(&mut self, text: Bytes);
    /// Whether it is known, without a look at the fields, that the other is the same in all respects.
    fn is_same(&self, other: &dyn Shared) -> bool;
    /// Becomes a copy of the other. False: that is of another type.
    fn share(&mut self, other: &dyn Shared) -> bool;
    fn as_any(&self) -> &dyn Any;
}

/// The index of a field, and its value.
pub type Said<'a> = (u16, Value<'a>);

/// The indexes of fields of a message that may have a value, ascending: of a sparse one those that were said, of any
/// other all.
pub fn indexes(message: &dyn Reflect) -> impl Iterator<Item = usize> + '_ {
    let sparse = message.sparse();
    let all = 0..if sparse.is_some() {
        0
    } else {
        message.desc().fields.len()
    };
    all.chain(sparse.into_iter().flatten().map(|(index, _)| usize::from(*index)))
}

/// The same of two messages of one type: where either may have a value.
pub fn indexes_of_both(a: &dyn Reflect, b: &dyn Reflect) -> Vec<usize> {
    let mut both: Vec<usize> = indexes(a).collect();
    if b.sparse().is_some() {
        both.extend(indexes(b));
        both.sort_unstable();
        both.dedup();
    }
    both
}

/// The fields of a message that may have a value, as [`indexes`] gives them, with their values.
pub fn fields(message: &dyn Reflect) -> impl Iterator<Item = (usize, &FieldDesc, Value<'_>)> {
    let fields = &message.desc().fields;
    indexes(message).filter_map(move |index| Some((index, fields.get(index)?, message.get(index))))
}

/// As [`fields`], with those that are looked at although they are absent.
pub fn fields_and_missed(message: &dyn Reflect) -> impl Iterator<Item = (usize, &FieldDesc, Value<'_>)> {
    let desc = message.desc();
    let mut all: Vec<usize> = Vec::new();
    let is_sparse = message.sparse().is_some();
    if is_sparse {
        all.extend(indexes(message).chain(desc.missed.iter().map(|index| usize::from(*index))));
        all.sort_unstable();
        all.dedup();
    }
    let count = if is_sparse { 0 } else { desc.fields.len() };
    let every = (0..count).chain(all);
    every.filter_map(move |index| Some((index, desc.fields.get(index)?, message.get(index))))
}

/// The field of this name and its value: of the message, of those that it inlines, or of what it holds beside its
/// fields.
pub fn member<'a>(message: &'a dyn Reflect, name: &str) -> Option<(&'a FieldDesc, Value<'a>)> {
    let desc = message.desc();
    if let Some((index, field)) = desc.field(name) {
        return Some((field, message.get(index)));
    }
    let inlined = desc
        .inlined
        .iter()
        .find_map(|index| match message.get(usize::from(*index)) {
            Value::Message(inlined) => member(inlined, name),
            _ => None,
        });
    inlined.or_else(|| Some((FieldDesc::ANY, message.rest()?.get(name)?)))
}

/// A field's value, borrowed.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// An `Option` that is `None`.
    Absent,
    /// `null` that was said, where that is a value.
    Null,
    Bool(bool),
    Int32(i32),
    Int64(i64),
    Double(f64),
    Str(&'a str),
    Bytes(&'a Bytes),
    Message(&'a dyn Reflect),
    Leaf(&'a dyn Leaf),
    List(&'a dyn List),
    Map(&'a dyn Map),
}

/// A field's place, borrowed for writing.
pub enum Slot<'a> {
    Bool(&'a mut bool),
    Int32(&'a mut i32),
    Int64(&'a mut i64),
    Double(&'a mut f64),
    Str(&'a mut String),
    Bytes(&'a mut Bytes),
    Message(&'a mut dyn Reflect),
    Leaf(&'a mut dyn Leaf),
    List(&'a mut dyn List),
    Map(&'a mut dyn Map),
    Optional(OptionalSlot<'a>),
}

/// The place of an `Option`.
pub trait Optional {
    fn is_some(&self) -> bool;
    /// The slot of the value, made from its zero if there was none.
    fn fill(&mut self) -> Slot<'_>;
    fn clear(&mut self);
}

/// A slot that may be empty: an `Option`, or the place of a value that is known at run time alone.
pub enum OptionalSlot<'a> {
    Typed(&'a mut dyn Optional),
    Dynamic(DynamicSlot<'a>),
}

impl<'a> OptionalSlot<'a> {
    /// Whether there is a value; `null` is none.
    pub fn is_some(&self) -> bool {
        match self {
            OptionalSlot::Typed(slot) => slot.is_some(),
            OptionalSlot::Dynamic(slot) => slot.is_some(),
        }
    }

    /// The slot of the value, made from its zero if there was none or one that does not fit.
    pub fn fill(self) -> Slot<'a> {
        match self {
            OptionalSlot::Typed(slot) => slot.fill(),
            OptionalSlot::Dynamic(slot) => slot.fill(),
        }
    }

    /// The slot of the value that is there, whether it fits or not; a slot like this one where there is none.
    pub fn open(self) -> Slot<'a> {
        match self {
            OptionalSlot::Typed(slot) if slot.is_some() => slot.fill(),
            OptionalSlot::Typed(slot) => Slot::Optional(OptionalSlot::Typed(slot)),
            OptionalSlot::Dynamic(slot) => slot.open(),
        }
    }

    pub fn clear(&mut self) {
        match self {
            OptionalSlot::Typed(slot) => slot.clear(),
            OptionalSlot::Dynamic(slot) => slot.clear(),
        }
    }

    /// Makes it null, or absent where null is no value.
    pub fn set_null(&mut self) {
        match self {
            OptionalSlot::Typed(slot) => slot.clear(),
            OptionalSlot::Dynamic(slot) => slot.set_null(),
        }
    }

    /// The same slot, for a while.
    pub fn reborrow(&mut self) -> OptionalSlot<'_> {
        match self {
            OptionalSlot::Typed(slot) => OptionalSlot::Typed(&mut **slot),
            OptionalSlot::Dynamic(slot) => OptionalSlot::Dynamic(slot.reborrow()),
        }
    }
}

impl<'a> Slot<'a> {
    /// The slot of the value, made from its zero if there was none.
    pub fn filled(self) -> Slot<'a> {
        match self {
            Slot::Optional(optional) => optional.fill(),
            slot => slot,
        }
    }

    /// The slot of the value, if there is one.
    pub fn present(self) -> Option<Slot<'a>> {
        match self {
            Slot::Optional(optional) => optional.is_some().then(|| optional.open()),
            slot => Some(slot),
        }
    }
}

/// A list of values of one type.
pub trait List {
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    fn get(&self, index: usize) -> Value<'_>;
    fn get_mut(&mut self, index: usize) -> Option<Slot<'_>>;
    /// Appends a zero value and returns its slot.
    fn push(&mut self) -> Slot<'_>;
    fn clear(&mut self);
    fn remove(&mut self, index: usize);
    /// Puts the elements into the order of `order`, a permutation of the indexes; ignored if it is none.
    fn reorder(&mut self, order: &[usize]);
    /// What its elements are.
    fn element(&self) -> &FieldDesc;
}

/// A map with string keys, in the order of their bytes.
pub trait Map {
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    fn get(&self, key: &str) -> Option<Value<'_>>;
    /// The slot of `key`, with a zero value if it was absent.
    fn entry(&mut self, key: &str) -> Slot<'_>;
    fn remove(&mut self, key: &str);
    fn clear(&mut self);
    /// In the order of the keys.
    fn for_each<'a>(&'a self, f: &mut dyn FnMut(&'a str, Value<'a>));
    /// What its values are.
    fn element(&self) -> &FieldDesc;
}

/// What reading a leaf comes to. The error is a text that clients see, in Go's words, and that nobody tells apart.
pub type LeafResult<T = ()> = Result<T, String>;

/// A value with encodings of its own. Errors of `read_*` are texts without a position; the decoder adds the path.
pub trait Leaf: Send + Sync {
    fn kind(&self) -> LeafKind;
    /// The zero value of Go: JSON leaves it out where the field is not always written.
    fn is_zero(&self) -> bool;
    fn clear(&mut self);
    fn eq_leaf(&self, other: &dyn Leaf) -> bool;
    /// Whether it may stand for the other: what is equal but written otherwise may not.
    fn is_identical(&self, other: &dyn Leaf) -> bool {
        self.eq_leaf(other)
    }
    /// Appends the JSON form.
    fn write_json(&self, out: &mut Vec<u8>);
    /// Takes one whole JSON value (valid JSON, no white space around it; may be `null`).
    fn read_json(&mut self, json: &[u8]) -> LeafResult;
    /// As `read_json`, of a leaf that may hold messages: takes what it becomes in memory out of the budget.
    fn read_json_within(&mut self, json: &[u8], _budget: &Budget) -> LeafResult {
        self.read_json(json)
    }
    /// As `read_json_within`, of the object that the text begins with: its length. A leaf that holds messages finds
    /// their end as it reads them. `None`: this one does not, or something is wrong, and `read_json_within` says what.
    ///
    /// # Errors
    /// Something is wrong, and what it is will be said of the leaf that this one is a part of.
    fn read_json_prefix(&mut self, _text: &[u8], _budget: &Budget) -> LeafResult<Option<usize>> {
        Ok(None)
    }
    /// Appends the body of the protobuf message, without tag and length.
    fn write_protobuf(&self, out: &mut Vec<u8>);
    fn read_protobuf(&mut self, body: &[u8]) -> LeafResult;
    /// As `read_protobuf`, of a leaf that may hold messages: takes what it becomes in memory out of the budget.
    fn read_protobuf_within(&mut self, body: &[u8], _budget: &Budget) -> LeafResult {
        self.read_protobuf(body)
    }
    /// Makes it the same as another of its type; zero if that is of another type.
    fn assign(&mut self, other: &dyn Leaf);
    fn clone_leaf(&self) -> Box<dyn Leaf>;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}
