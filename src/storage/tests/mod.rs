//! What every store promises, and what each one promises beyond.

mod cases;
mod contract;
pub(crate) mod etcd_server;
