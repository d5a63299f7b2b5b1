//! Field paths, field errors and their texts.

mod error;
mod list;
mod path;
pub mod text;

pub use error::{BadValue, ErrorType, FieldError};
pub use list::ErrorList;
pub use path::Path;
