//! The legacy group: its kinds, and the pod specification that other groups use too.

pub mod config_map;
mod data;
pub mod endpoints;
pub mod event;
pub mod namespace;
pub mod node;
pub mod pod;
pub mod pod_spec;
mod port;
pub mod secret;
pub mod service;
pub mod service_account;
