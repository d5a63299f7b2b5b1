//! Objects without I/O or async: reflection, scheme, meta types, codecs, selectors, patches, errors.
extern crate self as keelson_machinery;

pub mod apply;
pub mod budget;
pub mod cel;
pub mod copy;
pub mod decode;
pub mod defaults;
pub mod dynamic;
pub mod env;
pub mod equality;
pub mod field;
pub mod fieldset;
pub mod intstr;
pub mod json;
pub mod jsonpath;
mod leaf;
pub mod managed;
pub mod object;
pub mod patch;
mod pattern;
pub mod protobuf;
pub mod quantity;
pub mod raw;
pub mod reflect;
#[cfg(test)]
mod sample;
pub mod scheme;
pub mod selector;
pub mod status;
pub mod table;
pub mod time;
pub mod union;
pub mod validation;
pub mod yaml;

pub use keelson_derive::Message;

/// Includes what `keelson_codegen::Builder` generated: one module per group and version, and the static `SCHEME`.
#[macro_export]
macro_rules! include_api {
    () => {
        include!(concat!(env!("OUT_DIR"), "/api.rs"));
    };
}

include_api!();
