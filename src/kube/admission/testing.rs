//! A server in memory with plug-ins, for tests of what they read and write.

use std::sync::Arc;

use keelson_access::authn::Authentication;
use keelson_access::authz::Authorization;
use keelson_api::core::v1::Namespace;
use keelson_base::env::{SystemClock, SystemEntropy};
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_registry::admission::{Admission, Plugin};
use keelson_registry::cache::Budget;
use keelson_registry::{Backend, Client, Registry, RuntimeConfig, ServerListers, Verbs};
use keelson_storage::memory::MemoryStore;
use keelson_storage::{HistoryLimits, Store};

/// The verbs of a server with these plug-ins and the namespace `default`.
pub async fn server(plugins: Vec<Arc<dyn Plugin>>) -> Arc<Verbs> {
    let store = Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap());
    let verbs = server_on(store, plugins);
    let namespaces = client(&verbs).of::<Namespace>("").unwrap();
    namespaces
        .create(named(Namespace::default(), |o| &mut o.metadata, "default"))
        .await
        .unwrap();
    verbs
}

/// The same on a store, which may have everything already.
pub fn server_on(store: Arc<dyn Store>, plugins: Vec<Arc<dyn Plugin>>) -> Arc<Verbs> {
    let backend = Backend {
        store,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        budget: Budget::new(0),
        encryption: keelson_storage::encryption::Encryption::none(),
        placement: Arc::default(),
        corrupt: Default::default(),
    };
    let admission = plugins.into_iter().fold(Admission::default(), Admission::with_shared);
    let mut code = crate::code(&crate::CodeOptions::default());
    code.admission(admission.clone());
    let all = RuntimeConfig::all();
    let registry = Registry::new(&[&keelson_api::SCHEME], &code, &backend, "/registry", &all);
    let verbs = Arc::new(Verbs {
        registry: Arc::new(registry.unwrap()),
        backend,
        authentication: Authentication::default(),
        authorization: Authorization::default(),
    });
    admission.attach(&ServerListers::new(verbs.clone()), &verbs);
    verbs
}

/// A client that may do everything.
pub fn client(verbs: &Arc<Verbs>) -> Client {
    Client::of_server(verbs.clone(), "tests")
}

/// An object with a name.
pub fn named<T>(mut object: T, metadata: fn(&mut T) -> &mut ObjectMeta, name: &str) -> T {
    name.clone_into(&mut metadata(&mut object).name);
    object
}
