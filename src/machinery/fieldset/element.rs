//! Path elements: a named field, an item of a list by its keys, value or index.

use std::cmp::Ordering;
use std::fmt;

use crate::json::{write_float, write_int};
use crate::json_text as text;

/// A name. Sets have many; those of fields are the names of the tables.
pub use crate::reflect::Name;

/// A value that a list item is known by.
#[derive(Clone, Debug)]
pub enum Scalar {
    Int(i64),
    Double(f64),
    Str(Name),
    Bool(bool),
    /// An array or object, as JSON text.
    Json(Box<str>),
    Null,
}

/// A key field of a list item and its value.
pub type KeyField = (Name, Scalar);

/// One step of a path. The order is that in which sets are written.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PathElement {
    /// A field of a message or a key of a map.
    Field(Name),
    /// An item of a list with keys; the key fields are in the order of their names.
    Key(Box<[KeyField]>),
    /// An item of a set.
    Value(Scalar),
    /// An item by its place.
    Index(i64),
}

impl PathElement {
    pub const fn field(name: &'static str) -> PathElement {
        PathElement::Field(Name::new_static(name))
    }

    /// Compares with the element of a named field.
    pub(super) fn cmp_field(&self, name: &str) -> Ordering {
        match self {
            PathElement::Field(own) => own.as_str().cmp(name),
            _ => Ordering::Greater,
        }
    }

    /// The name of a field or map key.
    pub fn name(&self) -> Option<&str> {
        match self {
            PathElement::Field(name) => Some(name),
            _ => None,
        }
    }
}

impl Scalar {
    /// The place of the type in the order of values.
    fn rank(&self) -> u8 {
        match self {
            Scalar::Int(_) | Scalar::Double(_) => 0,
            Scalar::Str(_) => 1,
            Scalar::Bool(_) => 2,
            Scalar::Json(_) => 3,
            Scalar::Null => 4,
        }
    }

    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Scalar::Int(n) => write_int(*n, out),
            Scalar::Double(n) => write_float(*n, out),
            Scalar::Str(s) => text::write_string(s, out),
            Scalar::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
            Scalar::Json(json) => out.extend_from_slice(json.as_bytes()),
            Scalar::Null => out.extend_from_slice(b"null"),
        }
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Scalar::Int(a), Scalar::Int(b)) => a.cmp(b),
            (Scalar::Double(a), Scalar::Double(b)) => a.total_cmp(b),
            (Scalar::Int(a), Scalar::Double(b)) => (*a as f64).total_cmp(b),
            (Scalar::Double(a), Scalar::Int(b)) => a.total_cmp(&(*b as f64)),
            (Scalar::Str(a), Scalar::Str(b)) => a.cmp(b),
            (Scalar::Bool(a), Scalar::Bool(b)) => a.cmp(b),
            (Scalar::Json(a), Scalar::Json(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

/// As messages show values: `"text"`, `8080`, `true`.
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Str(s) => f.write_str(&crate::field::text::quote(s)),
            other => {
                let mut json = Vec::new();
                other.write_json(&mut json);
                f.write_str(&String::from_utf8_lossy(&json))
            }
        }
    }
}

/// As messages show paths: `.spec`, `[name="c"]`, `[="x"]`, `[3]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                f.write_str("[")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
            PathElement::Value(value) => write!(f, "[={value}]"),
            PathElement::Index(index) => write!(f, "[{index}]"),
        }
    }
}
