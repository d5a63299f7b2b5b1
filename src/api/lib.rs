//! The built-in groups: types, tables and the scheme, generated from `api-defs`, and the conversions that they name.

pub mod convert;

keelson_machinery::include_api!();
