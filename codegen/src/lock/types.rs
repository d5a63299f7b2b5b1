//! Records of stored fields: kinds, messages, and for each number the field that has or had it.

use std::collections::BTreeMap;
use std::fmt;

/// What objects of one version are made of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// Kinds of which objects may be stored in this version, and their messages.
    pub kinds: BTreeMap<String, String>,
    /// By full name; the fields by number.
    pub messages: BTreeMap<String, BTreeMap<u32, Line>>,
}

impl Record {
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.messages.is_empty()
    }
}

/// A field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Name in JSON.
    pub name: String,
    pub ty: StoredType,
    /// Absent and zero differ.
    pub optional: bool,
    /// It was removed; its number is never given to another one.
    pub is_gone: bool,
    /// What values it takes, for notes on what was stored under other rules: `enum`, `minimum` …
    pub rules: BTreeMap<String, String>,
}

/// A type as far as stored bytes depend on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoredType {
    /// `bool`, `int32`, `int64`, `double`, `string`, `bytes`.
    Scalar(&'static str),
    /// By full name.
    Message(String),
    List(Box<StoredType>),
    Map(Box<StoredType>),
}

/// The names of scalars.
pub const SCALARS: [&str; 6] = ["bool", "int32", "int64", "double", "string", "bytes"];

impl StoredType {
    /// The message in it.
    pub fn message(&self) -> Option<&str> {
        match self {
            StoredType::Scalar(_) => None,
            StoredType::Message(name) => Some(name),
            StoredType::List(inner) | StoredType::Map(inner) => inner.message(),
        }
    }

    /// Whether bytes of this type can be read as the other: messages are compared by themselves.
    pub fn reads_as(&self, other: &StoredType) -> bool {
        match (self, other) {
            (StoredType::Scalar("int32"), StoredType::Scalar("int64")) => true,
            (StoredType::Scalar(a), StoredType::Scalar(b)) => a == b,
            (StoredType::Message(_), StoredType::Message(_)) => true,
            (StoredType::List(a), StoredType::List(b)) | (StoredType::Map(a), StoredType::Map(b)) => a.reads_as(b),
            _ => false,
        }
    }
}

impl fmt::Display for StoredType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredType::Scalar(name) => f.write_str(name),
            StoredType::Message(name) => f.write_str(name),
            StoredType::List(inner) => write!(f, "list<{inner}>"),
            StoredType::Map(inner) => write!(f, "map<{inner}>"),
        }
    }
}
