//! The legacy group: its kinds, and the pod specification that other groups use too.

pub mod config_map;
mod data;
pub mod endpoints;
pub mod event;
pub mod ip;
pub mod limit_range;
pub mod namespace;
pub mod node;
pub mod node_graph;
pub mod persistent_volume;
pub mod persistent_volume_claim;
pub mod pod;
pub mod pod_spec;
pub mod pod_template;
mod port;
pub mod replication_controller;
pub mod resource_list;
pub mod resource_quota;
pub mod secret;
pub mod service;
pub mod service_account;
pub mod subresources;
