//! Recorded conversations: HTTP requests with the answers of kube-apiserver, played against a server and compared.
//!
//! The format of cases and how they are recorded is in `README.md`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test program: it says what it does; expressions that are written here are right"
)]

mod audit;
pub mod batch;
pub mod case;
pub mod client;
pub mod compare;
mod deep;
pub mod definitions;
mod etcd;
pub mod fault;
pub mod generate;
mod jwt;
mod normalise;
mod paths;
pub mod pending;
pub mod play;
pub mod record;
pub mod report;
mod stub;
pub mod suite;
mod text;
pub mod users;
mod variables;
mod watch;
