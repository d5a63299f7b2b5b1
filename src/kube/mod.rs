//! What is particular to the built-in kinds of Kubernetes: their strategies, defaults, conversions and table cells,
//! and what the server makes when it starts.
//!
//! A kind's rules stand in its definition; here is only what no definition can say.

pub mod admission;
mod admissionregistration;
pub mod apiextensions;
mod apiregistration;
mod apps;
mod authentication;
mod authorization;
pub mod autoscaling;
mod batch;
pub mod bootstrap;
mod cells;
mod certificates;
mod coordination;
mod core;
mod discovery;
pub mod flowcontrol;
mod internal;
mod metadata;
mod networking;
mod node;
mod policy;
pub mod rbac;
pub mod resource;
mod scheduling;
mod status_alone;
mod storage;
mod storagemigration;
#[cfg(test)]
mod testing;
mod typed;
mod versions;

pub use bootstrap::node_rules;
pub use core::node_graph::Reader as NodeGraph;
pub use versions::KNOWN_VERSIONS;

use std::time::Duration;

use keelson_machinery::table::CellFunctions;
use keelson_server::registry::KindCode;

use crate::api::SCHEME;

/// What the command line says of the rules of kinds.
#[derive(Clone, Debug)]
pub struct CodeOptions {
    /// How long events are kept after their last write; `None`: for ever.
    pub event_time_to_live: Option<Duration>,
}

impl Default for CodeOptions {
    fn default() -> CodeOptions {
        CodeOptions {
            event_time_to_live: Some(core::event::TIME_TO_LIVE),
        }
    }
}

/// The code of all built-in kinds.
pub fn code(options: &CodeOptions) -> KindCode {
    let mut code = KindCode::default();
    code.usual_metadata_checks(&SCHEME, metadata::USUAL);
    core::register(&mut code, options.event_time_to_live);
    for register in [
        admissionregistration::register,
        apiextensions::register,
        apiregistration::register,
        apps::register,
        authentication::register,
        authorization::register,
        autoscaling::register,
        batch::register,
        certificates::register,
        coordination::register,
        discovery::register,
        flowcontrol::register,
        internal::register,
        networking::register,
        node::register,
        policy::register,
        rbac::register,
        resource::register,
        scheduling::register,
        storage::register,
        storagemigration::register,
    ] {
        register(&mut code);
    }
    code
}

/// Cell functions of all built-in kinds.
pub fn cells() -> CellFunctions {
    cells::all()
}
