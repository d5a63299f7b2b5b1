//! Definitions that use every option, compiled as a user's crate compiles its own.

pub mod api {
    //! Generated from `api-defs`.
    keelson_machinery::include_api!();
}

pub mod conversion;

#[cfg(test)]
mod tests;
