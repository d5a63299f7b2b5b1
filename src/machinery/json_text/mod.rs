//! JSON text: a scanner with the errors of Go's decoder, strings and their escapes, compaction. Nothing here knows
//! messages.

mod compact;
pub(crate) mod scan;
mod strings;
mod swar;

pub use compact::compact;
pub use scan::validate;
pub(crate) use scan::{Scanner, Shape, Text, is_empty, parse_shape};
pub(crate) use strings::{kind_name, unescape};
pub use strings::{kind_of, lossy, write_string};
