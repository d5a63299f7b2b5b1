//! JSON to and from messages, as kube-apiserver reads and writes it.
//!
//! Reading is one pass over the bytes, led by the field tables; no tree is built. Syntax errors have the texts of Go's
//! decoder. Writing appends to a buffer in the order of the tables, with Go's escapes and numbers.

pub(crate) mod base64;
mod canonical;
mod cursor;
mod member;
mod read;
pub(crate) mod route;
mod sorted;
mod type_meta;
mod write;

pub(crate) use crate::json_text::{Scanner, Shape, Text, is_empty, parse_shape};
pub use crate::json_text::{compact, kind_of, lossy as lossy_text, validate, write_string};
pub(crate) use crate::reflect::equality::is_written;
pub(crate) use cursor::Cursor;
pub use member::read_members;
pub use read::{read, read_applied, read_stored, read_within, restore};
pub(crate) use read::{read_prefix, read_value, read_value_within};
pub use sorted::sorted;
pub use type_meta::{names_type, no_fields, type_meta, type_meta_of_all, type_texts};
pub use write::{to_vec, write, write_item, write_kind, write_kind_as};
pub(crate) use write::{write_float, write_int, write_key, write_member};

#[cfg(test)]
mod tests;
