//! The built-in groups: types, tables and the scheme, generated from `api-defs`.

keelson_machinery::include_api!();
