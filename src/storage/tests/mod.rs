//! Promises of every store, and of each one beyond.

mod cases;
mod contract;
pub(crate) mod etcd_server;
