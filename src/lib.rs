//! Keelson: a Kubernetes-style API server made from resource definition files.
//!
//! [`Server`] is a whole program: `keelson` itself and the servers of others are made with it. [`options`] is its
//! command line.

pub mod api;
pub mod kube;
pub mod options;

mod access;
mod logging;
mod program;
mod version;

pub use program::Server;
