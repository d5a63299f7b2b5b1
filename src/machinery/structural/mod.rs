//! Structural schemas: what a definition says of the objects of a custom resource.
//!
//! A [`JsonSchema`] is what `openAPIV3Schema` says, as data. [`compile`] makes of it the table of a type that is known
//! at run time: reading by that table prunes, defaults are its fields', apply and `managedFields` go by its lists and
//! maps. A [`Validator`] says what is wrong with an object, in kube-apiserver's words.

mod check;
mod compile;
mod correlate;
mod decl;
mod field_path;
mod openapi;
mod parse;
mod rules;
mod schema;
mod spot;
#[cfg(test)]
mod tests;
mod validate;
mod validator;
mod view;

pub use check::{Definition, Requirements, Subject, check};
pub use compile::{Compile, compile};
pub use field_path::{FieldPath, FieldPathError};
pub use openapi::{OpenApi, OpenApiTexts, OpenApiVersion};
pub use parse::SchemaError;
pub use schema::{
    AdditionalProperties, Dependency, Items, JsonSchema, Junctors, Keywords, Limits, Literal, Property, Rare, Rule,
    Rules, SchemaType, Topology,
};
pub use validator::Validator;
