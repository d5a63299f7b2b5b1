//! The API extensions server: custom resources, as CustomResourceDefinitions say them.
//!
//! A definition is an object like others; its rules are [`definition`]. Controllers accept its names, establish it and
//! see to its end ([`controllers`]). What it defines is installed into the registry of the server ([`serving`]) as a
//! kind that is made at run time ([`resource`]), so that it is served by the code that serves built-in kinds. Webhooks
//! convert it from version to version ([`conversion`]).

#![deny(missing_docs)]

mod conditions;
mod controllers;
mod conversion;
pub mod crd;
mod definition;
mod names;
mod resource;
mod schemas;
mod serving;

use keelson_registry::KindCode;
use keelson_registry::controller::GroupResource;

pub use controllers::hooks;
pub use conversion::ConversionMetrics;

/// The resource of definitions.
const DEFINITIONS: GroupResource = GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions");

/// The code of definitions.
pub fn code() -> KindCode {
    let mut code = KindCode::default();
    definition::register(&mut code);
    code
}
