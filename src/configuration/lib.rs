//! Configuration files: their kinds, generated from `api-defs`, and the strict reader of all of them. A file is YAML or
//! JSON of a kind that it names; unknown and repeated fields and values of wrong types are mistakes that name their
//! place, in kube-apiserver's words.

mod file;
mod reader;

pub use file::{FileError, MAX_FILE_BYTES, read_file};
pub use reader::{ConfigurationError, Known, json_kind, read, read_leniently};

keelson_machinery::include_api!();
