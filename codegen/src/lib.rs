//! From definition files to Rust: parse → model → check → emit. Called by `build.rs` of every crate with definitions.
//!
//! ```no_run
//! keelson_codegen::Builder::new("api-defs").run_or_exit();
//! ```

#![deny(missing_docs)]

mod builder;
mod check;
mod emit;
mod evolution;
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
pub use problem::{Error, Place, Problem};
