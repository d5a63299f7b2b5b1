//! The built-in kinds: what their definitions cannot say.

pub mod autoscaling;
