//! Serving of a definition while it is written, and while others write to it.

use std::sync::LazyLock;

use keelson_access::authn::Authentication;
use keelson_access::authz::Authorization;
use keelson_base::env::{SystemClock, SystemEntropy};
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_machinery::scheme::{GroupDesc, Scheme};
use keelson_registry::{Backend, Client, RuntimeConfig, TypedObjects, Verbs};
use keelson_storage::HistoryLimits;
use keelson_storage::encryption::Encryption;
use keelson_storage::memory::MemoryStore;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::conversion::tests::outside;
use crate::definition::tests::read;

/// The group of definitions alone: other kinds need code of their own.
static ALONE: LazyLock<Scheme> = LazyLock::new(|| {
    let all = &keelson_api::SCHEME;
    let is_it = |group: &GroupDesc| group.name == crate::DEFINITIONS.group;
    let place = all.groups.iter().position(is_it).unwrap();
    Scheme {
        groups: &all.groups[place..=place],
        ..*all
    }
});

const NAME: &str = "widgets.example.com";

/// A server without HTTP and without controllers.
struct Server {
    serving: Serving,
    definitions: TypedObjects<CustomResourceDefinition>,
    lister: Lister,
}

impl Server {
    fn new() -> Server {
        let backend = Backend {
            store: Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap()),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            budget: keelson_registry::cache::Budget::new(0),
            encryption: Encryption::none(),
            placement: Arc::default(),
            corrupt: Default::default(),
        };
        let schemes: [&'static Scheme; 1] = [&ALONE];
        let registry = Registry::new(&schemes, &crate::code(), &backend, "/registry", &RuntimeConfig::all());
        let registry = Arc::new(registry.unwrap());
        let verbs = Verbs {
            registry: registry.clone(),
            backend,
            authentication: Authentication::default(),
            authorization: Authorization::default(),
        };
        let client = Client::of_server(Arc::new(verbs), "test");
        let definitions = client.of::<CustomResourceDefinition>("").unwrap();
        Server {
            serving: Serving::new(registry, outside(), mpsc::unbounded_channel().0),
            lister: Lister::new(definitions.objects.resource.clone()),
            definitions,
        }
    }

    fn is_served(&self) -> bool {
        self.serving.registry.resource("example.com", "widgets").is_some()
    }

    /// Whether requests are served at once.
    fn is_open(&self) -> bool {
        let resource = self.serving.registry.resource("example.com", "widgets").unwrap();
        resource.strategy.settled().is_none()
    }

    async fn follow(&self) -> bool {
        self.serving.follow(&key(), &self.lister).await.unwrap()
    }

    async fn catch_up(&self) {
        self.serving.catch_up(&key(), &self.lister).await.unwrap();
    }

    /// Stores this status.
    async fn write(&self, status: &Value) {
        let status = definition(status).status;
        let part = self.definitions.clone().subresource("status").unwrap();
        part.update(NAME, |stored| stored.status = status.clone())
            .await
            .unwrap();
    }

    /// Stores a label.
    async fn label(&self, value: &str) {
        let change = |stored: &mut CustomResourceDefinition| {
            stored.metadata.labels.insert("a".to_owned(), value.to_owned());
        };
        self.definitions.update(NAME, change).await.unwrap();
    }
}

fn key() -> NamespacedName {
    NamespacedName {
        name: NAME.to_owned(),
        ..NamespacedName::default()
    }
}

fn definition(status: &Value) -> CustomResourceDefinition {
    definition_with(&json!({"type": "object"}), status)
}

fn definition_with(schema: &Value, status: &Value) -> CustomResourceDefinition {
    let names = json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"});
    let versions = json!([{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}}]);
    let spec = json!({"group": "example.com", "names": names, "scope": "Cluster", "versions": versions});
    read(&json!({"metadata": {"name": NAME}, "spec": spec, "status": status}).to_string())
}

fn established() -> Value {
    let condition = |name: &str| {
        json!({"type": name, "status": "True", "reason": "x", "message": "x",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let names = json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"});
    json!({"acceptedNames": names, "storedVersions": ["v1"],
        "conditions": [condition("NamesAccepted"), condition("Established")]})
}

#[tokio::test]
async fn what_is_served_ahead_of_its_write_stays() {
    let server = Server::new();
    let mut stored = server.definitions.create(definition(&json!({}))).await.unwrap();
    assert!(server.follow().await);
    assert!(!server.is_served());
    stored.status = definition(&established()).status;
    server.serving.see_ahead(&stored).await;
    assert!(server.is_served());
    // Others look at what is stored meanwhile, and write to it.
    assert!(!server.follow().await);
    server.label("b").await;
    assert!(!server.follow().await);
    assert!(server.is_served());
    assert!(!server.is_open(), "nobody may know of it before it is written");
    server.write(&established()).await;
    let resource = server.serving.registry.resource("example.com", "widgets").unwrap();
    let waits = resource.strategy.settled().unwrap();
    futures_util::join!(waits, server.catch_up());
    assert!(server.is_open());
    server.label("c").await;
    assert!(server.follow().await);
    assert!(server.is_served());
    server
        .definitions
        .delete(NAME, &DeleteOptions::default())
        .await
        .unwrap();
    // It waits for its objects, and is served as long.
    assert!(server.follow().await);
    assert!(server.is_served());
}

#[tokio::test]
async fn what_could_not_be_written_is_served_no_more() {
    let server = Server::new();
    let mut stored = server.definitions.create(definition(&json!({}))).await.unwrap();
    stored.status = definition(&established()).status;
    server.serving.see_ahead(&stored).await;
    assert!(server.is_served());
    server.catch_up().await;
    assert!(!server.is_served());
    assert!(server.follow().await);
    server.write(&established()).await;
    assert!(server.follow().await);
    assert!(server.is_served());
    server.write(&json!({"storedVersions": ["v1"]})).await;
    assert!(server.follow().await);
    assert!(!server.is_served());
}

/// The validator of a large schema, whose rules are many, is made on a thread for such work, and once.
#[tokio::test]
async fn validators_of_large_schemas_are_made_aside() {
    for (fields, waits) in [(1, false), (200, true)] {
        let rules = json!([{"rule": "self.size() < 10"}]);
        let field = json!({"type": "string", "maxLength": 20, "x-kubernetes-validations": rules});
        let fields: serde_json::Map<String, Value> = (0..fields).map(|n| (format!("f{n}"), field.clone())).collect();
        let schema = json!({"type": "object", "properties": fields});
        let server = Server::new();
        let defined = definition_with(&schema, &established());
        let mut stored = server.definitions.create(defined.clone()).await.unwrap();
        stored.status = defined.status;
        server.serving.see_ahead(&stored).await;
        let resource = server.serving.registry.resource("example.com", "widgets").unwrap();
        let prepared = resource.strategy.prepared_validation();
        assert_eq!(prepared.is_some(), waits);
        if let Some(prepared) = prepared {
            prepared.await;
        }
        assert!(resource.strategy.prepared_validation().is_none());
    }
}
