//! The legacy group: its kinds, and the pod specification that other groups use too.

#[cfg(feature = "kubernetes")]
pub mod config_map;
#[cfg(feature = "kubernetes")]
mod data;
#[cfg(feature = "kubernetes")]
pub mod endpoints;
pub mod event;
#[cfg(feature = "kubernetes")]
pub mod limit_range;
pub mod namespace;
pub mod namespace_finalizer;
#[cfg(feature = "kubernetes")]
pub mod node;
#[cfg(feature = "kubernetes")]
pub mod node_graph;
#[cfg(feature = "kubernetes")]
pub mod persistent_volume;
#[cfg(feature = "kubernetes")]
pub mod persistent_volume_claim;
#[cfg(feature = "kubernetes")]
pub mod pod;
#[cfg(feature = "kubernetes")]
pub mod pod_resources;
#[cfg(feature = "kubernetes")]
pub mod pod_spec;
#[cfg(feature = "kubernetes")]
pub mod pod_template;
#[cfg(feature = "kubernetes")]
pub mod replication_controller;
#[cfg(feature = "kubernetes")]
pub mod resource_check;
#[cfg(feature = "kubernetes")]
pub mod resource_list;
#[cfg(feature = "kubernetes")]
pub mod resource_name;
#[cfg(feature = "kubernetes")]
pub mod resource_quota;
#[cfg(feature = "kubernetes")]
pub mod secret;
#[cfg(feature = "kubernetes")]
pub mod service;
#[cfg(feature = "kubernetes")]
pub mod service_account;
#[cfg(feature = "kubernetes")]
pub mod subresources;
#[cfg(feature = "kubernetes")]
pub mod volume_source;

#[cfg(feature = "kubernetes")]
use keelson_registry::KindCode;

#[cfg(feature = "kubernetes")]
use crate::CodeOptions;

#[cfg(feature = "kubernetes")]
pub use pod::new_pod_faults;

/// Registers the rules of this group.
#[cfg(feature = "kubernetes")]
pub fn register(code: &mut KindCode, options: &CodeOptions) {
    event::register(code, options.event_time_to_live);
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
    service::register(code, &options.services);
    service_account::register(code);
    subresources::register(code);
}
