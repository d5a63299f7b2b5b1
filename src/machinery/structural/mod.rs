//! Structural schemas: what a definition says of the objects of a custom resource.
//!
//! A [`JsonSchema`] is what `openAPIV3Schema` says, as data. [`compile`] makes of it the table of a type that is known at
//! run time: reading by that table prunes, defaults are its fields', apply and `managedFields` go by its lists and maps.

mod compile;
mod parse;
mod schema;
#[cfg(test)]
mod tests;

pub use compile::{Compile, compile};
pub use parse::SchemaError;
pub use schema::{
    AdditionalProperties, Dependency, Items, JsonSchema, Junctors, Keywords, Limits, Literal, Property, Rare, Rule,
    SchemaType, Topology,
};
