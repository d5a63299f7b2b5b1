//! Conversions that no definition can say, each between one version and the hub of its group.

pub mod apiextensions;
pub mod autoscaling;
pub mod resource;
#[cfg(test)]
mod testing;
