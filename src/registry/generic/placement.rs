//! Placement of resources: stores, prefixes and encodings beside those that all share.

use std::sync::Arc;
use std::time::Duration;

use keelson_storage::Store;

/// See the module's description.
#[derive(Clone)]
pub struct Placement {
    /// The form in which objects of built-in kinds are written. All forms are read.
    pub media: Media,
    /// Stores of resources that have one of their own.
    pub overrides: Vec<StoreOverride>,
    /// How long the check `etcd` waits for a store.
    pub health_timeout: Duration,
    /// How long the check `etcd-readiness` waits for a store.
    pub ready_timeout: Duration,
    /// How often the size of the stores is looked at; `None`: never.
    pub size_interval: Option<Duration>,
}

/// The store of one resource.
#[derive(Clone)]
pub struct StoreOverride {
    /// Group of the resource.
    pub group: String,
    /// Its plural.
    pub resource: String,
    /// Where its objects are.
    pub store: Arc<dyn Store>,
}

/// A form of stored objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Media {
    /// In the envelope that Kubernetes puts around it.
    #[default]
    Protobuf,
    /// One line.
    Json,
    /// As kube-apiserver writes it.
    Yaml,
}

impl Default for Placement {
    /// As kube-apiserver without flags.
    fn default() -> Self {
        Placement {
            media: Media::default(),
            overrides: Vec::new(),
            health_timeout: Duration::from_secs(2),
            ready_timeout: Duration::from_secs(2),
            size_interval: Some(Duration::from_secs(30)),
        }
    }
}

impl Placement {
    /// The store of its own that a resource has.
    pub(super) fn store_of(&self, group: &str, resource: &str) -> Option<&Arc<dyn Store>> {
        let mut all = self.overrides.iter();
        let own = all.find(|own| own.group == group && own.resource == resource)?;
        Some(&own.store)
    }
}
