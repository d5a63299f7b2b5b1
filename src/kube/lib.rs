//! The built-in kinds of Kubernetes: their strategies, defaults, conversions and table cells,
//! and what the server makes when it starts.
//!
//! A kind's rules stand in its definition; here is only what no definition can say.
//!
//! Without the feature `kubernetes` there are only those that servers of other kinds choose from ([`builtin`]).

// What the rules of many kinds share is there for all, though few need little of it.
#![cfg_attr(not(feature = "kubernetes"), allow(dead_code))]

#[cfg(feature = "kubernetes")]
pub mod admission;
#[cfg(feature = "kubernetes")]
mod admissionregistration;
#[cfg(feature = "kubernetes")]
mod apiregistration;
#[cfg(feature = "kubernetes")]
mod apps;
mod authentication;
mod authorization;
#[cfg(feature = "kubernetes")]
pub mod autoscaling;
#[cfg(feature = "kubernetes")]
mod batch;
pub mod bootstrap;
pub mod builtin;
mod cells;
#[cfg(feature = "kubernetes")]
mod certificates;
mod cidr;
mod conditions;
pub mod coordination;
mod core;
#[cfg(feature = "kubernetes")]
mod discovery;
mod faults;
#[cfg(feature = "kubernetes")]
pub mod flowcontrol;
#[cfg(feature = "kubernetes")]
mod internal;
mod ip;
mod metadata;
mod names;
#[cfg(feature = "kubernetes")]
mod networking;
#[cfg(feature = "kubernetes")]
mod node;
#[cfg(feature = "kubernetes")]
mod policy;
pub mod rbac;
#[cfg(feature = "kubernetes")]
pub mod resource;
#[cfg(feature = "kubernetes")]
mod scheduling;
mod setting;
mod status_alone;
#[cfg(feature = "kubernetes")]
mod storage;
#[cfg(feature = "kubernetes")]
mod storagemigration;
#[cfg(test)]
mod testing;
mod typed;
#[cfg(feature = "kubernetes")]
mod versions;

pub use bootstrap::{DataError, node_rules};
pub use builtin::BuiltIn;
#[cfg(feature = "kubernetes")]
pub use core::new_pod_faults;
#[cfg(feature = "kubernetes")]
pub use core::node_graph::Reader as NodeGraph;
pub use setting::{CodeOptions, ServiceOptions};
#[cfg(feature = "kubernetes")]
pub use versions::KNOWN_VERSIONS;

use keelson_api::SCHEME;
#[cfg(feature = "kubernetes")]
use keelson_registry::KindCode;

/// The code of all built-in kinds.
#[cfg(feature = "kubernetes")]
pub fn code(options: &CodeOptions) -> KindCode {
    let mut code = KindCode::default();
    code.usual_metadata_checks(&SCHEME, metadata::USUAL);
    core::register(&mut code, options);
    for register in [
        admissionregistration::register,
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use keelson_base::env::{SystemClock, SystemEntropy};
    use keelson_registry::{Backend, Registry, RuntimeConfig};
    use keelson_storage::HistoryLimits;
    use keelson_storage::encryption::Encryption;
    use keelson_storage::memory::MemoryStore;

    use super::*;

    fn registry(code: &KindCode, served: bool) -> Result<Registry, String> {
        let backend = Backend {
            store: Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap()),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            budget: keelson_registry::cache::Budget::new(0),
            encryption: Encryption::none(),
            placement: Arc::default(),
            corrupt: Default::default(),
        };
        let config = match served {
            true => RuntimeConfig::all(),
            false => RuntimeConfig::parse(["api/all=false", "nothing/v1=true"]).unwrap(),
        };
        Registry::new(&[&SCHEME], code, &backend, "/registry", &config).map_err(|error| error.to_string())
    }

    #[test]
    fn all_code_fits_the_definitions() {
        let code = code(&CodeOptions::default());
        assert_eq!(registry(&code, true).err(), None);
        assert_eq!(
            registry(&code, false).err(),
            None,
            "an API that is switched off is known"
        );
    }

    #[test]
    fn code_of_others_adds_to_that_of_built_in_kinds() {
        use keelson_api::coordination_k8s_io::v1::Lease;
        use keelson_api::coordination_k8s_io::v1beta1::LeaseCandidate;
        let mut all = code(&CodeOptions::default());
        let mut other = KindCode::default();
        other.kind::<LeaseCandidate>().any_strategy(status_alone::StatusAlone);
        all.merge(other);
        assert_eq!(registry(&all, true).err(), None);
        let mut other = KindCode::default();
        other.kind::<Lease>().any_strategy(status_alone::StatusAlone);
        all.merge(other);
        let told = registry(&all, true).err().unwrap();
        assert_eq!(told, "strategy of coordination.k8s.io/v1, Kind=Lease: registered twice");
    }
}
