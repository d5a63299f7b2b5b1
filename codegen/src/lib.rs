//! From definition files to Rust: parse → model → check → emit. Called by `build.rs` of every crate with definitions,
//! by way of `keelson-build` where these have rules.

#![deny(missing_docs)]

mod builder;
mod check;
mod conversion;
mod emit;
mod evolution;
mod expression;
mod lock;
mod model;
mod names;
mod option_error;
mod options;
mod parse;
mod plan;
mod problem;
mod read;
mod resolver;

pub use builder::Builder;
pub use emit::{Descriptions, Output};
pub use evolution::{compare, is_recorded, record};
pub use expression::{Compile, Expression, ObjectType, ValueType};
pub use problem::{Error, Place, Problem};
