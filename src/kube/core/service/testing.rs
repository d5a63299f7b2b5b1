//! Servers without HTTP for the tests of services.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use keelson_access::authn::Authentication;
use keelson_access::authz::Authorization;
use keelson_api::core::v1::{Namespace, Service};
use keelson_api::networking_k8s_io::v1::{IPAddress, ServiceCIDR};
use keelson_base::env::SystemEntropy;
use keelson_machinery::env::Clock;
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_machinery::time::Time;
use keelson_registry::admission::Admission;
use keelson_registry::{Backend, Client, Objects, Registry, RuntimeConfig, Verbs};
use keelson_storage::memory::MemoryStore;
use keelson_storage::{HistoryLimits, Store};
use tokio::sync::Mutex;

use super::ports::bitmap::Bitmap;
use super::ports::{PortRange, record};
use super::repair::ServiceRepair;
use crate::testing::read;
use crate::{CodeOptions, ServiceOptions};

/// Time that passes when it is told to.
#[derive(Default)]
pub struct Hands(AtomicI64);

impl Hands {
    /// Lets seconds pass.
    pub fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for Hands {
    fn now(&self) -> Time {
        Time::from_unix(1_700_000_000 + self.0.load(Ordering::Relaxed), 0)
    }
}

/// Servers of one store.
pub struct Cluster {
    pub store: Arc<dyn Store>,
    pub clock: Arc<Hands>,
    pub options: ServiceOptions,
}

impl Cluster {
    pub fn new(options: ServiceOptions) -> Cluster {
        Cluster {
            store: Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap()),
            clock: Arc::default(),
            options,
        }
    }

    /// One of IPv4 and a few ports, with its range, a namespace, and a server.
    pub async fn started(range: &str, node_ports: (u16, u16)) -> (Cluster, Server) {
        let cluster = Cluster::new(ServiceOptions {
            node_ports,
            ..ServiceOptions::default()
        });
        let server = cluster.server();
        server.prepare(range).await;
        (cluster, server)
    }

    pub fn server(&self) -> Server {
        let backend = Backend {
            store: self.store.clone(),
            clock: self.clock.clone(),
            entropy: Arc::new(SystemEntropy),
            budget: keelson_registry::cache::Budget::new(0),
            encryption: keelson_storage::encryption::Encryption::none(),
            placement: Arc::default(),
            corrupt: Default::default(),
        };
        let mut code = crate::code(&CodeOptions {
            services: self.options.clone(),
            ..CodeOptions::default()
        });
        code.admission(Admission::new(keelson_server::admission::plugins()));
        let schemes = [&keelson_api::SCHEME];
        let registry = Registry::new(&schemes, &code, &backend, "/registry", &RuntimeConfig::all()).unwrap();
        let verbs = Verbs {
            registry: Arc::new(registry),
            backend,
            authentication: Authentication::default(),
            authorization: Authorization::default(),
        };
        Server {
            verbs: Arc::new(verbs),
            repair: Arc::new(Mutex::new(ServiceRepair::new(self.options.node_ports))),
        }
    }
}

/// A server without HTTP.
#[derive(Clone)]
pub struct Server {
    pub verbs: Arc<Verbs>,
    repair: Arc<Mutex<ServiceRepair>>,
}

impl Server {
    pub fn client(&self) -> Client {
        Client::of_server(self.verbs.clone(), "test")
    }

    /// The namespace of all services, their range, and the record of their ports.
    pub async fn prepare(&self, range: &str) {
        let namespace: Namespace = read(r#"{"metadata":{"name":"ns"}}"#);
        self.client().of("").unwrap().create(namespace).await.unwrap();
        self.add_range("kubernetes", range).await;
        self.repair().await;
    }

    pub async fn add_range(&self, name: &str, range: &str) {
        let range: ServiceCIDR = read(&format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"cidrs":["{range}"]}}}}"#
        ));
        self.client().of("").unwrap().create(range).await.unwrap();
    }

    /// Looks at all services and addresses once.
    pub async fn repair(&self) {
        let repair = self.repair.lock().await;
        repair.run_once(&self.client()).await.unwrap();
        repair.addresses_once(&self.client()).await.unwrap();
    }

    fn services(&self) -> Objects {
        self.client().objects("", "services", "ns").unwrap()
    }

    pub async fn create(&self, name: &str, spec: &str) -> Result<Service, StatusError> {
        let service: Service = read(&format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"ns"}},"spec":{spec}}}"#
        ));
        let made = self.services().create(Box::new(service)).await?;
        Ok(made.downcast_ref::<Service>().unwrap().clone())
    }

    pub async fn update(&self, name: &str, change: impl Fn(&mut Service)) -> Result<Service, StatusError> {
        let mut updater = |old: Option<&dyn Object>| {
            let mut new = old
                .and_then(|old| old.downcast_ref::<Service>())
                .cloned()
                .ok_or_else(|| StatusError::not_found("", "services", name))?;
            change(&mut new);
            Ok(Box::new(new) as Box<dyn Object>)
        };
        let made = self.services().update(name, &mut updater).await?;
        Ok(made.downcast_ref::<Service>().unwrap().clone())
    }

    pub async fn delete(&self, name: &str) -> Result<(), StatusError> {
        let deleted = self.services().delete(name, &DeleteOptions::default()).await;
        deleted.map(drop)
    }

    /// The addresses that are recorded, with the names of their services, in the order of their texts.
    pub async fn addresses(&self) -> Vec<(String, String)> {
        let all = self.client().of::<IPAddress>("").unwrap().all().await.unwrap();
        let shown = |address: IPAddress| (address.metadata.name, address.spec.parent_ref.unwrap().name.clone());
        all.into_iter().map(shown).collect()
    }

    /// The ports that are recorded.
    pub async fn ports(&self) -> Vec<u16> {
        let recorded = record(&self.verbs.registry).unwrap().read().await.unwrap().unwrap();
        let range = PortRange::parse(&recorded.value.range).unwrap();
        Bitmap::from_bytes(range, &recorded.value.data).taken().collect()
    }
}
