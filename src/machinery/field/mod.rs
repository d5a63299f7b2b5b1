//! Where in an object something is wrong, and what: field paths, field errors and their texts.

mod error;
mod path;
pub mod text;

pub use error::{BadValue, ErrorList, ErrorType, FieldError};
pub use path::Path;
