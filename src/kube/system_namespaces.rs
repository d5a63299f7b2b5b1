//! The namespaces that a server cannot be without.

use std::time::Duration;

use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::status::StatusError;
use keelson_server::registry::managed::Tracking;
use keelson_server::registry::{Context, Resource, Warnings};
use keelson_server::server::{Hook, HookContext};
use keelson_server::user::{GROUP_MASTERS, User};

use crate::api::core::v1::Namespace;

const NAMES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// How often a namespace that has gone meanwhile is made again.
const INTERVAL: Duration = Duration::from_secs(60);

/// The server's own identity.
const SERVER: &str = "system:apiserver";

/// Makes the namespaces that are absent when the server starts, and looks after them from then on.
pub fn hook() -> Hook {
    Hook {
        name: "start-system-namespaces-controller",
        run: Box::new(|context| Box::pin(run(context))),
    }
}

async fn run(context: HookContext) -> Result<(), String> {
    make_absent(&context).await.map_err(|error| error.to_string())?;
    tokio::task::spawn_local(keep(context));
    Ok(())
}

/// Ends with the worker that it runs on.
async fn keep(context: HookContext) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        if let Err(error) = make_absent(&context).await {
            tracing::warn!(%error, "a namespace of the system could not be made");
        }
    }
}

async fn make_absent(context: &HookContext) -> Result<(), StatusError> {
    let Some(namespaces) = context.registry.resource("", "namespaces") else {
        return Ok(());
    };
    for name in NAMES {
        if namespaces.find("", name).await?.is_none() {
            make(context, namespaces, name).await?;
        }
    }
    Ok(())
}

/// Another server may be faster, which is as good.
async fn make(context: &HookContext, namespaces: &Resource, name: &str) -> Result<(), StatusError> {
    let request = Context {
        now: context.backend.clock.now(),
        namespace: String::new(),
        user: User {
            name: SERVER.to_owned(),
            groups: vec![GROUP_MASTERS.to_owned()],
            ..User::default()
        },
        dry_run: false,
        tracking: Tracking::default(),
        warnings: Warnings::default(),
    };
    let metadata = ObjectMeta {
        name: name.to_owned(),
        ..ObjectMeta::default()
    };
    let namespace = Namespace {
        metadata,
        ..Namespace::default()
    };
    match namespaces.create(&request, Box::new(namespace)).await {
        Err(error) if error.reason == "AlreadyExists" => Ok(()),
        other => other.map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use keelson_machinery::meta::v1::DeleteOptions;
    use keelson_server::env::{SystemClock, SystemEntropy};
    use keelson_server::registry::write::{Part, UpdateRequest};
    use keelson_server::registry::{Backend, Registry};
    use keelson_storage::HistoryLimits;
    use keelson_storage::memory::MemoryStore;

    use super::*;
    use crate::kube::testing::context as request;

    fn context() -> HookContext {
        let backend = Backend {
            store: Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap()),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            budget: keelson_server::cache::Budget::new(0),
            encryption: keelson_storage::encryption::Encryption::none(),
            placement: Arc::default(),
        };
        let mut code = crate::kube::code();
        code.cells(crate::kube::cells());
        let registry = Registry::new(&[&crate::api::SCHEME], &code, &backend, "/registry", &|_, _, _| true).unwrap();
        HookContext {
            registry: Arc::new(registry),
            backend,
        }
    }

    #[tokio::test]
    async fn what_is_absent_is_made() {
        let context = context();
        make_absent(&context).await.unwrap();
        let namespaces = context.registry.resource("", "namespaces").unwrap();
        let mut first = Vec::new();
        for name in NAMES {
            let stored = namespaces.find("", name).await.unwrap().unwrap();
            let namespace = stored.object.downcast_ref::<Namespace>().unwrap();
            assert_eq!(namespace.metadata.labels["kubernetes.io/metadata.name"], name);
            assert_eq!(namespace.status.phase, "Active");
            first.push(namespace.metadata.uid.clone());
        }
        let name = NAMES[3];
        let cluster = Context {
            namespace: String::new(),
            ..request()
        };
        namespaces
            .delete(&cluster, name, &DeleteOptions::default())
            .await
            .unwrap();
        assert!(
            namespaces.find("", name).await.unwrap().is_some(),
            "its finalizer holds it"
        );
        let update = UpdateRequest {
            name,
            part: Part::Named("finalize"),
            may_create: false,
            uid_is_precondition: true,
        };
        let mut without_finalizer = |old: Option<&dyn keelson_machinery::object::Object>| {
            let mut new = old.unwrap().clone_object();
            new.downcast_mut::<Namespace>().unwrap().spec.finalizers.clear();
            Ok(new)
        };
        namespaces
            .update(&cluster, &update, &mut without_finalizer)
            .await
            .unwrap();
        assert!(namespaces.find("", name).await.unwrap().is_none());
        make_absent(&context).await.unwrap();
        let mut second = Vec::new();
        for name in NAMES {
            second.push(
                namespaces
                    .find("", name)
                    .await
                    .unwrap()
                    .unwrap()
                    .object
                    .meta()
                    .uid
                    .clone(),
            );
        }
        assert_eq!(first[..3], second[..3]);
        assert_ne!(first[3], second[3]);
    }

    #[tokio::test]
    async fn generated_names_have_their_label() {
        let context = context();
        let namespaces = context.registry.resource("", "namespaces").unwrap();
        let metadata = ObjectMeta {
            generate_name: "a-".to_owned(),
            ..ObjectMeta::default()
        };
        let namespace = Namespace {
            metadata,
            ..Namespace::default()
        };
        let made = namespaces.create(&request(), Box::new(namespace)).await.unwrap();
        assert_eq!(made.meta().labels["kubernetes.io/metadata.name"], made.meta().name);
    }
}
