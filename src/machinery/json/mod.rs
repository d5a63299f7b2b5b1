//! JSON to and from messages, as kube-apiserver reads and writes it.
//!
//! Reading is one pass over the bytes, led by the field tables; no tree is built. Syntax errors have the texts of Go's
//! decoder. Writing appends to a buffer in the order of the tables, with Go's escapes and numbers.

mod base64;
mod cursor;
mod read;
mod scan;
pub(crate) mod text;
mod write;

pub(crate) use cursor::Cursor;
pub(crate) use read::read_value;
pub use read::{read, type_meta};
pub use scan::validate;
pub(crate) use scan::{Shape, Text, parse_shape};
pub(crate) use write::{compact, write_float, write_int};
pub use write::{to_vec, write, write_kind, write_kind_as};

#[cfg(test)]
mod tests;
