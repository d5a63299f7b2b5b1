//! The group autoscaling.

mod annotations;
pub mod convert;
pub mod horizontal_pod_autoscaler;
mod metrics;
