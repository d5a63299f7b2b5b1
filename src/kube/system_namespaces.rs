//! The namespaces that a server cannot be without.

use std::time::Duration;

use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::status::StatusError;
use keelson_server::registry::{Context, Resource};
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
