//! etcd and the network before it, simulated: what the store asks for through [`crate::etcd::api`] is answered from
//! memory, late, or not at all.

pub mod cluster;
pub mod network;
mod stream;
