//! Keelson: a Kubernetes-style API server made from resource definition files.
//!
//! [`Server`] is a whole program: `keelson` itself and the servers of others are made with it. [`options`] is its
//! command line.

pub mod kube;
pub mod options;

mod access;
mod authentication;
mod logging;
mod program;
mod version;

pub use keelson_api as api;
pub use program::Server;
