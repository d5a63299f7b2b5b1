//! Objects without I/O or async: reflection, scheme, meta types, codecs, selectors, patches, errors.
extern crate self as keelson_machinery;

pub mod cel;
pub mod content;
pub mod decode;
pub mod defaults;
pub mod env;
pub mod field;
pub mod fieldset;
pub mod json;
mod json_text;
pub mod jsonpath;
pub mod lazy;
pub mod managedfields;
pub mod patch;
mod pattern;
pub mod protobuf;
pub mod reflect;
#[cfg(test)]
mod sample;
pub mod scheme;
pub mod selector;
pub mod status;
pub mod structural;
pub mod table;
pub mod union;
pub mod validation;
pub(crate) mod wire;
pub mod yaml;

pub use keelson_derive::Message;

/// Includes what `keelson_build::definitions` generated: one module per group and version, and the static `SCHEME`.
#[macro_export]
macro_rules! include_api {
    () => {
        include!(concat!(env!("OUT_DIR"), "/api.rs"));
    };
}

include_api!();
pub use managedfields::apply;
pub use reflect::{budget, copy, dynamic, equality, intstr, object, quantity, raw, time};
