//! JSON to and from messages, as kube-apiserver reads and writes it.
//!
//! Reading is one pass over the bytes, led by the field tables; no tree is built. Syntax errors have the texts of Go's
//! decoder. Writing appends to a buffer in the order of the tables, with Go's escapes and numbers.

mod base64;
mod canonical;
mod cursor;
mod member;
mod read;
pub(crate) mod route;
mod scan;
mod sorted;
mod swar;
pub(crate) mod text;
mod type_meta;
mod write;

pub(crate) use cursor::Cursor;
pub use member::read_member;
pub use read::{read, read_within, restore};
pub(crate) use read::{read_value, read_value_within};
pub use scan::validate;
pub(crate) use scan::{Scanner, Shape, Text, is_empty, parse_shape};
pub use sorted::sorted;
pub use text::{lossy as lossy_text, write_string};
pub use type_meta::{names_type, no_fields, type_meta, type_meta_of_all};
pub use write::{compact, to_vec, write, write_item, write_kind, write_kind_as};
pub(crate) use write::{is_written, write_float, write_int, write_key, write_member};

#[cfg(test)]
mod tests;
