//! Objects without I/O or async: reflection, scheme, meta types, codecs, selectors, patches, errors.
extern crate self as keelson_machinery;

pub mod env;
pub mod field;
pub mod intstr;
pub mod json;
mod leaf;
pub mod object;
pub mod patch;
pub mod protobuf;
pub mod quantity;
pub mod raw;
pub mod reflect;
pub mod scheme;
pub mod selector;
pub mod status;
pub mod time;
pub mod validation;
