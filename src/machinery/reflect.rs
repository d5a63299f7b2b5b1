//! Reflection over API objects: one static table per message and two accessors.
//!
//! `#[derive(Message)]` writes a [`MessageDesc`] and the [`Reflect`] accessors for a plain struct. Codecs, defaulting,
//! equality, pruning, patches, columns and everything else is written once against these, never per type. There is no
//! unsafe code: a field is reached by its index through a `match` that the derive writes.
//!
//! Presence follows Go: an `Option` field is a pointer there; any other is a plain value whose zero means absent,
//! unless [`Flags::ALWAYS`] says that it is written anyway.

use std::any::Any;
use std::collections::BTreeMap;

use crate::budget::Budget;
use crate::object::Gvk;

/// The bytes of a `bytes` field.
pub use bytes::Bytes;

/// An API message: a struct with a table of its fields.
pub trait Reflect: Any + Send + Sync {
    /// The table of this message's fields.
    fn desc(&self) -> &'static MessageDesc;
    /// The value of field `index` (its place in [`MessageDesc::fields`]); [`Value::Absent`] for an index out of range.
    fn get(&self, index: usize) -> Value<'_>;
    /// Appends the values of all fields, in their order: for walks over whole messages, which take half the time of asking
    /// for one value after the other.
    fn values<'a>(&'a self, values: &mut Vec<Value<'a>>);
    /// The slot of field `index`; `None` for an index out of range.
    fn get_mut(&mut self, index: usize) -> Option<Slot<'_>>;
    /// A deep copy.
    fn clone_message(&self) -> Box<dyn Reflect>;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// What a message is called and made of.
pub struct MessageDesc {
    /// Name of the OpenAPI definition, `io.k8s.api.core.v1.Pod`.
    pub name: &'static str,
    /// In the order in which JSON shows them.
    pub fields: &'static [FieldDesc],
    /// Indexes into `fields` in ascending order of field numbers, the order of protobuf.
    pub by_number: &'static [u16],
    /// A new, empty message.
    pub new: fn() -> Box<dyn Reflect>,
    /// What it is, if it is a kind: then `apiVersion` and `kind` may stand in its object wherever it is.
    pub gvk: Option<Gvk>,
    /// Bytes of an empty one in memory.
    pub size: usize,
}

impl MessageDesc {
    /// The field with this JSON name and its index; does not look into inlined messages.
    pub fn field(&self, json: &str) -> Option<(usize, &'static FieldDesc)> {
        self.fields
            .iter()
            .enumerate()
            .find(|(_, f)| f.is_named(json.as_bytes()))
    }
}

/// One field of a message.
pub struct FieldDesc {
    /// Key in JSON; of an inlined field the name of the struct member.
    pub json: &'static str,
    /// Field number of protobuf; 0: the field is not in protobuf.
    pub number: u32,
    pub ty: Type,
    pub flags: Flags,
    /// JSON text of the value an absent field gets.
    pub default: Option<&'static str>,
    pub list: ListType,
    /// JSON names of the keys of a list of type [`ListType::Map`].
    pub map_keys: &'static [&'static str],
    pub patch: Patch,
    pub merge_key: &'static str,
    /// Declarative validation; empty for most fields.
    pub rules: &'static Rules,
}

impl FieldDesc {
    /// Whether JSON has the field under this key. Nearly all of the keys asked for are those of others, so most are told
    /// apart by length and first byte.
    #[inline]
    pub(crate) fn is_named(&self, key: &[u8]) -> bool {
        let own = self.json.as_bytes();
        own.len() == key.len() && own.first() == key.first() && own == key && !self.flags.has(Flags::INLINE)
    }

    /// A field of the struct type `T` with none of the rarer properties; `T` says whether it is optional.
    pub const fn new<T: Field>(json: &'static str, number: u32, flags: Flags) -> FieldDesc {
        FieldDesc {
            json,
            number,
            ty: T::TYPE,
            flags: if T::OPTIONAL {
                flags.with(Flags::OPTIONAL)
            } else {
                flags
            },
            default: None,
            list: ListType::Unset,
            map_keys: &[],
            patch: Patch::NONE,
            merge_key: "",
            rules: &Rules::NONE,
        }
    }
}

/// The declared type of a field or element.
#[derive(Clone, Copy)]
pub enum Type {
    Bool,
    Int32,
    Int64,
    Double,
    String,
    Bytes,
    Message(fn() -> &'static MessageDesc),
    /// A value with encodings of its own (Quantity, Time …).
    Leaf(LeafKind),
    List(&'static Type),
    /// Keys are strings.
    Map(&'static Type),
}

/// Which hand-written leaf type a field has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeafKind {
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    Duration,
    /// Raw JSON: RawExtension, FieldsV1, JSON.
    Raw,
    /// A union that is an object or something shorter (JSONSchemaPropsOrBool …).
    Union,
}

/// Yes/no properties of a field.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags(pub u16);

impl Flags {
    pub const NONE: Flags = Flags(0);
    /// An `Option`: absent and zero differ.
    pub const OPTIONAL: Flags = Flags(1);
    /// The message's fields stand in the parent's JSON object.
    pub const INLINE: Flags = Flags(2);
    /// Written to JSON even when zero or absent.
    pub const ALWAYS: Flags = Flags(4);
    /// Must be present.
    pub const REQUIRED: Flags = Flags(8);
    /// May not change once set.
    pub const IMMUTABLE: Flags = Flags(16);
    /// A plain message that JSON leaves out when all of it is zero.
    pub const OMIT_ZERO: Flags = Flags(32);
    /// A map or message that server-side apply owns as a whole.
    pub const ATOMIC: Flags = Flags(64);
    /// Some field in or below this one has a default.
    pub const HAS_DEFAULTS: Flags = Flags(128);
    /// Some field in or below this one has [`Rules`], is immutable, or is required of an `Option`.
    pub const HAS_RULES: Flags = Flags(256);
    pub const NULLABLE: Flags = Flags(512);
    /// A message that is a kind, or a list of them: JSON shows its `kind` and `apiVersion`.
    pub const TYPED: Flags = Flags(1024);
    /// A list that is always written, and as `[]` when it is empty.
    pub const EMPTY_LIST: Flags = Flags(2048);
    /// What is said of its value is published alone.
    pub const UNCHECKED: Flags = Flags(4096);

    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ListType {
    #[default]
    Unset,
    Atomic,
    Set,
    Map,
}

/// Strategic merge: how a field is patched. A bit set: `merge` and `retainKeys` may stand together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Patch(pub u8);

impl Patch {
    pub const NONE: Patch = Patch(0);
    pub const MERGE: Patch = Patch(1);
    pub const REPLACE: Patch = Patch(2);
    pub const RETAIN_KEYS: Patch = Patch(4);
    pub const fn has(self, other: Patch) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Declarative validation of one field. `None` and empty: no rule.
#[derive(Debug)]
pub struct Rules {
    pub enum_values: &'static [&'static str],
    pub item_enum: &'static [&'static str],
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u32>,
    pub max_length: Option<u32>,
    pub min_items: Option<u32>,
    pub max_items: Option<u32>,
    pub min_properties: Option<u32>,
    pub max_properties: Option<u32>,
    pub pattern: &'static str,
    pub format: &'static str,
}

impl Rules {
    pub const NONE: Rules = Rules {
        enum_values: &[],
        item_enum: &[],
        minimum: None,
        maximum: None,
        exclusive_minimum: false,
        exclusive_maximum: false,
        multiple_of: None,
        min_length: None,
        max_length: None,
        min_items: None,
        max_items: None,
        min_properties: None,
        max_properties: None,
        pattern: "",
        format: "",
    };
}

/// A field's value, borrowed.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// An `Option` that is `None`.
    Absent,
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
    Optional(&'a mut dyn Optional),
}

/// A slot that may be empty.
pub trait Optional {
    fn is_some(&self) -> bool;
    /// The slot of the value, made from its zero if there was none.
    fn fill(&mut self) -> Slot<'_>;
    fn clear(&mut self);
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
    fn element_type(&self) -> Type;
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
    fn for_each<'a>(&'a self, f: &mut dyn FnMut(&'a str, Value<'a>));
    fn element_type(&self) -> Type;
}

/// A value with encodings of its own. Errors of `read_*` are texts without a position; the decoder adds the path.
pub trait Leaf: Send + Sync {
    fn kind(&self) -> LeafKind;
    /// The zero value of Go: JSON leaves it out where the field is not always written.
    fn is_zero(&self) -> bool;
    fn clear(&mut self);
    fn eq_leaf(&self, other: &dyn Leaf) -> bool;
    /// Appends the JSON form.
    fn write_json(&self, out: &mut Vec<u8>);
    /// Takes one whole JSON value (valid JSON, no white space around it; may be `null`).
    fn read_json(&mut self, json: &[u8]) -> Result<(), String>;
    /// As `read_json`, of a leaf that may hold messages: takes what it becomes in memory out of the budget.
    fn read_json_within(&mut self, json: &[u8], _budget: &Budget) -> Result<(), String> {
        self.read_json(json)
    }
    /// Appends the body of the protobuf message, without tag and length.
    fn write_protobuf(&self, out: &mut Vec<u8>);
    fn read_protobuf(&mut self, body: &[u8]) -> Result<(), String>;
    /// As `read_protobuf`, of a leaf that may hold messages: takes what it becomes in memory out of the budget.
    fn read_protobuf_within(&mut self, body: &[u8], _budget: &Budget) -> Result<(), String> {
        self.read_protobuf(body)
    }
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// Whatever may stand in a field of a message. Implemented here for scalars, lists, maps and options; by the derive for
/// messages; by hand for leaves.
pub trait Field: Send + Sync + 'static {
    const TYPE: Type;
    /// Whether `None` exists.
    const OPTIONAL: bool = false;
    fn value(&self) -> Value<'_>;
    fn slot(&mut self) -> Slot<'_>;
}

macro_rules! scalar {
    ($($ty:ty => $variant:ident),*) => {$(
        impl Field for $ty {
            const TYPE: Type = Type::$variant;
            fn value(&self) -> Value<'_> { Value::$variant(*self) }
            fn slot(&mut self) -> Slot<'_> { Slot::$variant(self) }
        }
    )*};
}
scalar!(bool => Bool, i32 => Int32, i64 => Int64, f64 => Double);

impl Field for String {
    const TYPE: Type = Type::String;
    fn value(&self) -> Value<'_> {
        Value::Str(self)
    }
    fn slot(&mut self) -> Slot<'_> {
        Slot::Str(self)
    }
}

impl Field for Bytes {
    const TYPE: Type = Type::Bytes;
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
    fn slot(&mut self) -> Slot<'_> {
        Slot::Bytes(self)
    }
}

impl<T: Field> Field for Box<T> {
    const TYPE: Type = T::TYPE;
    const OPTIONAL: bool = T::OPTIONAL;
    fn value(&self) -> Value<'_> {
        (**self).value()
    }
    fn slot(&mut self) -> Slot<'_> {
        (**self).slot()
    }
}

impl<T: Field + Default> Field for Option<T> {
    const TYPE: Type = T::TYPE;
    const OPTIONAL: bool = true;
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Absent, Field::value)
    }
    fn slot(&mut self) -> Slot<'_> {
        Slot::Optional(self)
    }
}

impl<T: Field + Default> Optional for Option<T> {
    fn is_some(&self) -> bool {
        Option::is_some(self)
    }
    fn fill(&mut self) -> Slot<'_> {
        self.get_or_insert_with(T::default).slot()
    }
    fn clear(&mut self) {
        *self = None;
    }
}

impl<T: Field + Default> Field for Vec<T> {
    const TYPE: Type = Type::List(&T::TYPE);
    fn value(&self) -> Value<'_> {
        Value::List(self)
    }
    fn slot(&mut self) -> Slot<'_> {
        Slot::List(self)
    }
}

impl<T: Field + Default> List for Vec<T> {
    fn len(&self) -> usize {
        Vec::len(self)
    }
    fn get(&self, index: usize) -> Value<'_> {
        <[T]>::get(self, index).map_or(Value::Absent, Field::value)
    }
    fn get_mut(&mut self, index: usize) -> Option<Slot<'_>> {
        <[T]>::get_mut(self, index).map(Field::slot)
    }
    fn push(&mut self) -> Slot<'_> {
        self.push_mut(T::default()).slot()
    }
    fn clear(&mut self) {
        Vec::clear(self);
    }
    fn remove(&mut self, index: usize) {
        if index < Vec::len(self) {
            Vec::remove(self, index);
        }
    }
    fn reorder(&mut self, order: &[usize]) {
        let mut old: Vec<Option<T>> = std::mem::take(self).into_iter().map(Some).collect();
        self.extend(
            order
                .iter()
                .filter_map(|&i| old.as_mut_slice().get_mut(i).and_then(Option::take)),
        );
        self.extend(old.into_iter().flatten());
    }
    fn element_type(&self) -> Type {
        T::TYPE
    }
}

impl<T: Field + Default> Field for BTreeMap<String, T> {
    const TYPE: Type = Type::Map(&T::TYPE);
    fn value(&self) -> Value<'_> {
        Value::Map(self)
    }
    fn slot(&mut self) -> Slot<'_> {
        Slot::Map(self)
    }
}

impl<T: Field + Default> Map for BTreeMap<String, T> {
    fn len(&self) -> usize {
        BTreeMap::len(self)
    }
    fn get(&self, key: &str) -> Option<Value<'_>> {
        BTreeMap::get(self, key).map(Field::value)
    }
    fn entry(&mut self, key: &str) -> Slot<'_> {
        BTreeMap::entry(self, key.to_owned()).or_default().slot()
    }
    fn remove(&mut self, key: &str) {
        BTreeMap::remove(self, key);
    }
    fn clear(&mut self) {
        BTreeMap::clear(self);
    }
    fn for_each<'a>(&'a self, f: &mut dyn FnMut(&'a str, Value<'a>)) {
        for (k, v) in self {
            f(k, v.value());
        }
    }
    fn element_type(&self) -> Type {
        T::TYPE
    }
}
