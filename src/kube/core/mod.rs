//! The legacy group: its kinds, and the pod specification that other groups use too.

pub mod config_map;
mod data;
pub mod endpoints;
pub mod event;
pub mod limit_range;
pub mod namespace;
pub mod namespace_finalizer;
pub mod node;
pub mod node_graph;
pub mod persistent_volume;
pub mod persistent_volume_claim;
pub mod pod;
pub mod pod_resources;
pub mod pod_spec;
pub mod pod_template;
pub mod replication_controller;
pub mod resource_check;
pub mod resource_list;
pub mod resource_name;
pub mod resource_quota;
pub mod secret;
pub mod service;
pub mod service_account;
pub mod subresources;
pub mod volume_source;

use std::time::Duration;

use keelson_registry::KindCode;

pub use pod::new_pod_faults;
pub use service::ServiceOptions;

/// Registers the rules of this group, with the time that events are kept and what services get.
pub fn register(code: &mut KindCode, event_time_to_live: Option<Duration>, services: &ServiceOptions) {
    event::register(code, event_time_to_live);
    config_map::register(code);
    endpoints::register(code);
    limit_range::register(code);
    namespace::register(code);
    node::register(code);
    persistent_volume::register(code);
    persistent_volume_claim::register(code);
    pod::register(code);
    pod_template::register(code);
    replication_controller::register(code);
    resource_quota::register(code);
    secret::register(code);
    service::register(code, services);
    service_account::register(code);
    subresources::register(code);
}
