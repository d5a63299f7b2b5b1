//! `/debug/…`: what operators look at, each behind a right of its own.

pub mod flow_control;
pub mod store_snapshot;
