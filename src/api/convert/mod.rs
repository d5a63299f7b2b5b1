//! Conversions that no definition can say, each between one version and the hub of its group, in the form that
//! `api-defs/README.md` shows: the error is the reason that a client is told, which nobody tells apart.

pub mod apiextensions;
#[cfg(feature = "kubernetes")]
pub mod autoscaling;
#[cfg(feature = "kubernetes")]
pub mod resource;
#[cfg(test)]
#[cfg(feature = "kubernetes")]
mod testing;
