//! The configuration of a server, by subsystem.

use std::collections::BTreeMap;
use std::sync::Arc;

use keelson_access::authn::Authentication;
use keelson_access::authz::Authorization;
use keelson_access::flowcontrol::FlowControl;
use keelson_access::flowcontrol::spec::ReadFlowControl;
use keelson_base::env::{SystemClock, SystemEntropy};
use keelson_machinery::env::{Clock, Entropy};
use keelson_machinery::scheme::Scheme;
use keelson_net::listener::ListenerConfig;
use keelson_registry::admission::Admission;
use keelson_registry::cache::Budget;
use keelson_registry::{Backend, CorruptObjects, KindCode, Placement, Registry, RegistryError, RuntimeConfig};
use keelson_storage::Store;
use keelson_storage::encryption::Encryption;

use super::Hook;
use crate::admission;
use crate::audit::Audit;
use crate::settings::RequestSettings;
use crate::version::Version;

/// Adds series to those of a server.
pub type ShowMetrics = Box<dyn Fn(&mut prometheus_client::registry::Registry)>;

/// Everything that a server is made of.
pub struct Config {
    /// What it serves.
    pub resources: ResourceConfig,
    /// Where objects are kept.
    pub storage: StorageConfig,
    /// Who may come in and do what, and when it is their turn.
    pub access: AccessConfig,
    pub audit: Audit,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub version: Version,
    /// The flags that it runs with, by their names; clients may see them.
    pub flags: BTreeMap<String, String>,
    pub hooks: Vec<Hook>,
    /// Show what others than the generic server count.
    pub metrics: Vec<ShowMetrics>,
    pub listener: ListenerConfig,
    pub requests: RequestSettings,
    /// `host:port` that discovery tells clients, or an address, whose port is that of the listener; empty: both are.
    pub advertise: String,
}

/// The resources of a server.
pub struct ResourceConfig {
    pub schemes: Vec<&'static Scheme>,
    /// The rules that no definition can say.
    pub code: KindCode,
    /// Which versions are served.
    pub runtime: RuntimeConfig,
    /// The plug-ins that see every write and connection.
    pub admission: Admission,
    /// Group/versions that requests may name though nothing of them is defined; OpenAPI lists them.
    pub known_versions: &'static [(&'static str, &'static str)],
}

/// The storage of a server.
pub struct StorageConfig {
    pub store: Arc<dyn Store>,
    /// How values are stored.
    pub encryption: Arc<Encryption>,
    /// Where and how objects are stored beside that.
    pub placement: Placement,
    /// First part of all keys, `/registry`.
    pub prefix: String,
    /// How many bytes of memory may hold objects in the forms in which they were answered; see
    /// [`keelson_registry::cache`].
    pub cache_bytes: usize,
}

/// The access to a server.
pub struct AccessConfig {
    pub authentication: Authentication,
    pub authorization: Authorization,
    /// Reads what priorities requests have; `None`: they have none.
    pub flow_control: Option<Box<dyn ReadFlowControl>>,
}

impl Config {
    /// These kinds in this store, and of all else what a server can't do without: nobody may do anything yet.
    pub fn new(schemes: Vec<&'static Scheme>, store: Arc<dyn Store>, listener: ListenerConfig) -> Config {
        Config {
            resources: ResourceConfig::new(schemes),
            storage: StorageConfig::new(store),
            access: AccessConfig {
                authentication: Authentication::default(),
                authorization: Authorization::new(Vec::new()),
                flow_control: None,
            },
            audit: Audit::default(),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            version: Version::default(),
            flags: BTreeMap::new(),
            hooks: Vec::new(),
            metrics: Vec::new(),
            listener,
            requests: RequestSettings::default(),
            advertise: String::new(),
        }
    }
}

impl ResourceConfig {
    /// All versions of these kinds, with no rules but those of their definitions.
    pub fn new(schemes: Vec<&'static Scheme>) -> ResourceConfig {
        ResourceConfig {
            schemes,
            code: KindCode::default(),
            runtime: RuntimeConfig::default(),
            admission: Admission::new(admission::plugins()),
            known_versions: &[],
        }
    }

    /// The resources, their objects under `prefix`.
    pub(super) fn registry(&mut self, backend: &Backend, prefix: &str) -> Result<Arc<Registry>, RegistryError> {
        self.code.admission(self.admission.clone());
        let registry = Registry::new(&self.schemes, &self.code, backend, prefix, &self.runtime)?;
        Ok(Arc::new(registry))
    }
}

impl StorageConfig {
    /// Everything in this store, as it is.
    pub fn new(store: Arc<dyn Store>) -> StorageConfig {
        StorageConfig {
            store,
            encryption: Encryption::none(),
            placement: Placement::default(),
            prefix: "/registry".to_owned(),
            cache_bytes: 64 << 20,
        }
    }

    /// What resources share.
    pub(super) fn backend(self, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Backend {
        Backend {
            store: self.store,
            clock,
            entropy,
            budget: Budget::new(self.cache_bytes),
            encryption: self.encryption,
            placement: Arc::new(self.placement),
            corrupt: CorruptObjects::default(),
        }
    }
}

impl AccessConfig {
    /// The seats that requests wait for, where they do.
    pub(super) fn flow_control(&mut self, requests: &RequestSettings) -> Option<Arc<FlowControl>> {
        let reader = self.flow_control.take().filter(|_| requests.priority_and_fairness)?;
        Some(Arc::new(FlowControl::new(
            reader,
            requests.max_reads,
            requests.max_writes,
        )))
    }
}
