//! The generic registry: resources with their strategies, the verbs with admission inside, caches, informers, the
//! in-process client, controllers.
//!
//! Nothing here knows HTTP.

pub mod cache;
#[deny(missing_docs)]
pub mod controller;
#[deny(missing_docs)]
mod generic;
#[cfg(test)]
mod simulation;

pub use generic::*;
