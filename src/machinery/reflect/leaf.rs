//! Shared parts of the hand-written leaf types: their `Field` implementation and the errors of JSON values of a wrong
//! type.

use std::borrow::Cow;

use crate::json_text as text;
use crate::reflect::LeafResult;

/// Implements `Field` for a type that is a `Leaf`.
macro_rules! leaf_field {
    ($ty:ty, $kind:ident) => {
        impl $crate::reflect::Field for $ty {
            const TYPE: $crate::reflect::Type = $crate::reflect::Type::Leaf($crate::reflect::LeafKind::$kind);
            fn value(&self) -> $crate::reflect::Value<'_> {
                $crate::reflect::Value::Leaf(self)
            }
            fn slot(&mut self) -> $crate::reflect::Slot<'_> {
                $crate::reflect::Slot::Leaf(self)
            }
        }
    };
}
pub(crate) use leaf_field;

/// The methods of `Leaf` that are the same for every type that is `Default + PartialEq`.
macro_rules! leaf_basics {
    ($kind:ident) => {
        fn kind(&self) -> $crate::reflect::LeafKind {
            $crate::reflect::LeafKind::$kind
        }
        fn clear(&mut self) {
            *self = Self::default();
        }
        fn eq_leaf(&self, other: &dyn $crate::reflect::Leaf) -> bool {
            other.as_any().downcast_ref::<Self>() == Some(self)
        }
        fn assign(&mut self, other: &dyn $crate::reflect::Leaf) {
            match other.as_any().downcast_ref::<Self>() {
                Some(other) => self.clone_from(other),
                None => self.clear(),
            }
        }
        fn clone_leaf(&self) -> Box<dyn $crate::reflect::Leaf> {
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
pub(crate) use leaf_basics;

/// Text between "cannot unmarshal …" and the type: the decoder replaces it by the struct field that it knows.
pub(crate) const GO_VALUE: &str = " into Go value of type ";

/// What stands there once the field is known.
pub(crate) const GO_FIELD: &str = " into Go struct field ";

/// The error for a JSON value that can't become a Go value of type `go_type`.
pub(crate) fn wrong_type(json: &[u8], go_type: &str) -> String {
    format!("json: cannot unmarshal {}{GO_VALUE}{go_type}", text::kind_name(json))
}

/// As [`wrong_type`], for a number that does not fit; the error shows it.
pub(crate) fn wrong_number(json: &[u8], go_type: &str) -> String {
    format!(
        "json: cannot unmarshal number {}{GO_VALUE}{go_type}",
        String::from_utf8_lossy(json)
    )
}

/// The text of a JSON string; an error for any other value but `null`, which is "".
pub(crate) fn string_or_null(json: &[u8]) -> LeafResult<Cow<'_, str>> {
    match json {
        [b'"', inner @ .., b'"'] => text::unescape(inner).ok_or_else(|| "invalid string".to_owned()),
        b"null" => Ok(Cow::Borrowed("")),
        _ => Err(wrong_type(json, "string")),
    }
}
