//! Informers, elections and controllers, on a store in memory.

mod election;
mod informer;
mod running;

use std::sync::Arc;

use keelson_access::authn::Authentication;
use keelson_access::authz::Authorization;
use keelson_base::env::{SystemClock, SystemEntropy};
use keelson_machinery::json;
use keelson_machinery::object::Object;
use keelson_storage::memory::MemoryStore;
use keelson_storage::{HistoryLimits, Store};

use crate::generic::{Backend, Client, KindCode, NamespacedName, Objects, Registry, Resource, RuntimeConfig, Verbs};

const GROUP: &str = "shop.example.com";

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap())
}

/// A server of the sample kinds, without HTTP.
fn verbs(store: Arc<dyn Store>) -> Arc<Verbs> {
    let backend = Backend {
        store,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        budget: crate::cache::Budget::new(0),
        encryption: keelson_storage::encryption::Encryption::none(),
        placement: Arc::default(),
        corrupt: Default::default(),
    };
    let schemes = [&keelson_codegen_sample::api::SCHEME];
    let registry = Registry::new(
        &schemes,
        &KindCode::default(),
        &backend,
        "/registry",
        &RuntimeConfig::all(),
    )
    .unwrap();
    Arc::new(Verbs {
        registry: Arc::new(registry),
        backend,
        authentication: Authentication::default(),
        authorization: Authorization::default(),
    })
}

fn orders(verbs: &Arc<Verbs>) -> Arc<Resource> {
    verbs.registry.resource(GROUP, "orders").unwrap().clone()
}

/// Orders of the namespace `default`, as the server itself writes them.
fn client(verbs: &Arc<Verbs>) -> Objects {
    let client = Client::of_server(verbs.clone(), "test").untracked();
    client.objects(GROUP, "orders", "default").unwrap()
}

fn key(name: &str) -> NamespacedName {
    NamespacedName {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

/// A new order.
fn order(objects: &Objects, name: &str) -> Box<dyn Object> {
    let text = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"default"}},"spec":{{"customer":"ann","street":"s","price":1,
            "items":[{{"article":"a"}}],"extra":{{"apiVersion":"v1","kind":"X"}}}}}}"#
    );
    let mut order = objects.resource.hub.new_object();
    json::read(text.as_bytes(), order.as_reflect_mut()).unwrap();
    order
}

/// Writes a label of an order.
async fn label(objects: &Objects, name: &str, value: &str) {
    let mut updater = |current: Option<&dyn Object>| {
        let mut new = current.unwrap().clone_object();
        new.meta_mut().labels.insert("n".to_owned(), value.to_owned());
        Ok(new)
    };
    objects.update(name, &mut updater).await.unwrap();
}

/// The label.
fn labelled(object: &dyn Object) -> u64 {
    let label = object.meta().labels.get("n");
    label.map_or(0, |text| text.parse().unwrap())
}
