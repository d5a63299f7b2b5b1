//! JSON text: a scanner with the errors of Go's decoder, strings and their escapes, compaction. Nothing here knows
//! messages.

mod compact;
pub(crate) mod scan;
mod strings;
mod swar;

pub use compact::compact;
pub use scan::validate;
pub(crate) use scan::{Scanner, Shape, Text, is_empty, is_of_objects, parse_shape, string_len};
pub(crate) use strings::{kind_name, unescape};
pub use strings::{kind_of, lossy, write_string};
