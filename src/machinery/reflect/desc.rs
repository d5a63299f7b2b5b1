//! Descriptors: what messages and fields are called and made of, as data.
//!
//! A table that the derive writes is static and built by the compiler; one that is made at run time, such as that of a
//! schema which a client sends, is shared. Both are the same types, and whoever keeps one keeps a [`Ref`] to it.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smol_str::SmolStr;

use super::rules::{NO_DETAILS, NO_RULES};
use super::{Details, Field, MessageRules, NO_MESSAGE_RULES, Reflect, Rules};
use crate::reflect::dynamic::{DynamicMessage, DynamicObject};
use crate::reflect::object::{Gvk, Kind, Object};

/// A text of a table. It takes no memory of its own where it is static or short.
pub type Name = SmolStr;

/// A part of a table: static, or shared by all who hold it.
#[derive(Debug)]
pub enum Ref<T: ?Sized + 'static> {
    Static(&'static T),
    Shared(Arc<T>),
}

/// The handle of a message's table.
pub type Desc = Ref<MessageDesc>;

impl<T: ?Sized> Ref<T> {
    /// Whether it is this very part, not just one like it.
    #[inline]
    pub fn is(&self, other: &T) -> bool {
        std::ptr::eq(&raw const **self, other)
    }
}

impl<T: ?Sized> Deref for Ref<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        match self {
            Ref::Static(part) => part,
            Ref::Shared(part) => part,
        }
    }
}

impl<T: ?Sized> Clone for Ref<T> {
    #[inline]
    fn clone(&self) -> Self {
        match self {
            Ref::Static(part) => Ref::Static(part),
            Ref::Shared(part) => Ref::Shared(part.clone()),
        }
    }
}

impl<T: ?Sized> From<Arc<T>> for Ref<T> {
    fn from(part: Arc<T>) -> Self {
        Ref::Shared(part)
    }
}

impl<T: ?Sized> From<&'static T> for Ref<T> {
    fn from(part: &'static T) -> Self {
        Ref::Static(part)
    }
}

impl<T> From<Vec<T>> for Ref<[T]> {
    fn from(parts: Vec<T>) -> Self {
        Ref::Shared(parts.into())
    }
}

impl<'a, T> IntoIterator for &'a Ref<[T]> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A list of texts in a table.
#[derive(Clone, Debug)]
pub enum Names {
    Static(&'static [&'static str]),
    Shared(Arc<[Name]>),
}

impl Names {
    pub const NONE: Names = Names::Static(&[]);

    pub fn len(&self) -> usize {
        match self {
            Names::Static(names) => names.len(),
            Names::Shared(names) => names.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, index: usize) -> Option<&str> {
        match self {
            Names::Static(names) => <[&str]>::get(names, index).copied(),
            Names::Shared(names) => <[Name]>::get(names, index).map(Name::as_str),
        }
    }

    pub fn first(&self) -> Option<&str> {
        self.get(0)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|own| own == name)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator + Clone {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// The texts as tables hold them: no copy where they are static.
    pub fn names(&self) -> impl Iterator<Item = Name> + '_ {
        (0..self.len()).map(|index| match self {
            Names::Static(names) => {
                <[&'static str]>::get(names, index).map_or(Name::default(), |n| Name::new_static(n))
            }
            Names::Shared(names) => <[Name]>::get(names, index).cloned().unwrap_or_default(),
        })
    }

    pub fn to_vec(&self) -> Vec<&str> {
        self.iter().collect()
    }
}

impl<N: Into<Name>> FromIterator<N> for Names {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> Names {
        Names::Shared(names.into_iter().map(Into::into).collect())
    }
}

impl<const N: usize> PartialEq<[&str; N]> for Names {
    fn eq(&self, other: &[&str; N]) -> bool {
        self.iter().eq(other.iter().copied())
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Names) -> bool {
        self.iter().eq(other.iter())
    }
}

/// A number that no other table has or will ever have; an address may become another's. Given when it is first asked
/// for.
///
/// Its cell has a second use: constants that refer to a static with such a cell are not followed into it by the
/// compiler, so that the table of a message may lead back to itself.
#[derive(Debug)]
pub struct Id(AtomicU64);

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Id {
    pub const fn unassigned() -> Id {
        Id(AtomicU64::new(0))
    }

    /// A number for something that is made at run time.
    pub fn fresh() -> u64 {
        NEXT_ID.fetch_add(1, Ordering::Relaxed)
    }

    pub fn get(&self) -> u64 {
        let known = self.0.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let fresh = Id::fresh();
        match self.0.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => fresh,
            Err(other) => other,
        }
    }
}

/// How an empty message is made.
#[derive(Clone, Copy, Debug)]
pub enum Make {
    /// It is a struct; only code can make one.
    Message(fn() -> Box<dyn Reflect>),
    /// A struct that is a kind.
    Kind(fn() -> Box<dyn Kind>),
    /// A struct that is a kind with object metadata.
    Object(fn() -> Box<dyn Object>),
    /// The table is all that is known of it.
    Dynamic,
}

/// What becomes of fields that a message does not have.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Unknown {
    /// They are left out when it is read.
    #[default]
    Dropped,
    /// They are kept as [`Reflect::rest`].
    Kept,
}

/// What a message is called and made of.
#[derive(Debug)]
pub struct MessageDesc {
    /// Name of the OpenAPI definition, `io.k8s.api.core.v1.Pod`.
    pub name: Name,
    /// In the order in which JSON shows them.
    pub fields: Ref<[FieldDesc]>,
    /// Indexes into `fields` in ascending order of field numbers, the order of protobuf.
    pub by_number: Ref<[u16]>,
    /// Indexes into `fields` in ascending order of JSON names, without inlined messages.
    pub by_name: Ref<[u16]>,
    /// Indexes into `fields` of inlined messages.
    pub inlined: Ref<[u16]>,
    /// Of a table that is made at run time, the indexes of fields that are looked at where they are absent: those with
    /// a default, and those that have rules or must be there.
    pub missed: Ref<[u16]>,
    /// Indexes into `fields` of those that have a default, or below which something has one.
    pub defaulted: Ref<[u16]>,
    pub make: Make,
    /// What it is, if it is a kind: then `apiVersion` and `kind` may stand in its object wherever it is.
    pub gvk: Option<Ref<Gvk>>,
    /// Bytes of an empty one in memory.
    pub size: usize,
    pub unknown: Unknown,
    /// Few messages have any.
    pub rules: Ref<MessageRules>,
    pub id: Id,
}

/// Tables of so many fields are searched field by field.
const FEW_FIELDS: usize = 12;

impl MessageDesc {
    /// The field with this JSON name and its index; does not look into inlined messages.
    pub fn field(&self, json: &str) -> Option<(usize, &FieldDesc)> {
        self.position(json.as_bytes())
            .and_then(|index| Some((index, self.fields.get(index)?)))
    }

    /// The index of the field with this JSON name; does not look into inlined messages.
    pub(crate) fn position(&self, json: &[u8]) -> Option<usize> {
        let fields = &*self.fields;
        if fields.len() <= FEW_FIELDS {
            return fields.iter().position(|field| field.is_named(json));
        }
        let name = |index: &u16| fields.get(usize::from(*index)).map(|field| field.json.as_bytes());
        let by_name = &*self.by_name;
        let at = by_name.binary_search_by(|index| name(index).cmp(&Some(json))).ok()?;
        by_name.get(at).map(|index| usize::from(*index))
    }

    /// The field with this JSON name, of this message or of one that it inlines.
    pub fn declared(&self, json: &str) -> Option<&FieldDesc> {
        if let Some((_, field)) = self.field(json) {
            return Some(field);
        }
        self.inlined().find_map(|(_, message)| message.declared(json))
    }

    /// The tables of inlined messages, with the indexes of their fields.
    pub fn inlined(&self) -> impl Iterator<Item = (usize, &MessageDesc)> {
        self.inlined.iter().filter_map(|index| {
            let index = usize::from(*index);
            match &self.fields.get(index)?.ty {
                Type::Message(message) => Some((index, &**message)),
                _ => None,
            }
        })
    }

    /// Whether JSON shows its members in the order of their keys, as Go writes a tree of maps.
    pub fn is_dynamic(&self) -> bool {
        matches!(self.make, Make::Dynamic)
    }

    /// Whether it has rules beside those of its fields.
    pub fn has_rules(&self) -> bool {
        !self.rules.is(&NO_MESSAGE_RULES)
    }

    /// The name of the Go struct, `Pod`.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }
}

impl Desc {
    /// A new, empty message.
    pub fn new_message(&self) -> Box<dyn Reflect> {
        match self.make {
            Make::Message(new) => new(),
            Make::Kind(new) => new(),
            Make::Object(new) => new(),
            Make::Dynamic if self.gvk.is_some() => Box::new(DynamicObject::new(self.clone())),
            Make::Dynamic => Box::new(DynamicMessage::new(self.clone())),
        }
    }

    /// A new, empty message of a kind.
    pub fn new_kind(&self) -> Box<dyn Kind> {
        match self.make {
            Make::Kind(new) => new(),
            Make::Object(new) => new(),
            Make::Message(_) | Make::Dynamic => Box::new(DynamicObject::new(self.clone())),
        }
    }

    /// A new, empty object.
    pub fn new_object(&self) -> Box<dyn Object> {
        match self.make {
            Make::Object(new) => new(),
            Make::Kind(_) | Make::Message(_) | Make::Dynamic => Box::new(DynamicObject::new(self.clone())),
        }
    }
}

/// One field of a message, or, without a name, the elements of a list or map.
#[derive(Clone, Debug)]
pub struct FieldDesc {
    /// Key in JSON; of an inlined field the name of the struct member.
    pub json: Name,
    pub ty: Type,
    /// Few fields have any.
    pub details: Ref<Details>,
    /// Declarative validation; empty for most fields.
    pub rules: Ref<Rules>,
    /// Field number of protobuf; 0: the field is not in protobuf.
    pub number: u32,
    pub flags: Flags,
    pub list: ListType,
    pub patch: Patch,
    /// Of the JSON name, to tell it from most others; 0 of an inlined field.
    tag: u16,
}

/// Length and first byte.
#[inline]
const fn tag(json: &[u8]) -> u16 {
    match json.first() {
        Some(first) => (json.len() as u16) << 8 | *first as u16,
        None => 0,
    }
}

impl FieldDesc {
    /// Any value, of which nothing is declared: what stands in a field that a message does not have.
    pub const ANY: &'static FieldDesc = &FieldDesc::of(Name::new_static(""), 0, Type::Any, Flags::OPTIONAL, 0);

    /// What stands where neither an object nor a list is declared.
    pub(crate) const SCALAR: &'static FieldDesc =
        &FieldDesc::of(Name::new_static(""), 0, Type::String, Flags::OPTIONAL, 0);

    /// Whether JSON has the field under this key. Nearly all of the keys asked for are those of others, so most are
    /// told apart by length and first byte.
    #[inline]
    pub(crate) fn is_named(&self, key: &[u8]) -> bool {
        self.tag == tag(key) && self.json.as_bytes() == key && !self.flags.has(Flags::INLINE)
    }

    const fn of(json: Name, number: u32, ty: Type, flags: Flags, tag: u16) -> FieldDesc {
        FieldDesc {
            json,
            ty,
            details: Ref::Static(&NO_DETAILS),
            rules: Ref::Static(&NO_RULES),
            number,
            flags,
            list: ListType::Unset,
            patch: Patch::NONE,
            tag,
        }
    }

    /// A field of the struct type `T` with none of the rarer properties; `T` says whether it is optional.
    pub const fn new<T: Field>(json: &'static str, number: u32, flags: Flags) -> FieldDesc {
        let flags = if T::OPTIONAL {
            flags.with(Flags::OPTIONAL)
        } else {
            flags
        };
        FieldDesc::of(Name::new_static(json), number, T::TYPE, flags, tag(json.as_bytes()))
    }

    /// A field of a message that is known at run time alone.
    pub fn shared(json: impl Into<Name>, ty: Type, flags: Flags) -> FieldDesc {
        let json = json.into();
        let tag = tag(json.as_bytes());
        FieldDesc::of(json, 0, ty, flags.with(Flags::OPTIONAL), tag)
    }

    #[must_use]
    pub const fn with_list(mut self, list: ListType) -> FieldDesc {
        self.list = list;
        self
    }

    #[must_use]
    pub const fn with_patch(mut self, patch: Patch) -> FieldDesc {
        self.patch = patch;
        self
    }

    /// `details` take the place of none.
    #[must_use]
    pub const fn with_details(mut self, details: Ref<Details>) -> FieldDesc {
        // The compiler can't drop in constants. There is nothing to drop but where a field gets details twice.
        std::mem::forget(std::mem::replace(&mut self.details, details));
        self
    }

    /// `rules` take the place of none.
    #[must_use]
    pub const fn with_rules(mut self, rules: Ref<Rules>) -> FieldDesc {
        std::mem::forget(std::mem::replace(&mut self.rules, rules));
        self
    }

    /// Whether it has rules of its own.
    pub fn has_rules(&self) -> bool {
        !self.rules.is(&NO_RULES)
    }

    /// JSON text of the value an absent field gets.
    pub fn default(&self) -> Option<&str> {
        self.details.default.as_deref()
    }

    /// JSON names of the keys of a list of type [`ListType::Map`].
    pub fn map_keys(&self) -> &Names {
        &self.details.map_keys
    }

    /// Name of the field by which a strategic merge patch knows the items of a list; "" if there is none.
    pub fn merge_key(&self) -> &str {
        &self.details.merge_key
    }

    /// The message that it is, or that its items or values are.
    pub fn message(&self) -> Option<&Desc> {
        self.ty.message()
    }
}

/// The declared type of a field or element.
#[derive(Clone, Debug)]
pub enum Type {
    Bool,
    Int32,
    Int64,
    Double,
    String,
    Bytes,
    Message(Desc),
    /// A value with encodings of its own (Quantity, Time …).
    Leaf(LeafKind),
    /// The field stands for the elements.
    List(Ref<FieldDesc>),
    /// Keys are strings; the field stands for the values.
    Map(Ref<FieldDesc>),
    /// Any JSON value, `null` too.
    Any,
    /// Any JSON value of which no object keeps a member: what is meant to be a number or a text.
    Untyped,
}

impl Type {
    /// The message that it is, or that its items or values are.
    pub fn message(&self) -> Option<&Desc> {
        match self {
            Type::Message(message) => Some(message),
            Type::List(element) | Type::Map(element) => element.ty.message(),
            _ => None,
        }
    }

    pub fn is_message(&self) -> bool {
        matches!(self, Type::Message(_))
    }
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
    /// `null` is a value; where it is none, a field that is null gets its default.
    pub const NULLABLE: Flags = Flags(512);
    /// A message that is a kind, or a list of them: JSON shows its `kind` and `apiVersion`.
    pub const TYPED: Flags = Flags(1024);
    /// A list that is always written, and as `[]` when it is empty.
    pub const EMPTY_LIST: Flags = Flags(2048);
    /// What is said of its value is published alone.
    pub const UNCHECKED: Flags = Flags(4096);
    /// JSON writes its name with escapes.
    pub const ESCAPED: Flags = Flags(8192);
    /// Some value in or below this one has CEL rules.
    pub const HAS_VALIDATIONS: Flags = Flags(16384);
    /// Of a dynamic message or map: a member that is null is not there.
    pub const DROPS_NULL: Flags = Flags(32768);

    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
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
