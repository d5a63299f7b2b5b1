//! Keelson: a Kubernetes-style API server made from resource definition files.

mod logging;
pub mod options;
